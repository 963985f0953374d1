import itertools

import networkx as nx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.linalg import expm
from scipy.spatial.transform import Rotation
from scipy.stats import ortho_group

from lapbook import descent
from lapbook import objective as ob
from lapbook.layouts import GRID_ROOM
from lapbook.spectrum import eigenvectors, laplacian

PATH = np.array([[1.0, -1, 0], [-1, 2, -1], [0, -1, 1]])  # eigenvalues 0, 1, 3


@st.composite
def problems(draw):
    """A random connected weighted graph, strictly decreasing c > 0 and a random rotation."""
    n = draw(st.integers(3, 9))
    d = draw(st.integers(2, n))
    rng = np.random.default_rng(draw(st.integers(0, 2**31)))
    A = rng.uniform(0.2, 1, (n, n)) * (rng.random((n, n)) < 0.4)
    A[np.arange(n - 1), np.arange(1, n)] = 1  # a path, so that the graph is connected
    A = np.triu(A, 1)
    c = np.cumsum(rng.uniform(0.05, 1, d))[::-1]
    # Shifted, so that no eigenvalue is 0: a forgotten first term would not show there.
    L = laplacian(A + A.T).toarray() + rng.uniform(0, 2) * np.eye(n)
    return L, d, c, ortho_group.rvs(d, random_state=rng), rng


def random_frame(n, d, rng):
    return np.linalg.qr(rng.standard_normal((n, d)))[0]


def test_objectives_by_hand():
    U = np.array([[1.0, 0], [0, 1], [0, 0]])
    assert ob.graph_drawing(U, PATH) == 1 + 2
    assert ob.generalized(U, PATH, [5, 2]) == 5 * 1 + 2 * 2
    assert ob.minimum(np.array([0.0, 1.0, 3.0]), [5, 2]) == 2


def test_quarter_turn_by_hand():
    Q = np.array([[0.0, -1], [1, 0]])  # u_1 = e_2, u_2 = -e_1
    assert ob.block_mass(ob.shares(Q)).tolist() == [1]
    assert ob.gap_weights(Q, [5, 2]).tolist() == [3]
    assert ob.gap(Q, np.array([0.5, 1.5]), [5, 2]) == 3


@settings(max_examples=60, deadline=None)
@given(problems())
def test_every_step_of_the_proof(problem):
    L, d, c, Q, _ = problem
    values, vectors = np.linalg.eigh(L)
    U = vectors[:, :d] @ Q
    A = ob.shares(Q)
    assert A.sum(axis=0) == pytest.approx(np.ones(d))
    assert A.sum(axis=1) == pytest.approx(np.ones(d))
    assert ob.block_mass(A) == pytest.approx(ob.block_mass(A.T))  # Lemma 1
    g = ob.generalized(U, L, c) - ob.minimum(values, c)
    assert ob.gap(Q, values[:d], c) == pytest.approx(g, abs=1e-9)
    s = ob.gap_weights(Q, c)
    assert s @ np.diff(values[:d]) == pytest.approx(g, abs=1e-9)
    assert (s >= (c[:-1] - c[1:]) * ob.block_mass(A) - 1e-12).all()
    assert g >= -1e-9


@settings(max_examples=60, deadline=None)
@given(problems())
def test_no_frame_beats_the_eigenvectors(problem):
    """The sharper theorem: over all orthonormal frames, not only those in the span."""
    L, d, c, _, rng = problem
    values, vectors = np.linalg.eigh(L)
    assert ob.generalized(vectors[:, :d], L, c) == pytest.approx(ob.minimum(values, c), abs=1e-9)
    for _ in range(20):
        assert ob.generalized(random_frame(len(L), d, rng), L, c) >= ob.minimum(values, c) - 1e-9


