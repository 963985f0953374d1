import networkx as nx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lapbook.layouts import GRID_MAZE, GRID_ROOM, Layout, maze, rooms

L_SHAPE = Layout("..\n.#", "L")  # states: 0 1 on top, 2 below 0


def test_l_shape_by_hand():
    assert L_SHAPE.n == 3
    assert L_SHAPE.index.tolist() == [[0, 1], [2, -1]]
    # columns: left, right, up, down; a bump stays
    assert L_SHAPE.moves.tolist() == [[0, 1, 0, 2], [0, 1, 1, 1], [2, 2, 0, 2]]
    assert L_SHAPE.adjacency.toarray().tolist() == [[0, 1, 1], [1, 0, 0], [1, 0, 0]]
    assert L_SHAPE.distances().tolist() == [[0, 1, 1], [1, 0, 2], [1, 2, 0]]
    assert L_SHAPE.grid([5, 6, 7], fill=0).tolist() == [[5, 6], [7, 0]]
    assert L_SHAPE.xy.tolist() == [[-1, -1], [1, -1], [-1, 1]]


def test_gridroom_is_the_papers():
    assert GRID_ROOM.n == 271
    assert GRID_ROOM.shape == (21, 21)
    assert (GRID_ROOM.rooms == 0).sum() == 15  # doors
    assert np.bincount(GRID_ROOM.rooms)[1:].tolist() == [16] * 16
    spiral = [[1, 2, 3, 4], [12, 13, 14, 5], [11, 16, 15, 6], [10, 9, 8, 7]]
    centres = GRID_ROOM.grid(GRID_ROOM.rooms, fill=-1)[2::5, 2::5]
    assert centres.tolist() == spiral


def test_gridroom_doors_join_consecutive_rooms_only():
    doors = np.flatnonzero(GRID_ROOM.rooms == 0)
    joined = sorted(tuple(sorted(set(GRID_ROOM.rooms[GRID_ROOM.moves[door]]) - {0})) for door in doors)
    assert joined == [(k, k + 1) for k in range(1, 16)]


def test_gridmaze_is_a_perfect_maze():
    assert GRID_MAZE.n == 161
    assert GRID_MAZE.shape == (19, 19)
    assert nx.is_tree(nx.from_scipy_sparse_array(GRID_MAZE.adjacency))
    assert GRID_MAZE.rooms.max() == 0
    assert maze(9, 9, rng=59).text == GRID_MAZE.text


@settings(max_examples=25, deadline=None)
@given(st.integers(1, 6), st.integers(1, 6), st.integers(0, 2**31))
def test_mazes_are_trees_and_rooms_are_joined_by_a_tree(rows, columns, seed):
    tree = maze(rows, columns, rng=seed)
    assert tree.n == 2 * rows * columns - 1
    assert tree.adjacency.nnz == 2 * (tree.n - 1)
    house = rooms(rows, columns, size=3, rng=seed)
    assert house.n == 10 * rows * columns - 1
    assert house.rooms.max() == rows * columns


@settings(max_examples=25, deadline=None)
@given(st.integers(2, 5), st.integers(2, 5), st.integers(0, 2**31))
def test_moves_can_be_undone(rows, columns, seed):
    layout = rooms(rows, columns, size=2, rng=seed)
    here = np.arange(layout.n)
    for action, opposite in ((0, 1), (1, 0), (2, 3), (3, 2)):
        there = layout.moves[:, action]
        moved = there != here
        assert (layout.moves[there, opposite] == here)[moved].all()
    A = layout.adjacency
    assert (A != A.T).nnz == 0


def test_generators_depend_on_the_seed_alone():
    assert maze(5, 5, rng=3) == maze(5, 5, rng=np.random.default_rng(3))
    assert maze(5, 5, rng=3) != maze(5, 5, rng=4)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "empty text"),
        ("...\n..", "row 1 has 2 characters, row 0 has 3"),
        ("..\n.x", "found 'x' at row 1, column 1"),
        ("##\n##", "at least one free cell"),
        (".#.", r"2 components: 1 around \(row 0, column 0\), 1 around \(row 0, column 2\)"),
    ],
)
def test_bad_maps_are_refused(text, message):
    with pytest.raises(ValueError, match=message):
        Layout(text)


def test_indented_text_is_fine_but_its_rows_must_align():
    assert Layout("\n    ###\n    #.#\n    ###\n  ").text == "###\n#.#\n###"
    with pytest.raises(ValueError, match="row 1 has 5 characters, row 0 has 3"):
        Layout("###\n  #.#\n###")


def test_bad_arguments_are_refused():
    with pytest.raises(ValueError, match="rows must be at least 1, got 0"):
        maze(0, 3)
    with pytest.raises(ValueError, match=r"one entry per state: shape \(3,\), got \(2,\)"):
        L_SHAPE.grid([1, 2])
