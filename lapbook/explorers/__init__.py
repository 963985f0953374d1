"""Explorers: figures with sliders that work in Jupyter and, without a kernel, in the built pages.

w = lb.explorers.coefficients()
w                      # in the next cell, w.coefficients holds what the sliders say; setting it moves them
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import traitlets

from lapbook import objective
from lapbook.explorers.base import Explorer, pack
from lapbook.layouts import GRID_MAZE, GRID_ROOM, Layout


class Eigenvectors(Explorer):
    """One eigenvector of a map at a time, with its place in the spectrum."""

    name = "eigenvectors"
    label = "Eigenvectors of GridRoom"
    map = traitlets.Unicode().tag(sync=True)  # widgets have a trait `layout` of their own
    dimension = traitlets.Int(2).tag(sync=True)

    @traitlets.validate("map")
    def _known(self, proposal: dict[str, Any]) -> str:
        if proposal["value"] not in self.data:
            raise ValueError(f"map must be one of {', '.join(self.data)}: got {proposal['value']!r}")
        return proposal["value"]

    @traitlets.validate("dimension")
    def _in_range(self, proposal: dict[str, Any]) -> int:
        return _between("dimension", proposal["value"], 1, 20)


class Rotation(Explorer):
    """Two eigenvectors turned in their plane, and what two objectives say to it."""

    name = "rotation"
    label = "Eigenvectors of GridRoom"
    plane = traitlets.List(traitlets.Int()).tag(sync=True)
    angle = traitlets.Int(30).tag(sync=True)
    coefficients = traitlets.List(traitlets.Float()).tag(sync=True)

    @traitlets.validate("plane")
    def _ordered(self, proposal: dict[str, Any]) -> list[int]:
        plane, d = list(proposal["value"]), len(self.coefficients)
        if len(plane) != 2 or not 1 <= plane[0] < plane[1] <= d:
            raise ValueError(f"plane must be [i, j] with 1 ≤ i < j ≤ {d}: got {plane}")
        return plane

    @traitlets.validate("angle")
    def _in_range(self, proposal: dict[str, Any]) -> int:
        return _between("angle", proposal["value"], -90, 90)


class Coefficients(Explorer):
    """The generalized objective minimised while you watch, for coefficients of your choice."""

    name = "coefficients"
    label = "Eigenvectors of GridRoom"
    coefficients = traitlets.List(traitlets.Float()).tag(sync=True)
    seed = traitlets.Int(0).tag(sync=True)

    @traitlets.validate("coefficients")
    def _positive(self, proposal: dict[str, Any]) -> list[float]:
        c = [float(x) for x in proposal["value"]]
        if not 2 <= len(c) <= 10 or not all(np.isfinite(c)) or min(c) <= 0:
            raise ValueError(f"coefficients must be 2 to 10 positive numbers: got {c}")
        return c


def eigenvectors(layouts: Sequence[Layout] = (GRID_ROOM, GRID_MAZE), dimension: int = 2) -> Eigenvectors:
    """Chapter 1: choose a map and a dimension 1 … 20."""
    data = {layout.name: pack(layout, 20) for layout in layouts}
    return Eigenvectors(data=data, map=layouts[0].name, dimension=dimension)


def rotation(layout: Layout = GRID_ROOM, plane: tuple[int, int] = (2, 3), angle: int = 30, d: int = 10) -> Rotation:
    """Chapter 2: choose a plane (i, j) and an angle in degrees."""
    c = objective.coefficients(d).tolist()
    return Rotation(data={layout.name: pack(layout, d)}, coefficients=c, plane=list(plane), angle=angle)


def coefficients(
    c: str | Sequence[float] = "paper", layout: Layout = GRID_ROOM, d: int = 10, seed: int = 0
) -> Coefficients:
    """Chapter 3: choose d and c_1 … c_d, and run the descent."""
    values = objective.coefficients(d, c, decreasing=False).tolist()
    return Coefficients(data={layout.name: pack(layout, 10)}, coefficients=values, seed=seed)


def _between(name: str, value: int, low: int, high: int) -> int:
    if not low <= value <= high:
        raise ValueError(f"{name} must lie in {low} … {high}: got {value}")
    return value