@settings(max_examples=40, deadline=None)
@given(problems(), st.floats(0.001, 1))
def test_a_small_gap_means_good_vectors(problem, size):
    """The stability corollary over all frames, and its equality for a turn in one plane."""
    L, d, c, _, rng = problem
    values, vectors = np.linalg.eigh(L)
    n = len(L)
    skew = rng.standard_normal((n, n))
    U = vectors @ expm(size * (skew - skew.T))[:, :d]
    g = ob.generalized(U, L, c) - ob.minimum(values, c)
    kappa = np.full(d + 1, np.inf)
    kappa[1:] = (c - np.append(c[1:], 0)) * (np.append(values, np.inf)[1 : d + 1] - values[:d])
    missing = 1 - (U * vectors[:, :d]).sum(axis=0) ** 2
    assert (missing <= g / np.minimum(kappa[:-1], kappa[1:]) + 1e-9).all()
    turn = np.eye(d)
    turn[:2, :2] = [[np.cos(size), -np.sin(size)], [np.sin(size), np.cos(size)]]
    assert ob.gap(turn, values[:d], c) == pytest.approx(kappa[1] * np.sin(size) ** 2, abs=1e-9)


def test_uniqueness_over_all_signed_permutations():
    values, c = np.array([0.5, 1.0, 3.0, 4.0]), np.array([9.0, 4.0, 2.0, 1.0])
    for order in itertools.permutations(range(4)):
        for signs in itertools.product((-1, 1), repeat=4):
            g = ob.gap(np.eye(4)[:, order] * signs, values, c)
            assert (abs(g) < 1e-12) == (order == (0, 1, 2, 3))


def test_the_trace_ends_at_the_frame_that_is_returned():
    c = ob.coefficients(2)
    for steps in (0, 10):
        run = descent.minimise(PATH, 2, steps=steps, every=3)
        assert run.objective[-1] == pytest.approx(ob.generalized(run.U, PATH, c))
    start = descent.polar(np.random.default_rng(0).standard_normal((3, 2)))
    assert descent.minimise(PATH, 2, steps=0, start=start).U == pytest.approx(start)


def test_projected_steps_leave_no_normal_part():
    """To first order a projected step stays on the frames, whatever the retraction."""
    rng = np.random.default_rng(0)
    start = descent.polar(rng.standard_normal((3, 2)))
    ends = [
        descent.minimise(PATH, 2, [3, 1], steps=1, retraction=how, project=True, start=start, rate=1e-4).U
        for how in ("polar", "qr")
    ]
    assert np.abs(ends[0] - ends[1]).max() < 1e-7


@settings(max_examples=40, deadline=None)
@given(problems())
def test_graph_drawing_does_not_see_rotations(problem):
    L, d, _, Q, rng = problem
    U = random_frame(len(L), d, rng)
    assert ob.graph_drawing(U @ Q, L) == pytest.approx(ob.graph_drawing(U, L), abs=1e-9)
    assert ob.generalized(U, L, np.ones(d)) == pytest.approx(ob.graph_drawing(U, L), abs=1e-9)


def test_brute_force_over_all_frames_of_three_states():
    angles = np.linspace(0, np.pi, 37)
    frames = Rotation.from_euler("zyz", list(itertools.product(angles, angles, angles))).as_matrix()
    c = np.array([3.0, 1.0])
    found = [ob.generalized(U[:, :2], PATH, c) for U in frames]
    best = frames[np.argmin(found)][:, :2]
    assert min(found) >= 1 - 1e-12  # Σ c_i λ_i = 3·0 + 1·1
    assert min(found) < 1.02
    truth = np.linalg.eigh(PATH)[1][:, :2]
    assert np.abs((best * truth).sum(axis=0)).min() > 0.99


@settings(max_examples=30, deadline=None)
@given(st.floats(-3, 3), st.integers(0, 3), st.integers(0, 3))
def test_plane_gap_is_what_a_rotation_costs(theta, i, j):
    if i >= j:
        return
    values, c = np.array([0.5, 1.0, 3.0, 4.0]), np.array([9.0, 4.0, 2.0, 1.0])
    Q = np.eye(4)
    Q[np.ix_([i, j], [i, j])] = [[np.cos(theta), -np.sin(theta)], [np.sin(theta), np.cos(theta)]]
    expected = ob.plane_gap(theta, (c[i], c[j]), (values[i], values[j]))
    assert ob.gap(Q, values, c) == pytest.approx(expected, abs=1e-12)


