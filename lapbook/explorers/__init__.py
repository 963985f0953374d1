"""Explorers: figures with sliders that work in Jupyter and, without a kernel, in the built pages.

w = lb.explorers.coefficients()
w                      # in the next cell, w.coefficients holds what the sliders say; setting it moves them
"""

from __future__ import annotations

import base64
from collections.abc import Iterable, Sequence
from typing import Any, ClassVar

import numpy as np
import traitlets

from lapbook import objective, spectrum
from lapbook.explorers.base import Explorer, pack, pack_all, unpack
from lapbook.layouts import GRID_MAZE, GRID_ROOM, Layout, check_layout
from lapbook.options import climb
from lapbook.options import run as steps_and_ends

Worlds = Sequence[tuple[Layout, dict[str, np.ndarray]]]  # maps, each with its representations by name, shape (n, d)


class State(traitlets.Int):
    """A state number, which may come out of an array."""

    def validate(self, obj: Any, value: Any) -> int:
        """Integers of numpy become plain ones."""
        return super().validate(obj, int(value) if isinstance(value, np.integer) else value)


class OneOfSeveralMaps(Explorer):
    """An explorer with a choice among the maps in its data."""

    map = traitlets.Unicode().tag(sync=True)  # widgets have a trait `layout` of their own

    @traitlets.validate("map")
    def _known(self, proposal: dict[str, Any]) -> str:
        return _one_of("map", proposal["value"], self.data)


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


class OneCell(OneOfSeveralMaps):
    """An explorer of representations on a map in which one cell is picked."""

    label = "Dimensions of the representation on the map"
    cell: ClassVar[str]  # the trait that holds its state number
    representation = traitlets.Unicode().tag(sync=True)
    dimension = traitlets.Int(2).tag(sync=True)

    @traitlets.validate("representation")
    def _is_given(self, proposal: dict[str, Any]) -> str:
        return _one_of("representation", proposal["value"], self.data[self.map]["names"])

    @traitlets.validate("dimension")
    def _is_dimension(self, proposal: dict[str, Any]) -> int:
        return _between("dimension", proposal["value"], 2, len(self.data[self.map]["scales"][0]))

    @traitlets.observe("map")
    def _stay_on_the_map(self, change: dict[str, Any]) -> None:
        setattr(self, self.cell, min(getattr(self, self.cell), self.data[self.map]["n"] - 1))

    def _is_state(self, proposal: dict[str, Any]) -> int:
        return _between(self.cell, proposal["value"], 0, self.data[self.map]["n"] - 1)


class Options(OneCell):
    """The option that climbs one dimension, up or down, and its walk from one cell."""

    name = "options"
    cell = "start"
    sign = traitlets.Int(1).tag(sync=True)
    start = State(0).tag(sync=True)
    _is_start = traitlets.validate("start")(OneCell._is_state)

    @traitlets.validate("sign")
    def _is_sign(self, proposal: dict[str, Any]) -> int:
        return _one_of("sign", proposal["value"], [1, -1])


class Shaping(OneCell):
    """A pseudo-reward for one goal, and where climbing it gets stuck."""

    name = "shaping"
    cell = "goal"
    kinds: ClassVar[list[str]] = ["one dimension", "all dimensions", "position"]
    kind = traitlets.Unicode(kinds[0]).tag(sync=True)
    goal = State(0).tag(sync=True)
    _is_goal = traitlets.validate("goal")(OneCell._is_state)

    @traitlets.validate("kind")
    def _is_kind(self, proposal: dict[str, Any]) -> str:
        return _one_of("kind", proposal["value"], self.kinds)


def eigenvectors(layouts: Sequence[Layout] = (GRID_ROOM, GRID_MAZE), dimension: int = 2) -> Eigenvectors:
    """Chapter 1: choose a map and a dimension 1 … 20.

    >>> eigenvectors(dimension=3)
    Eigenvectors(dimension=3, map='GridRoom')
    """
    data = {layout.name: pack(layout, 20) for layout in layouts}
    return Eigenvectors(data=data, map=layouts[0].name, dimension=dimension)


def rotation(layout: Layout = GRID_ROOM, plane: tuple[int, int] = (2, 3), angle: int = 30, d: int = 10) -> Rotation:
    """Chapter 2: choose a plane (i, j) and an angle in degrees.

    >>> rotation(angle=45, d=3)
    Rotation(angle=45, coefficients=[3.0, 2.0, 1.0], plane=[2, 3])
    """
    c = objective.coefficients(d).tolist()
    return Rotation(data={layout.name: pack(layout, d)}, coefficients=c, plane=list(plane), angle=angle)


