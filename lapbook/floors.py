"""A layout as a continuous floor, and the eigenfunctions of -Δ on it (appendix D).

Walls are the line segments that join neighbouring wall cells of the map.

Wall cell (row r, column c) stands at the point (x, y) = (c, r), so a map of R×C characters is a floor of size
(C-1)×(R-1): 20×20 with 5×5 rooms for GRID_ROOM, 18×18 with corridors 2 wide for GRID_MAZE, as in the paper's
appendix D. A free cell between two wall cells is a gap of width 2, wide enough for a ball of diameter 1.
Wall cells that touch only at a corner are not joined: a ball fits through the gap of √2 between them, where a grid
agent does not.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike
from scipy.sparse import csgraph
from scipy.spatial import cKDTree

from lapbook.layouts import Layout, Seed
from lapbook.spectrum import Spectrum, smallest_eigenpairs, warn_of_ambiguity

RADIUS = 0.5  # the paper's ball has diameter 1


def wall_boxes(layout: Layout) -> np.ndarray:
    """Walls as rectangles (x0, y0, x1, y1), shape (m, 4): thin ones have zero width, lone pillars zero area.

    >>> wall_boxes(Layout("###\\n#.#\\n###")).tolist()  # the four sides of a square
    [[0.0, 0.0, 2.0, 0.0], [0.0, 2.0, 2.0, 2.0], [0.0, 0.0, 0.0, 2.0], [2.0, 0.0, 2.0, 2.0]]
    """
    _check_closed(layout)
    wall = ~layout.free
    boxes = [(c0, r, c1, r) for r, c0, c1 in _runs(wall)]
    boxes += [(c, r0, c, r1) for c, r0, r1 in _runs(wall.T)]
    # Four wall cells in a square leave no room between them: fill it.
    solid = wall[:-1, :-1] & wall[1:, :-1] & wall[:-1, 1:] & wall[1:, 1:]
    boxes += [(c, r, c + 1, r + 1) for r, c in np.argwhere(solid).tolist()]
    joined = np.zeros_like(wall)
    joined[:, :-1] |= wall[:, 1:]
    joined[:, 1:] |= wall[:, :-1]
    joined[:-1] |= wall[1:]
    joined[1:] |= wall[:-1]
    boxes += [(c, r, c, r) for r, c in np.argwhere(wall & ~joined).tolist()]
    return np.array(boxes, dtype=float)


def clearance(layout: Layout, xy: ArrayLike) -> np.ndarray:
    """Distance from positions xy, shape (..., 2), to the nearest wall, shape (...).

    >>> clearance(Layout("####\\n#..#\\n####"), [[1, 1], [1.5, 0.25]]).tolist()
    [1.0, 0.25]
    """
    xy = np.asarray(xy, dtype=float)
    nearest = np.full(xy.shape[:-1], np.inf)
    for x0, y0, x1, y1 in wall_boxes(layout):
        dx = np.maximum(np.maximum(x0 - xy[..., 0], xy[..., 0] - x1), 0)
        dy = np.maximum(np.maximum(y0 - xy[..., 1], xy[..., 1] - y1), 0)
        np.minimum(nearest, np.hypot(dx, dy), out=nearest)
    return nearest


def is_free(layout: Layout, xy: ArrayLike, radius: float = RADIUS) -> np.ndarray:
    """Whether a ball of this radius may have its centre at xy, shape (..., 2): inside the floor, clear of walls.

    >>> from lapbook.layouts import GRID_ROOM
    >>> is_free(GRID_ROOM, [[2.5, 2.5], [0.4, 2.5], [-3.0, 2.5]]).tolist()
    [True, False, False]
    """
    xy = np.asarray(xy, dtype=float)
    inside = ((xy > 0) & (xy < floor_size(layout))).all(axis=-1)
    return inside & (clearance(layout, xy) >= radius)


def floor_size(layout: Layout) -> np.ndarray:
    """Width and height of the floor.

    >>> from lapbook.layouts import GRID_MAZE
    >>> floor_size(GRID_MAZE).tolist()
    [18.0, 18.0]
    """
    rows, columns = layout.shape
    return np.array([columns - 1.0, rows - 1.0])


def sample_free(layout: Layout, n: int, radius: float = RADIUS, rng: Seed = 0) -> np.ndarray:
    """n independent centres, uniform over the free space, shape (n, 2).

    >>> square = Layout("###\\n#.#\\n###")  # a ball of radius 0.9 has its centre within 0.1 of the middle
    >>> bool((np.abs(sample_free(square, 50, radius=0.9) - 1) <= 0.1).all())
    True
    """
    rng = np.random.default_rng(rng)
    kept = np.empty((0, 2))
    while len(kept) < n:
        tried = rng.uniform(0, floor_size(layout), size=(2 * n + 1000, 2))
        kept = np.concatenate([kept, tried[is_free(layout, tried, radius)]])
        if not len(kept):
            raise ValueError(f"radius {radius} leaves no room: none of {len(tried)} random centres is free")
    return kept[:n]


@dataclass(frozen=True)
class Eigenfunctions(Spectrum):
    """Neumann eigenfunctions on a floor, known on a lattice of points with spacing h, shape (n, 2).

    >>> floor = neumann((2.0, 1.0), d=2)  # the second one is √2 cos(πx/2), up to its sign
    >>> np.abs(floor.at([[0, 0], [1, 0.3], [2, 1]])).round(2).tolist()
    [[1.0, 1.41], [1.0, 0.0], [1.0, 1.41]]
    """

    points: np.ndarray
    h: float

    @cached_property
    def _index(self) -> np.ndarray:
        """Number of the lattice point at each place, -1 outside the floor, with a margin of one all around."""
        place = np.rint(self.points / self.h - 0.5).astype(int)
        index = np.full(place.max(axis=0) + 3, -1)
        index[tuple(place.T + 1)] = np.arange(len(place))
        return index

    def at(self, xy: ArrayLike) -> np.ndarray:
        """The functions at positions xy, shape (..., 2) → (..., d), scaled to mean square 1 over the floor.

        Bilinear between the four lattice points around; those outside the floor are left out, which is what a
        vanishing normal derivative asks for. Positions must be on the floor, give or take 2h.
        """
        xy = np.asarray(xy, dtype=float)
        flat = xy.reshape(-1, 2)
        if not np.isfinite(flat).all():
            raise ValueError("xy must be finite positions on the floor: it holds NaN or infinity")
        last = np.array(self._index.shape) - 3
        corner = np.clip(np.floor(flat / self.h - 0.5).astype(int), -1, last)
        part = np.clip(flat / self.h - 0.5 - corner, 0, 1)
        total = np.zeros((len(flat), self.d))
        weight = np.zeros(len(flat))
        for right in (0, 1):
            for down in (0, 1):
                node = self._index[tuple((corner + 1 + [right, down]).T)]
                w = np.abs(1 - right - part[:, 0]) * np.abs(1 - down - part[:, 1]) * (node >= 0)
                total += w[:, None] * self.vectors[node]
                weight += w
        alone = weight <= 1e-12
        if alone.any():  # in a corner that the lattice does not reach
            away, nearest = cKDTree(self.points).query(flat[alone])
            if away.max() > 2 * self.h:
                x, y = flat[alone][away.argmax()]
                raise ValueError(f"xy must be on the floor: ({x:g}, {y:g}) is {away.max():.3g} away from it")
            total[alone], weight[alone] = self.vectors[nearest], 1
        scaled = np.sqrt(len(self.points)) * total / weight[:, None]
        return scaled.reshape(*xy.shape[:-1], self.d)


def neumann(domain: Layout | tuple[float, float], d: int, h: float = 0.1, radius: float = RADIUS) -> Eigenfunctions:
    """The d smallest eigenfunctions of -Δ with Neumann boundary, by the 5-point stencil with spacing h.

    On a layout the domain is where the centre of a ball of this radius can be; a tuple (a, b) is the rectangle
    [0, a]×[0, b]. Lattice points lie at ((i + ½)h, (j + ½)h); neighbours outside the domain are dropped, so the
    matrix is a graph Laplacian over h². For the lattice to fit the walls h must divide the sides of a rectangle, and
    1 and the radius on a layout.

    >>> neumann((2.0, 1.0), d=2).values.round(1).tolist()  # 0 and (π/2)² = 2.467…
    [0.0, 2.5]
    """
    if not h > 0:
        raise ValueError(f"h must be positive, got {h}")
    layout = domain if isinstance(domain, Layout) else None
    size = np.asarray(domain, dtype=float) if layout is None else floor_size(layout)
    for length in size if layout is None else (1.0, radius):
        cells = length / h
        if round(cells) < 1 or abs(cells - round(cells)) > 1e-6:
            raise ValueError(
                f"h must divide {length:g}, for the lattice to fit the walls: got {length:g}/h = {cells:.4g}"
            )
    count = np.rint(size / h).astype(int)
    x, y = ((np.arange(k) + 0.5) * h for k in count)
    lattice = np.stack(np.meshgrid(x, y, indexing="ij"), axis=-1)
    inside = np.ones(count, dtype=bool) if layout is None else is_free(layout, lattice, radius)
    if layout is not None and not inside.any():
        raise ValueError(f"radius {radius} leaves no room on {layout.name}")
    index = np.where(inside, np.cumsum(inside).reshape(inside.shape) - 1, -1)
    pairs = [(index[:-1].ravel(), index[1:].ravel()), (index[:, :-1].ravel(), index[:, 1:].ravel())]
    first, second = np.concatenate([np.stack(p)[:, (p[0] >= 0) & (p[1] >= 0)] for p in pairs], axis=1)
    n = int(inside.sum())
    A = sp.csr_array((np.ones(len(first)), (first, second)), shape=(n, n))
    L = (csgraph.laplacian(A + A.T) / h**2).tocsr()
    spectrum = smallest_eigenpairs(L, d)
    warn_of_ambiguity(L, spectrum)
    return Eigenfunctions(**vars(spectrum), points=lattice[inside], h=h)


def _runs(wall: np.ndarray) -> Iterator[tuple[int, int, int]]:
    """(row, first, last) of every horizontal run of at least two wall cells."""
    edges = np.diff(np.pad(wall, ((0, 0), (1, 1))).astype(int), axis=1)
    for (r, first), (_, after) in zip(np.argwhere(edges == 1), np.argwhere(edges == -1), strict=True):
        if after - first > 1:
            yield int(r), int(first), int(after) - 1


def _check_closed(layout: Layout) -> None:
    free = layout.free
    border = np.ones_like(free)
    border[1:-1, 1:-1] = False
    if (free & border).any():
        r, c = np.argwhere(free & border)[0]
        raise ValueError(f"layout must have a wall all around for a ball: row {r}, column {c} of its edge is free")