def test_retractions_give_frames():
    U = np.random.default_rng(0).standard_normal((7, 3))
    for retract in (descent.polar, descent.qr):
        V = retract(U)
        assert V.T @ V == pytest.approx(np.eye(3), abs=1e-12)
    nearest = np.linalg.norm(U - descent.polar(U))
    assert nearest <= np.linalg.norm(U - descent.qr(U))
    assert descent.qr(U)[:, 0] == pytest.approx(U[:, 0] / np.linalg.norm(U[:, 0]))


@pytest.mark.parametrize("graph", [nx.path_graph(12), nx.random_labeled_tree(15, seed=3), nx.karate_club_graph()])
def test_minimise_finds_the_eigenvectors_in_order(graph):
    L = laplacian(graph)
    truth = eigenvectors(graph, 4)
    found = descent.minimise(L, 4, "paper", steps=4000, rng=1)
    assert found.sim_gt[-1] > 0.999
    assert found.order[-1].tolist() == [1, 2, 3, 4]
    assert found.objective[-1] == pytest.approx(ob.minimum(truth.values, ob.coefficients(4)), abs=1e-6)
    assert found.U.T @ found.U == pytest.approx(np.eye(4), abs=1e-10)


def test_equal_coefficients_stop_at_a_rotation_and_increasing_ones_reverse():
    L = laplacian(GRID_ROOM)
    floor = eigenvectors(GRID_ROOM, 10).values.sum()
    equal = descent.minimise(L, 10, "equal")
    assert equal.objective[-1] == pytest.approx(floor, abs=1e-9)
    assert equal.sim_gt[-1] < 0.4
    rising = descent.minimise(L, 10, np.arange(1, 11))
    assert rising.order[-1].tolist() == list(range(10, 0, -1))


def test_projected_descent_turns_within_the_span_and_momentum_settles():
    graph = nx.path_graph(12)
    L, truth = laplacian(graph), eigenvectors(graph, 3)
    mixed = truth.vectors @ ortho_group.rvs(3, random_state=0)
    assert descent.minimise(L, 3, start=mixed, project=True).sim_gt[-1] > 0.999
    room = laplacian(GRID_ROOM)
    lowest = ob.minimum(eigenvectors(GRID_ROOM, 10).values, ob.coefficients(10))
    assert descent.minimise(room, 10, steps=5000).objective[-1] < lowest + 1e-6


def test_gram_schmidt_sorts_by_itself_unless_the_gradient_is_projected():
    L = laplacian(GRID_ROOM)
    assert descent.minimise(L, 10, "equal", retraction="qr").sim_gt[-1] > 0.95
    assert descent.minimise(L, 10, "equal", retraction="qr", project=True).sim_gt[-1] < 0.4


def test_plain_descent_follows_the_predicted_rate():
    """An error of angle θ in the plane (i, j) shrinks by the factor exp(-rate (c_i - c_j)(λ_j - λ_i)) a step."""
    L, c = laplacian(PATH - np.diag(np.diag(PATH)) < 0), np.array([3.0, 1.0])
    values, vectors = np.linalg.eigh(L.toarray())
    theta = 0.01
    turn = np.array([[np.cos(theta), -np.sin(theta)], [np.sin(theta), np.cos(theta)]])
    run = descent.minimise(L, 2, c, steps=50, momentum=False, start=vectors[:, :2] @ turn, every=1)
    gaps = run.objective - ob.minimum(values, c)
    measured = np.log(gaps[10] / gaps[40]) / 30 / 2  # the gap is proportional to θ²
    assert measured == pytest.approx(descent.step_size(L, c) * 2 * (values[1] - values[0]), rel=0.1)


@pytest.mark.parametrize("d", [1, 2, 10])
def test_kinds_of_coefficients(d):
    paper, convex, concave = (ob.coefficients(d, kind) for kind in ("paper", "convex", "concave"))
    assert paper.tolist() == list(range(d, 0, -1))
    assert ob.coefficients(d, "equal").tolist() == [1] * d
    for c in (paper, convex, concave):
        assert ob.coefficients(d, c).tolist() == c.tolist()  # passes its own check
    assert (np.diff(convex, 2) > 0).all()
    assert (np.diff(concave, 2) < 0).all()


