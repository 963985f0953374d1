"""A layout as a continuous floor: walls are the line segments that join neighbouring wall cells of the map.

Wall cell (row r, column c) stands at the point (x, y) = (c, r), so a map of R×C characters is a floor of size
(C-1)×(R-1): 20×20 with 5×5 rooms for GRID_ROOM, 18×18 with corridors 2 wide for GRID_MAZE, as in the paper's
appendix D. A free cell between two wall cells is a gap of width 2, wide enough for a ball of diameter 1.
Wall cells that touch only at a corner are not joined: a ball fits through the gap of √2 between them, where a grid
agent does not.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import ArrayLike

from lapbook.layouts import Layout, Seed

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