def coefficients(
    c: str | Sequence[float] = "paper", layout: Layout = GRID_ROOM, d: int = 10, seed: int = 0
) -> Coefficients:
    """Chapter 3: choose d and c_1 … c_d, and run the descent.

    >>> coefficients([1, 1, 1], d=3)
    Coefficients(coefficients=[1.0, 1.0, 1.0], seed=0)
    """
    values = objective.coefficients(d, c, decreasing=False).tolist()
    return Coefficients(data={layout.name: pack(layout, 10)}, coefficients=values, seed=seed)


def playback(films: Sequence[dict[str, Any]], dimension: int = 2) -> Playback:
    """Chapter 5: choose a map, a training step and a dimension. Each film is made by `film`.

    >>> corridor = Layout("...", "corridor")
    >>> still = np.broadcast_to(spectrum.eigenvectors(corridor, 2).vectors, (2, 3, 2))  # nothing moves in two steps
    >>> playback([film(corridor, [0, 100], still, still)])
    Playback(dimension=2, frame=2, map='corridor')
    """
    data = {each["name"]: each for each in films}
    frame = len(films[0]["steps"])
    return Playback(data=data, map=films[0]["name"], frame=frame, dimension=dimension)


def film(layout: Layout, steps: Sequence[int], gd: np.ndarray, ggd: np.ndarray) -> dict[str, Any]:
    """Two runs packed for `playback`: gd and ggd of shape (steps, n, d) are f on all states at each of the steps.

    Vectors are turned to the sign of the truth and rounded to one byte a state, which is all that colours show.

    >>> corridor = Layout("...", "corridor")
    >>> vectors = spectrum.eigenvectors(corridor, 2).vectors
    >>> shown = film(corridor, [7], -vectors[None], vectors[None])
    >>> shown["films"]["gd"] == shown["films"]["ggd"]  # a sign is not seen
    True
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


def options(worlds: Worlds, dimension: int = 2, sign: int = 1, start: int | None = None) -> Options:
    """Chapter 7: choose a map, a representation, a dimension 2 … d, a direction and a cell to start from.

    Without `start`, the walk starts where it is longest.

    >>> corridor = Layout("...", "corridor")
    >>> options([(corridor, {"truth": spectrum.eigenvectors(corridor, 2).vectors})]).start  # e_2 rises to the left
    2
    """
    data, first = _packed(worlds)
    found = Options(data=data, **first, dimension=dimension, sign=sign, start=0 if start is None else start)
    if start is None:
        layout = worlds[0][0]
        steps, _ = steps_and_ends(layout, climb(layout, unpack(data[layout.name]), dimension, sign))
        found.start = steps.argmax()
    return found


def shaping(worlds: Worlds, dimension: int = 2, goal: int | None = None) -> Shaping:
    """Chapter 8: choose a map, a pseudo-reward, a representation, a dimension 2 … d and a goal.

    Without `goal`, it is the state in the middle of the list.

    >>> corridor = Layout("...", "corridor")
    >>> shaping([(corridor, {"truth": spectrum.eigenvectors(corridor, 2).vectors})]).goal
    1
    """
    data, first = _packed(worlds)
    goal = worlds[0][0].n // 2 if goal is None else goal
    return Shaping(data=data, **first, dimension=dimension, goal=goal)


def _packed(worlds: Worlds) -> tuple[dict[str, Any], dict[str, str]]:
    """The data of `options` and `shaping`, and the map and the representation to show first."""
    if not worlds or not worlds[0][1]:
        raise ValueError(f"worlds must hold at least one map with at least one representation: got {list(worlds)}")
    names = list(worlds[0][1])
    d = max((2, *np.shape(worlds[0][1][names[0]])[1:]))
    data: dict[str, Any] = {}
    for layout, representations in worlds:
        if check_layout(layout).name in data:
            raise ValueError(f"worlds must have maps of different names: got {layout.name} twice")
        if set(representations) != set(names):
            got = f"{', '.join(representations) or 'none'} on {layout.name}"
            raise ValueError(f"worlds must have the representations {', '.join(names)} on every map: got {got}")
        for name, vectors in representations.items():
            if np.shape(vectors) != (layout.n, d):
                shape = f"({layout.n}, {d}) on {layout.name}"
                raise ValueError(f"{name} must have shape (n, d) = {shape}, got {np.shape(vectors)}")
            if not np.isfinite(vectors).all():
                raise ValueError(f"{name} must be finite on {layout.name}: got nan or inf")
        data[layout.name] = pack_all(layout, {name: np.asarray(representations[name], float) for name in names})
    return data, {"map": worlds[0][0].name, "representation": names[0]}


def _one_of(name: str, value: Any, allowed: Iterable[Any]) -> Any:
    if value not in allowed:
        raise ValueError(f"{name} must be one of {', '.join(map(str, allowed))}: got {value!r}")
    return value


def _between(name: str, value: int, low: int, high: int) -> int:
    if not low <= value <= high:
        raise ValueError(f"{name} must lie in {low} … {high}: got {value}")
    return value