@pytest.mark.parametrize(
    ("c", "message"),
    [
        ([3, 2, 2, 1], r"strictly decreasing: c\[3\]=2 ≥ c\[2\]=2"),
        ([4, 3, 2, 0], r"positive: c\[4\]=0 ≤ 0"),
        ([4, 3, np.nan, 1], r"finite: c\[3\] is not"),
        ([3, 2, 1], r"4 numbers, one per dimension: got shape \(3,\)"),
        ("linear", "one of paper, equal, convex, concave, or 4 numbers: got 'linear'"),
    ],
)
def test_bad_coefficients_are_refused(c, message):
    with pytest.raises(ValueError, match=message):
        ob.coefficients(4, c)


def test_other_bad_arguments_are_refused():
    with pytest.raises(ValueError, match="d must be at least 1, got 0"):
        ob.coefficients(0)
    with pytest.raises(ValueError, match="retraction must be 'polar' or 'qr', got 'svd'"):
        descent.minimise(PATH, 2, retraction="svd")
    assert ob.coefficients(3, [0, -1, 2], decreasing=False).tolist() == [0, -1, 2]
    with pytest.raises(ValueError, match="must not all be 0"):
        descent.minimise(PATH, 2, [0, 0])
    with pytest.raises(ValueError, match=r"start must have shape \(3, 2\) and independent columns"):
        descent.minimise(PATH, 2, start=np.ones((3, 2)))
    with pytest.raises(ValueError, match="steps must be at least 0"):
        descent.minimise(PATH, 2, steps=-1)


def test_pair_loss_of_the_exact_walk_is_twice_the_energy():
    """Over all transitions of P = I - L/4 with their probabilities, E (f(s) - f(s'))² = 2 λ E f²."""
    n, rng = GRID_ROOM.n, np.random.default_rng(0)
    U, c = rng.standard_normal((n, 3)), np.array([3.0, 2.0, 0.5])
    s, a = np.divmod(np.arange(4 * n), 4)
    exact = ob.pair_loss(U[s], U[GRID_ROOM.moves[s, a]], c)
    L = laplacian(GRID_ROOM)
    assert exact == pytest.approx(2 * ob.generalized(U, L / 4, c) / n)
    torch = pytest.importorskip("torch")
    f, g, w = (torch.tensor(x) for x in (U[s], U[GRID_ROOM.moves[s, a]], c))
    assert float(ob.pair_loss(f, g, w)) == pytest.approx(exact)


@settings(max_examples=20, deadline=None)
@given(st.integers(1, 5), st.integers(0, 2**31))
def test_penalty_is_the_papers_triple_sum(d, seed):
    rng = np.random.default_rng(seed)
    F1, F2 = rng.standard_normal((2, 6, d))
    delta = np.eye(d)
    H = np.mean([(np.outer(x, x) - delta) * (np.outer(y, y) - delta) for x in F1 for y in F2], axis=0)
    triple = sum(H[j, k] for top in range(d) for j in range(top + 1) for k in range(top + 1))
    assert ob.penalty(F1, F2, ob.coefficients(d)) == pytest.approx(triple)
    torch = pytest.importorskip("torch")
    tensors = [torch.tensor(x) for x in (F1, F2, ob.coefficients(d))]
    assert float(ob.penalty(*tensors)) == pytest.approx(triple)


def test_collapse_law_is_the_minimum_of_loss_and_penalty():
    """One dimension of mean square x costs c (2 λ x + β (x - s)²)."""
    x = np.linspace(0, 2, 200_001)
    for value, beta, target in ((0.3, 1.0, 1.0), (0.05, 0.5, 0.1), (0.9, 0.5, 1.0)):
        cost = 2 * value * x + beta * (x - target) ** 2
        assert ob.mean_square(np.array([value]), beta, target)[0] == pytest.approx(x[cost.argmin()], abs=1e-5)
