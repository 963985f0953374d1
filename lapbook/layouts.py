"""Maps as text: `#` is a wall, `.` is free, and every free cell is a state.

States are numbered in reading order. Coordinates are `(row, column)` for cells and `(x, y) = (column, row)` for
positions, so that y grows downwards as it does on the printed map.
"""

from __future__ import annotations

import textwrap
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from numbers import Integral
from pathlib import Path

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike
from scipy import ndimage
from scipy.sparse import csgraph

# The four actions, as (row, column) moves. The order is the order of the action numbers everywhere in the book.
ACTIONS = ("left", "right", "up", "down")
STEPS = np.array([(0, -1), (0, 1), (-1, 0), (1, 0)])

Seed = int | np.random.Generator


@dataclass(frozen=True)
class Layout:
    """A map: `Layout(text, name)`. Everything else is derived from the text and computed when first used.

    >>> Layout("..\\n.#").cells.tolist()
    [[0, 0], [0, 1], [1, 0]]
    """

    text: str
    name: str = "layout"

    def __post_init__(self) -> None:
        if not isinstance(self.text, str):
            raise ValueError(f"layout must be a text of '#' and '.', got {type(self.text).__name__}")
        lines = [line.rstrip() for line in textwrap.dedent(self.text).strip("\n").splitlines()]
        while lines and not lines[-1]:
            lines.pop()
        object.__setattr__(self, "text", "\n".join(lines))
        _check_characters(lines)
        _check_connected(self)

    @classmethod
    def read(cls, path: str | Path) -> Layout:
        """The map in a text file, named after it. `X` and blank may stand for `#` and `.`, as in public maps.

        >>> from tempfile import TemporaryDirectory
        >>> with TemporaryDirectory() as place:
        ...     _ = Path(place, "Corridor.txt").write_text("XXXX\\nX  X\\nXXXX\\n")
        ...     Layout.read(Path(place, "Corridor.txt"))
        Layout('Corridor', 3×4, 2 states)
        """
        path = Path(path)
        if not path.is_file():
            raise ValueError(f"path must be a text file that holds a map: there is none at {path}")
        return cls(path.read_text(encoding="utf-8").translate(str.maketrans("X ", "#.")), path.stem)

    def __str__(self) -> str:
        return self.text

    def __repr__(self) -> str:
        rows, columns = self.shape
        return f"Layout({self.name!r}, {rows}×{columns}, {self.n} states)"

    @cached_property
    def free(self) -> np.ndarray:
        """Boolean map of shape (rows, columns), True where a state is."""
        lines = self.text.splitlines()
        letters = np.frombuffer("".join(lines).encode(), dtype="S1").reshape(len(lines), -1)
        return letters == b"."

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns of the map, outer wall included."""
        return self.free.shape

    @cached_property
    def cells(self) -> np.ndarray:
        """(row, column) of every state, shape (n, 2), in reading order."""
        return np.argwhere(self.free)

    @property
    def n(self) -> int:
        """Number of states |S|."""
        return len(self.cells)

    @cached_property
    def index(self) -> np.ndarray:
        """State number at each cell of the map, -1 in walls, shape (rows, columns)."""
        index = np.full(self.shape, -1)
        index[self.free] = np.arange(self.n)
        return index

    @cached_property
    def moves(self) -> np.ndarray:
        """The dynamics: `moves[s, a]` is the state that action a leads to from s, shape (n, 4); a bump stays in s."""
        padded = np.pad(self.index, 1, constant_values=-1)
        target = self.cells[:, None, :] + 1 + STEPS
        reached = padded[target[..., 0], target[..., 1]]
        return np.where(reached >= 0, reached, np.arange(self.n)[:, None])

    @cached_property
    def adjacency(self) -> sp.csr_array:
        """A of the state graph: 1 between cells that share an edge, shape (n, n)."""
        source = np.repeat(np.arange(self.n), len(STEPS))
        target = self.moves.ravel()
        moved = source != target
        ones = np.ones(moved.sum())
        return sp.csr_array((ones, (source[moved], target[moved])), shape=(self.n, self.n))

    @cached_property
    def rooms(self) -> np.ndarray:
        """Room number of every state, 1, 2, … by distance from the first state; 0 for doors and corridors.

        A cell belongs to a room if it lies in some 2×2 square of free cells, so a door one cell wide does not, and
        a maze has no rooms at all.
        """
        roomy = ndimage.binary_opening(self.free, np.ones((2, 2)))
        inside = np.flatnonzero(roomy[self.free])
        count, label = csgraph.connected_components(self.adjacency[inside][:, inside], directed=False)
        distance = self.distances(0)[inside]
        nearest = np.array([distance[label == k].min() for k in range(count)])
        number = np.empty(count, dtype=int)
        number[np.argsort(nearest, kind="stable")] = np.arange(1, count + 1)
        rooms = np.zeros(self.n, dtype=int)
        rooms[inside] = number[label]
        return rooms

    def distances(self, source: int | None = None) -> np.ndarray:
        """Shortest-path lengths in steps, shape (n, n), or (n,) from one state.

        >>> Layout("..\\n.#").distances(1).tolist()
        [1.0, 0.0, 2.0]
        """
        return csgraph.shortest_path(self.adjacency, unweighted=True, indices=source)

    @cached_property
    def xy(self) -> np.ndarray:
        """Positions (x, y) of the states scaled to [-1, 1] over the map, shape (n, 2)."""
        extent = np.maximum(np.array(self.shape) - 1, 1)
        return (2 * self.cells / extent - 1)[:, ::-1]

    def grid(self, values: ArrayLike, fill: float = np.nan) -> np.ndarray:
        """Values of shape (n,) laid out on the map, shape (rows, columns), `fill` in walls.

        >>> Layout("..\\n.#").grid([0.5, 1.5, 2.5], fill=0).tolist()
        [[0.5, 1.5], [2.5, 0.0]]
        """
        values = np.asarray(values)
        if values.shape != (self.n,):
            raise ValueError(f"values must have one entry per state: shape ({self.n},), got {values.shape}")
        out = np.full(self.shape, fill, dtype=np.result_type(values, fill))
        out[self.free] = values
        return out


def check_layout(layout: Layout | str) -> Layout:
    """Return the layout if it is one, or the name of one in `LAYOUTS`; a map as plain text is refused.

    >>> check_layout("PointRoom")
    Layout('GridRoom', 21×21, 271 states)
    """
    found = LAYOUTS.get(layout) if isinstance(layout, str) else layout
    if not isinstance(found, Layout):
        raise ValueError(f"layout must be a Layout, such as Layout(text): got {type(layout).__name__}")
    return found


def check_vectors(layout: Layout, vectors: ArrayLike) -> np.ndarray:
    """A representation of shape (n, d) as floats, if it has one finite row for each state.

    >>> check_vectors(Layout(".."), [[1], [2]]).tolist()
    [[1.0], [2.0]]
    """
    vectors = np.asarray(vectors, dtype=float)
    if vectors.ndim != 2 or len(vectors) != layout.n:
        raise ValueError(f"vectors must have shape ({layout.n}, d), one row for each state: got {vectors.shape}")
    if not np.isfinite(vectors).all():
        raise ValueError(f"vectors must be finite: dimension {np.argwhere(~np.isfinite(vectors))[0][1] + 1} is not")
    return vectors


def check_dimension(layout: Layout, vectors: ArrayLike, dimension: int) -> np.ndarray:
    """That dimension of a representation (n, d), counted from 1, shape (n,), if a reward can be made of it.

    >>> check_dimension(Layout(".."), [[1, -1], [1, 1]], 2).tolist()
    [-1.0, 1.0]
    """
    vectors = check_vectors(layout, vectors)
    if not isinstance(dimension, Integral) or isinstance(dimension, bool):
        raise ValueError(f"dimension must be a whole number, counted from 1: got {dimension!r}")
    if dimension == 1:
        raise ValueError("dimension must be at least 2: the first eigenvector is constant, so its reward is always 0")
    if not 2 <= dimension <= vectors.shape[1]:
        raise ValueError(f"dimension must be between 2 and d = {vectors.shape[1]}: got {dimension}")
    values = vectors[:, dimension - 1]
    if np.ptp(values) <= 1e-9 * np.abs(values).max():
        raise ValueError(
            f"dimension must vary over the states: dimension {dimension} is constant, its reward is always 0"
        )
    return values


def _check_characters(lines: list[str]) -> None:
    if not any(lines):
        raise ValueError("layout must have at least one free cell '.': got an empty text")
    for r, line in enumerate(lines):
        if len(line) != len(lines[0]):
            raise ValueError(
                f"layout must be a rectangle: row {r} has {len(line)} characters, row 0 has {len(lines[0])}"
            )
        if stray := line.translate({ord("#"): None, ord("."): None}):
            c = line.index(stray[0])
            raise ValueError(f"layout may hold only '#' and '.': found {stray[0]!r} at row {r}, column {c}")
    if not any("." in line for line in lines):
        raise ValueError("layout must have at least one free cell '.': all cells are walls")


def _check_connected(layout: Layout) -> None:
    count, label = csgraph.connected_components(layout.adjacency, directed=False)
    if count == 1:
        return
    sizes = np.bincount(label)
    first = layout.cells[np.unique(label, return_index=True)[1]]
    shown = [f"{n} around (row {r}, column {c})" for n, (r, c) in zip(sizes, first, strict=True)][:5]
    more = ", …" if count > 5 else ""
    raise ValueError(f"layout must be connected: its cells form {count} components: {', '.join(shown)}{more}")


def maze(rows: int, columns: int, name: str = "maze", rng: Seed = 0) -> Layout:
    """A perfect maze on rows×columns cells: a random spanning tree, one path between any two cells.

    It has 2·rows·columns - 1 states on a map of 2·rows + 1 by 2·columns + 1.

    >>> maze(9, 9, rng=1).n
    161
    """
    return _carve(rows, columns, 1, name, rng)


def rooms(rows: int, columns: int, size: int = 4, name: str = "rooms", rng: Seed = 0) -> Layout:
    """rows×columns square rooms of size×size cells; a random spanning tree of doors joins them.

    >>> rooms(2, 3, size=4, rng=0).n  # six rooms of 16 cells, five doors
    101
    """
    return _carve(rows, columns, size, name, rng)


def _carve(rows: int, columns: int, size: int, name: str, rng: Seed) -> Layout:
    """Square rooms, and in the wall between two rooms of the spanning tree a door at a random place."""
    for label, value in (("rows", rows), ("columns", columns), ("size", size)):
        if value < 1:
            raise ValueError(f"{label} must be at least 1, got {value}")
    rng = np.random.default_rng(rng)
    pitch = size + 1
    free = np.zeros((rows * pitch + 1, columns * pitch + 1), dtype=bool)
    free[np.ix_(*(np.flatnonzero(np.arange(length) % pitch) for length in free.shape))] = True
    for (r, c), (r2, c2) in _spanning_tree(rows, columns, rng):
        door = 1 + rng.integers(size)
        if r == r2:
            free[r * pitch + door, max(c, c2) * pitch] = True
        else:
            free[max(r, r2) * pitch, c * pitch + door] = True
    return Layout("\n".join("".join(".#"[not cell] for cell in row) for row in free), name)


def _spanning_tree(
    rows: int, columns: int, rng: np.random.Generator
) -> Iterator[tuple[tuple[int, int], tuple[int, int]]]:
    """Edges of a random spanning tree of the rows×columns lattice, by depth-first search from the corner."""
    seen = np.zeros((rows, columns), dtype=bool)
    seen[0, 0] = True
    stack = [(0, 0)]
    while stack:
        r, c = stack[-1]
        ahead = [
            (r + dr, c + dc)
            for dr, dc in STEPS.tolist()
            if 0 <= r + dr < rows and 0 <= c + dc < columns and not seen[r + dr, c + dc]
        ]
        if not ahead:
            stack.pop()
            continue
        following = ahead[rng.integers(len(ahead))]
        seen[following] = True
        stack.append(following)
        yield (r, c), following


MAPS = Path(__file__).parent / "maps"
# Sixteen 4×4 rooms along one path (a spiral, so consecutive rooms are neighbours) and fifteen doors. The paper's own
# drawing is not published as data; these doors are the best of 600 random placements at keeping the first twelve
# eigenvalues apart, relative to their size.
GRID_ROOM = Layout.read(MAPS / "GridRoom.txt")

# maze(9, 9, rng=59), by the same criterion the best of the seeds 0 to 399; tools/maps.py repeats both searches.
GRID_MAZE = Layout.read(MAPS / "GridMaze.txt")

# The map of each of the paper's environments: the continuous ones have the walls of the gridworlds.
LAYOUTS = {"GridRoom": GRID_ROOM, "GridMaze": GRID_MAZE, "PointRoom": GRID_ROOM, "PointMaze": GRID_MAZE}
