"""Explorers: figures with sliders that work in Jupyter and, without a kernel, in the built pages.

w = lb.explorers.coefficients()
w                      # in the next cell, w.coefficients holds what the sliders say; setting it moves them
"""

from __future__ import annotations

import base64
from collections.abc import Sequence
from typing import Any

import numpy as np
import traitlets

from lapbook import objective, spectrum
from lapbook.explorers.base import Explorer, pack
from lapbook.layouts import GRID_MAZE, GRID_ROOM, Layout


class OneOfSeveralMaps(Explorer):
    """An explorer with a choice among the maps in its data."""

    map = traitlets.Unicode().tag(sync=True)  # widgets have a trait `layout` of their own

    @traitlets.validate("map")
    def _known(self, proposal: dict[str, Any]) -> str:
        if proposal["value"] not in self.data:
            raise ValueError(f"map must be one of {', '.join(self.data)}: got {proposal['value']!r}")
        return proposal["value"]


class Eigenvectors(OneOfSeveralMaps):
    """One eigenvector of a map at a time, with its place in the spectrum."""

    name = "eigenvectors"
    label = "Eigenvectors of GridRoom"
    dimension = traitlets.Int(2).tag(sync=True)

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


class Playback(OneOfSeveralMaps):
    """Two training runs beside the truth, step by step."""

    name = "playback"
    label = "Eigenvectors of the map"
    frame = traitlets.Int(1).tag(sync=True)
    dimension = traitlets.Int(2).tag(sync=True)

    @traitlets.validate("frame")
    def _is_frame(self, proposal: dict[str, Any]) -> int:
        return _between("frame", proposal["value"], 1, max(len(entry["steps"]) for entry in self.data.values()))

    @traitlets.validate("dimension")
    def _is_dimension(self, proposal: dict[str, Any]) -> int:
        return _between("dimension", proposal["value"], 1, max(len(entry["values"]) for entry in self.data.values()))


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


def playback(films: Sequence[dict[str, Any]], dimension: int = 2) -> Playback:
    """Chapter 5: choose a map, a training step and a dimension. Each film is made by `film`."""
    data = {each["name"]: each for each in films}
    frame = len(films[0]["steps"])
    return Playback(data=data, map=films[0]["name"], frame=frame, dimension=dimension)


def film(layout: Layout, steps: Sequence[int], gd: np.ndarray, ggd: np.ndarray) -> dict[str, Any]:
    """Two runs packed for `playback`: gd and ggd of shape (steps, n, d) are f on all states at each of the steps.

    Vectors are turned to the sign of the truth and rounded to one byte a state, which is all that colours show.
    """
    shape = (len(steps), layout.n, np.shape(gd)[-1])
    for name, run in (("gd", gd), ("ggd", ggd)):
        if np.shape(run) != shape:
            raise ValueError(f"{name} must have shape (steps, n, d) = {shape}, got {np.shape(run)}")
    packed = pack(layout, shape[2])
    truth = spectrum.eigenvectors(layout, shape[2]).vectors
    films = {}
    for name, run in (("gd", np.asarray(gd, dtype=float)), ("ggd", np.asarray(ggd, dtype=float))):
        signs = np.where((run * truth).sum(axis=1, keepdims=True) < 0, -1, 1)
        largest = np.maximum(np.abs(run).max(axis=1, keepdims=True), 1e-12)
        integers = np.rint(127 * signs * run / largest).astype(np.int8)
        films[name] = base64.b64encode(np.ascontiguousarray(integers.transpose(0, 2, 1)).tobytes()).decode()
    return {"name": layout.name, **packed, "steps": [int(step) for step in steps], "films": films}


def _between(name: str, value: int, low: int, high: int) -> int:
    if not low <= value <= high:
        raise ValueError(f"{name} must lie in {low} … {high}: got {value}")
    return value
