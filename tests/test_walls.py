import numpy as np
import pytest

from lapbook.floors import clearance, floor_size, is_free, sample_free, wall_boxes
from lapbook.layouts import GRID_MAZE, GRID_ROOM, Layout

CELL = Layout("###\n#.#\n###", "cell")  # one free cell: a floor of 2×2


def test_one_cell_by_hand():
    assert floor_size(CELL).tolist() == [2, 2]
    assert clearance(CELL, [[1, 1], [0.3, 1.2], [0, 0]]).tolist() == [1, 0.3, 0]
    assert is_free(CELL, [[1, 1], [0.5, 0.5], [0.49, 1], [5, 5]]).tolist() == [True, True, False, False]


def test_sizes_are_the_papers():
    assert floor_size(GRID_ROOM).tolist() == [20, 20]
    assert floor_size(GRID_MAZE).tolist() == [18, 18]


def test_a_door_is_a_gap_of_two():
    row, column = 2, 5  # the door between rooms 2 and 1 in GRID_ROOM is at row 1; here is wall
    assert not GRID_ROOM.free[row, column]
    assert GRID_ROOM.free[1, 5]
    assert clearance(GRID_ROOM, [5, 1]) == 1  # halfway between the outer wall and the next wall cell
    assert clearance(GRID_ROOM, [5, 2]) == 0


def test_pillars_and_blocks_are_walls():
    pillar = Layout("#####\n#...#\n#.#.#\n#...#\n#####")
    assert clearance(pillar, [2, 2]) == 0
    assert clearance(pillar, [2.6, 2]) == pytest.approx(0.6)
    block = Layout("######\n#....#\n#.##.#\n#.##.#\n#....#\n######")
    assert clearance(block, [2.5, 2.5]) == 0


def test_samples_are_free_and_uniform():
    xy = sample_free(GRID_ROOM, 40_000, rng=0)
    assert is_free(GRID_ROOM, xy).all()
    # A room's centres form a 4×4 square: with mean 2.5 and variance 16/12 in both coordinates.
    room = xy[(xy < 4.5).all(axis=1)]
    assert np.abs(room.mean(axis=0) - 2.5).max() < 0.1
    assert np.abs(room.var(axis=0) - 16 / 12).max() < 0.1


def test_walls_are_where_the_map_says():
    for layout in (GRID_ROOM, GRID_MAZE):
        wall_cells = np.argwhere(~layout.free)[:, ::-1]
        assert (clearance(layout, wall_cells) == 0).all()
        assert (clearance(layout, layout.cells[:, ::-1]) >= 1).all()
        assert wall_boxes(layout).shape[1] == 4


def test_a_ball_too_large_is_refused():
    with pytest.raises(ValueError, match="radius 3 leaves no room"):
        sample_free(GRID_ROOM, 5, radius=3)


def test_an_open_edge_is_refused():
    with pytest.raises(ValueError, match="row 0, column 1 of its edge is free"):
        wall_boxes(Layout("#.#\n#.#\n###"))
