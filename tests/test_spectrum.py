import warnings
from itertools import pairwise

import networkx as nx
import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

from lapbook import spectrum
from lapbook.floors import neumann
from lapbook.layouts import GRID_MAZE, GRID_ROOM, Layout, rooms
from lapbook.spectrum import CoincidentEigenvalues, DisconnectedGraph, eigenvectors, fix_signs, laplacian


def path(n):
    return sp.diags_array([np.ones(n - 1)] * 2, offsets=[-1, 1])


@pytest.mark.parametrize("n", [5, 50, 900])  # the last one takes the sparse route
def test_path_has_cosines(n):
    found = eigenvectors(path(n), 4)
    k = np.arange(4)
    assert found.values == pytest.approx(2 - 2 * np.cos(np.pi * k / n), abs=1e-12)
    cosines = np.cos(np.pi * k * (np.arange(n)[:, None] + 0.5) / n)
    cosines /= np.linalg.norm(cosines, axis=0)
    assert np.abs(found.vectors - fix_signs(cosines)).max() < 1e-8


def test_complete_graph_warns_of_one_multiple_eigenvalue():
    with pytest.warns(CoincidentEigenvalues, match="^λ_2 = … = λ_4 within rounding"):
        found = eigenvectors(nx.complete_graph(6), 3)
    assert found.values == pytest.approx([0, 6, 6])
    assert found.coincident == [(2, 4)]


@pytest.mark.parametrize("layout", [GRID_ROOM, GRID_MAZE])
def test_ground_truth_of_the_book(layout):
    found = eigenvectors(layout, 10)
    L = laplacian(layout)
    assert np.linalg.norm(L @ found.vectors - found.vectors * found.values, axis=0).max() < 1e-12
    assert found.vectors.T @ found.vectors == pytest.approx(np.eye(10), abs=1e-12)
    assert found.vectors[:, 0] == pytest.approx(np.full(layout.n, layout.n**-0.5))
    assert found.coincident == []
    assert (found.gaps / np.append(found.values[1:], found.next_value) > 0.14).all()


@settings(max_examples=30, deadline=None)
@given(st.integers(3, 12), st.integers(0, 2**31))
def test_against_dense_numpy_on_random_weighted_graphs(n, seed):
    rng = np.random.default_rng(seed)
    A = np.triu(rng.uniform(0.1, 1, (n, n)), 1)
    A += A.T
    L = np.diag(A.sum(axis=0)) - A
    found = eigenvectors(A, n)
    assert found.values == pytest.approx(np.linalg.eigvalsh(L), abs=1e-10)
    assert found.vectors @ np.diag(found.values) @ found.vectors.T == pytest.approx(L, abs=1e-9)
    assert found.next_value == np.inf


def test_sparse_route_agrees_with_dense_even_where_eigenvalues_coincide(monkeypatch):
    square = Layout("\n".join("." * 30 for _ in range(30)))
    for layout in (rooms(8, 8, rng=1), square):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", CoincidentEigenvalues)
            sparse = eigenvectors(layout, 11)
            monkeypatch.setattr(spectrum, "DENSE_BELOW", 10_000)
            dense = eigenvectors(layout, 11)
            monkeypatch.undo()
        assert sparse.values == pytest.approx(dense.values, abs=1e-12)
        assert sparse.coincident == dense.coincident
        if not dense.coincident:
            assert np.abs(sparse.vectors - dense.vectors).max() < 1e-8


@given(st.lists(st.floats(-1, 1), min_size=2, max_size=8).filter(lambda v: max(map(abs, v)) > 1e-3))
def test_sign_rule_ignores_the_sign_it_was_given(entries):
    v = np.array(entries)[:, None]
    assert (fix_signs(v) == fix_signs(-v)).all()


def test_sign_rule_is_not_decided_by_a_tie():
    v = np.array([[0.5], [-0.5]])
    noise = np.array([[0.0], [1e-15]])
    assert fix_signs(v + noise)[0] > 0
    assert fix_signs(v - noise)[0] > 0


def test_sign_rule_is_not_decided_by_an_entry_of_half_the_size():
    v = np.array([[1.0], [-2.0], [1.0]])
    for noise in (0, 1e-15, -1e-15):
        assert fix_signs(v * (1 + noise) + noise)[0] > 0


def test_large_maps_are_solved_to_rounding():
    layout = rooms(30, 30, rng=0)
    found = eigenvectors(layout, 10)
    L = laplacian(layout)
    assert layout.n > 15_000
    assert np.linalg.norm(L @ found.vectors - found.vectors * found.values, axis=0).max() < 1e-8
    assert found.vectors.T @ found.vectors == pytest.approx(np.eye(10), abs=1e-9)


def test_weights_of_any_size_are_told_apart():
    scaled = eigenvectors(GRID_ROOM.adjacency * 1e-9, 10)
    assert scaled.coincident == []
    assert scaled.values == pytest.approx(eigenvectors(GRID_ROOM, 10).values * 1e-9, rel=1e-6)


def test_formats_give_the_same_laplacian():
    A = GRID_MAZE.adjacency
    expected = laplacian(GRID_MAZE).toarray()
    for same in (A, A.toarray(), A.tocoo(), nx.from_scipy_sparse_array(A)):
        assert (laplacian(same).toarray() == expected).all()
    assert (expected == nx.laplacian_matrix(nx.from_scipy_sparse_array(A)).toarray()).all()


