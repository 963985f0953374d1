import numpy as np
import pytest
import scipy.linalg
import scipy.sparse as sp

import lapbook as lb
from lapbook.layouts import Layout
from lapbook.pairs import empirical, multi_step, pair_probabilities
from lapbook.perturbation import by_state, data_noise, state_noise, time_weights, visit_noise
from lapbook.rollouts import Data

MAP = Layout("....\n.#.#\n..##")  # eight cells, no two eigenvalues equal
N, D = MAP.n, 4
WALK = np.eye(N) - lb.spectrum.laplacian(MAP).toarray() / 4
NU, VECTORS = np.linalg.eigh(np.eye(N) - WALK)
PSI = np.sqrt(N) * VECTORS


def walks(episodes: int, length: int, rng) -> Data:
    """Random walks from uniformly random cells."""
    rng = np.random.default_rng(rng)
    path = [rng.integers(N, size=episodes)]
    for _ in range(length):
        path.append(MAP.moves[path[-1], rng.integers(4, size=episodes)])
    return Data(MAP.xy, np.stack(path, axis=1), np.full(episodes, length), np.arange(N))


def measured(operator, episodes: int, length: int, gamma: float, repeats: int = 400) -> np.ndarray:
    """N times the mean square of the components of the error, shape (D, N), over many data sets."""
    squares = np.zeros((D, N))
    for seed in range(repeats):
        _, vectors = scipy.linalg.eigh(*operator(walks(episodes, length, seed), gamma), subset_by_index=(0, D - 1))
        components = (PSI.T @ vectors / N).T
        squares += (components / np.diag(components)[:, None]) ** 2
    squares *= episodes * length / repeats
    squares[np.arange(D), np.arange(D)] = 0
    return squares


def test_pairs_of_times_give_the_law_of_the_pairs():
    data = walks(30, 7, 0)
    for gamma in (0.0, 0.9):
        W = np.zeros((N, N))
        for episode in data.index:
            np.add.at(W, np.ix_(episode, episode), time_weights(7, gamma) / len(data.index))
        law = pair_probabilities(data, gamma)
        assert pytest.approx((law + law.T) / 2, abs=1e-12) == W


@pytest.mark.parametrize("length", [1, 10])
def test_noise_by_visits(length):
    V = visit_noise(WALK, D, length)
    found = measured(empirical, 4000 // length, length, gamma=0.0)
    assert found.sum(axis=1)[1:] == pytest.approx(V.sum(axis=1)[1:], rel=0.15)
    assert V[0] == pytest.approx(0, abs=1e-9)  # the constant is known
    assert (V >= 0).all()
    assert (np.diag(V) == 0).all()


def test_noise_by_states_is_far_smaller():
    V = state_noise(WALK, D)
    found = measured(by_state, 400, 10, gamma=0.0)
    assert found.sum(axis=1)[1:] == pytest.approx(V.sum(axis=1)[1:], rel=0.15)
    assert V.sum() < 0.5 * visit_noise(WALK, D, 10).sum()
    assert state_noise(sp.csr_array(WALK), D) == pytest.approx(V)


@pytest.mark.parametrize("gamma", [0.0, 0.9])
def test_the_error_bar_from_data(gamma):
    seen = multi_step(1 - NU, 10, gamma)
    V = data_noise(walks(20_000, 10, 0), D, gamma, truth=(seen, PSI))
    if gamma == 0:
        exact = visit_noise(WALK, D, 10)
        assert V == pytest.approx(exact, rel=0.1, abs=0.02 * exact.max())
    else:
        found = measured(empirical, 400, 10, gamma)
        assert found.sum(axis=1)[1:] == pytest.approx(V.sum(axis=1)[1:], rel=0.15)
    without_truth = data_noise(walks(400, 10, 1), D, gamma)
    assert without_truth.sum(axis=1)[1:] == pytest.approx(V.sum(axis=1)[1:], rel=0.4)


def test_episodes_of_different_lengths():
    """Cut off at their ends they must count like episodes that never were longer."""
    long, short = walks(300, 8, 0), walks(300, 3, 1)
    padded = np.hstack([short.index, np.repeat(short.index[:, -1:], 5, axis=1)])
    both = Data(MAP.xy, np.vstack([long.index, padded]), np.repeat([8, 3], 300), np.arange(N))
    G, M = empirical(both, 0.5)
    seen = scipy.linalg.eigh(G, M)
    V = data_noise(both, D, 0.5)
    score = []  # ψ_2ᵀ(G - λ_2 M)ψ_3 of each episode, from its own matrices
    for data in (long, short):
        for episode, length in zip(data.index, data.lengths, strict=True):
            g, m = empirical(Data(MAP.xy, episode[None], np.array([length])), 0.5)
            score.append(seen[1][:, 2] @ (g - seen[0][1] * m) @ seen[1][:, 1])
    assert np.mean(score) == pytest.approx(0, abs=1e-12)
    gap = seen[0][2] - seen[0][1]
    assert V[1, 2] == pytest.approx(np.var(score, ddof=1) * both.transitions / 600 / gap**2)


def test_every_transition_once_gives_the_walk_itself():
    s, a = np.divmod(np.arange(4 * N), 4)
    once = np.stack([s, MAP.moves[s, a]], axis=1)
    steps = np.vstack([once, once[s == 0], once[s == 0]])  # state 0 is seen more often …
    G, M = by_state(Data(MAP.xy, steps, np.ones(len(steps), dtype=int)))
    assert pytest.approx(np.eye(N) / N) == M  # … and counts no more than the others
    assert pytest.approx((np.eye(N) - WALK) / N) == G


def test_bad_input_is_refused():
    with pytest.raises(ValueError, match="walk must be a symmetric matrix whose rows sum to 1"):
        visit_noise(np.array([[0.5, 0.5], [0.2, 0.8]]), 1, 10)
    ring = np.roll(np.eye(4), 1, axis=0) / 2 + np.roll(np.eye(4), -1, axis=0) / 2
    with pytest.raises(ValueError, match="λ_2 and λ_3 are the same within rounding"):
        state_noise(ring, 3)
    with pytest.raises(ValueError, match="d must be between 1 and 8"):
        state_noise(WALK, 9)
    with pytest.raises(ValueError, match="at least two episodes"):
        data_noise(walks(1, 50, 0), 2)
    ending = Data(MAP.xy[:2], np.array([[0, 1]]), np.array([1]))
    with pytest.raises(ValueError, match="of 2 none begins in 1"):
        by_state(ending)