@pytest.mark.parametrize(
    ("matrix", "message"),
    [
        ([[0, 1], [0, 0]], r"symmetric: A\[0, 1\] = 1 but A\[1, 0\] = 0"),
        ([[0, -2], [-2, 0]], r"negative: A\[0, 1\] = -2"),
        ([[0, np.nan], [np.nan, 0]], "finite"),
        ([[0, 1, 0], [1, 0, 1]], r"square matrix, got shape \(2, 3\)"),
        ([[0, 1j], [1j, 0]], "real matrix"),
        ("..", "graph must be a Layout"),
    ],
)
def test_bad_graphs_are_refused(matrix, message):
    with pytest.raises(ValueError, match=message):
        laplacian(matrix)


def test_bad_dimensions_are_refused():
    for d in (0, 272, 2.5):
        with pytest.raises(ValueError, match=rf"d must be a whole number in 1 … 271, the number of states: got {d}"):
            eigenvectors(GRID_ROOM, d)


def test_disconnected_graph_warns():
    two = sp.block_diag([path(4), path(3)])
    with (
        pytest.warns(DisconnectedGraph, match="2 components of 4, 3 states, so λ = 0 occurs 2 times"),
        pytest.warns(CoincidentEigenvalues, match="λ_1 = λ_2"),
    ):
        assert eigenvectors(two, 2).values == pytest.approx([0, 0], abs=1e-12)


def rectangle_values(a, b, d):
    m, n = np.meshgrid(np.arange(d), np.arange(d))
    return np.sort((np.pi**2 * (m**2 / a**2 + n**2 / b**2)).ravel())[:d]


def test_neumann_on_a_rectangle_converges_as_h_squared():
    exact = rectangle_values(3, 1.8, 8)
    errors = [np.abs(neumann((3, 1.8), 8, h).values - exact)[1:] for h in (0.2, 0.1, 0.05)]
    for coarse, fine in pairwise(errors):
        assert coarse / fine == pytest.approx(4, rel=0.02)
    assert (errors[-1] / exact[1:] < 5e-3).all()


def test_interpolated_eigenfunctions_are_cosines():
    xy = np.random.default_rng(0).uniform(0, [3, 2], size=(500, 2))
    exact = np.sqrt(2) * np.cos(np.pi * xy[:, 0] / 3)
    errors = []
    for h in (0.2, 0.1):
        f = neumann((3, 2), 3, h).at(xy)
        assert np.abs(f[:, 0] - 1).max() < 1e-9
        errors.append(np.abs(f[:, 1] - exact).max())
    assert errors[1] < 0.01
    assert errors[0] / errors[1] == pytest.approx(4, rel=0.2)


def test_eigenfunctions_of_the_point_rooms_settle():
    coarse, fine = (neumann(GRID_ROOM, 6, h) for h in (0.25, 0.125))
    assert coarse.values[1:] == pytest.approx(fine.values[1:], rel=0.05)
    xy = fine.points[::7]
    a, b = coarse.at(xy), fine.at(xy)
    cosine = (a * b).sum(axis=0) / np.linalg.norm(a, axis=0) / np.linalg.norm(b, axis=0)
    assert (cosine > 0.999).all()
    assert coarse.at(xy.reshape(-1, 1, 2)).shape == (len(xy), 1, 6)


def test_interpolation_reaches_every_free_position():
    from lapbook.floors import sample_free

    f = neumann(GRID_MAZE, 4, 0.25).at(sample_free(GRID_MAZE, 5000, rng=0))
    assert np.isfinite(f).all()
    assert np.abs(f[:, 0] - 1).max() < 1e-9


def test_a_little_off_the_floor_the_nearest_point_counts():
    f = neumann(GRID_ROOM, 3, h=0.1)  # its first points have x = 0.55, and the next ones towards the wall are missing
    assert (f.at([0.4, 2.55]) == f.at([0.55, 2.55])).all()


def test_what_did_not_converge_is_refused(monkeypatch):
    monkeypatch.setattr(spectrum, "RESIDUAL", 0.0)
    with pytest.raises(ArithmeticError, match="eigenvectors did not converge"):
        eigenvectors(path(5), 3)


def test_bad_spacing_is_refused():
    with pytest.raises(ValueError, match="h must be positive, got 0"):
        neumann((1, 1), 2, h=0)
    with pytest.raises(ValueError, match=r"h must divide 1, .*: got 1/h = 2.5"):
        neumann((1, 1), 2, h=0.4)
    with pytest.raises(ValueError, match=r"h must divide 0.5, .*: got 0.5/h = 2.5"):
        neumann(GRID_ROOM, 2, h=0.2)
    with pytest.raises(ValueError, match="radius 3 leaves no room on GridRoom"):
        neumann(GRID_ROOM, 2, h=0.5, radius=3)


def test_a_square_floor_warns_as_a_square_map_does():
    with pytest.warns(CoincidentEigenvalues, match="λ_2 = λ_3"):
        neumann((1, 1), 3, h=0.1)


def test_positions_off_the_floor_are_refused():
    f = neumann((2, 1), 2, h=0.1)
    with pytest.raises(ValueError, match=r"on the floor: \(5, 0.5\) is 3.05 away"):
        f.at([[1, 0.5], [5, 0.5]])
    with pytest.raises(ValueError, match="NaN"):
        f.at([np.nan, 0])
    assert f.at([[0, 0], [2, 1]]) == pytest.approx(f.at([[0.05, 0.05], [1.95, 0.95]]))
