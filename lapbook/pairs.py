"""Pairs of states (s, s') in data: their law, the operator I - P that they show, and its spectrum (appendix E.1)."""

from __future__ import annotations

import numpy as np
import scipy.linalg
import scipy.sparse as sp
from numpy.typing import ArrayLike
from scipy.sparse.linalg import eigsh

from lapbook.layouts import Seed
from lapbook.rollouts import Data

EXACT_UP_TO = 4096  # distinct observations; beyond, the law of the pairs is too large a table and is sampled
SAMPLES = 100_000  # pairs, where it is


def draw(data: Data, size: int, gamma: float = 0.9, rng: Seed = 0) -> tuple[np.ndarray, np.ndarray]:
    """`size` discounted multi-step transitions (s, s'), as two arrays of rows of `data.observations`.

    Episode and time t are uniform; s' comes 1 + i steps later, where i has the law p(i) = (1-γ)γ^i / (1-γ^n), a
    geometric one cut off at the n steps that are left. γ = 0 gives single steps.

    >>> forward = Data(np.eye(3), np.array([[0, 1, 2]]), np.array([2]))
    >>> s, t = draw(forward, 4, gamma=0)
    >>> (t - s).tolist()
    [1, 1, 1, 1]
    """
    _check_gamma(gamma)
    rng = np.random.default_rng(rng)
    episode = rng.integers(len(data.index), size=size)
    t = rng.integers(data.lengths[episode])
    left = data.lengths[episode] - t
    u = rng.random(size)
    if gamma > 0:
        # The inverse of the distribution function 1 - γ^(i+1) over 1 - γ^n; rounding must not lead past the end.
        later = np.floor(np.log1p(-u * (1 - gamma**left)) / np.log(gamma)).astype(int)
        lag = 1 + np.minimum(later, left - 1)
    else:
        lag = np.ones(size, dtype=int)
    return data.index[episode, t], data.index[episode, t + lag]


def visited(data: Data, size: int, rng: Seed = 0) -> np.ndarray:
    """`size` rows of `data.observations` drawn from ρ, the distribution of states in the data.

    >>> forward = Data(np.eye(3), np.array([[0, 1, 2]]), np.array([2]))
    >>> np.unique(visited(forward, 100)).tolist()
    [0, 1, 2]
    """
    rng = np.random.default_rng(rng)
    episode = rng.integers(len(data.index), size=size)
    return data.index[episode, rng.integers(data.lengths[episode] + 1)]


def lag_law(left: int, gamma: float = 0.9) -> np.ndarray:
    """p(i) = (1-γ)γ^i / (1-γ^n), the law of `draw` for i = 0 … n-1 where n = `left` steps are left, shape (n,).

    >>> lag_law(2, gamma=0.5).round(3).tolist()  # 1 : 1/2
    [0.667, 0.333]
    """
    _check_gamma(gamma)
    weights = float(gamma) ** np.arange(left)  # 0⁰ = 1: without discount the lag is 1
    return weights / weights.sum()


def multi_step(walk: ArrayLike, length: int, gamma: float = 0.9) -> np.ndarray:
    """Eigenvalues of I - P that the pairs see, 1 - E μ^lag, for those μ of one step of P, shape (d,) → (d,).

    Of episodes of that length, t is uniform and the lag has the law of `draw`. The eigenvectors are the same, where
    the walk looks the same run backwards.

    >>> multi_step([1, 0.5, -1], length=10, gamma=0).tolist()  # single steps: 1 - μ
    [0.0, 0.5, 2.0]
    """
    laws = [
        lag_law(left, gamma) @ np.power.outer(np.asarray(walk), 1 + np.arange(left)).T for left in range(1, length + 1)
    ]
    return 1 - np.mean(laws, axis=0)


def pair_probabilities(data: Data, gamma: float = 0.9) -> np.ndarray:
    """The exact law of `draw`: entry (s, s') is the probability of that pair of rows, shape (m, m).

    >>> forward = Data(np.eye(3), np.array([[0, 1, 2]]), np.array([2]))
    >>> pair_probabilities(forward, gamma=0.5).round(3).tolist()
    [[0.0, 0.333, 0.167], [0.0, 0.0, 0.5], [0.0, 0.0, 0.0]]
    """
    _check_gamma(gamma)
    m, total = len(data.observations), np.zeros(len(data.observations) ** 2)
    for length in np.unique(data.lengths):
        index = data.index[data.lengths == length]
        weights = (1 - gamma) / (1 - gamma ** np.arange(length, 0, -1)) / (length * len(data.index))  # at t = 0 …
        for i in range(length):
            if gamma**i < 1e-17:  # nothing is left to add
                break
            pair = index[:, : length - i] * m + index[:, 1 + i : length + 1]
            share = np.broadcast_to(gamma**i * weights[: length - i], pair.shape)
            total += np.bincount(pair.ravel(), share.ravel(), minlength=m * m)
    return total.reshape(m, m)


def forms(W: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """I - P and ρ as matrices G and M, shape (m, m), of a walk whose pairs have the probabilities W, shape (m, m).

    Pairs count in both directions: the walk run backwards is as good.

    >>> [form.tolist() for form in forms(np.array([[0.0, 1.0], [0.0, 0.0]]))]
    [[[0.5, -0.5], [-0.5, 0.5]], [[0.5, 0.0], [0.0, 0.5]]]
    """
    W = (W + W.T) / 2
    M = np.diag(W.sum(axis=1))
    return M - W, M


def empirical(data: Data, gamma: float = 0.9) -> tuple[np.ndarray, np.ndarray]:
    """The walk as the data show it: I - P and ρ of the pairs, as matrices G and M of shape (m, m).

    For f of shape (m, d), fᵀGf = E (f(s) - f(s'))(f(s) - f(s'))ᵀ / 2 and fᵀMf = E f fᵀ over all pairs, not a sample.

    >>> data = Data(np.eye(2), np.array([[0, 1, 0]]), np.array([2]))  # there and back
    >>> [form.tolist() for form in empirical(data, gamma=0)]
    [[[0.5, -0.5], [-0.5, 0.5]], [[0.5, 0.0], [0.0, 0.5]]]
    """
    return forms(pair_probabilities(data, gamma))


def pencil(
    f: np.ndarray, data: Data, gamma: float = 0.9, rng: Seed = 0, samples: int = SAMPLES
) -> tuple[np.ndarray, np.ndarray]:
    """G and M of `empirical` for f of shape (m, k), as (k, k): over all pairs, or `samples` where states are many.

    >>> data = Data(np.eye(2), np.array([[0, 1, 0]]), np.array([2]))
    >>> [form.tolist() for form in pencil(np.array([[1.0], [-1.0]]), data, gamma=0)]  # λ = 2: it changes its sign
    [[[2.0]], [[1.0]]]
    """
    if len(f) <= EXACT_UP_TO:
        G, M = empirical(data, gamma)
        return f.T @ G @ f, f.T @ M @ f
    s, t = draw(data, samples, gamma, rng)
    return moments(f[s], f[t])


def data_spectrum(
    data: Data, d: int, gamma: float = 0.9, samples: int | None = None, rng: Seed = 0
) -> tuple[np.ndarray, np.ndarray]:
    """Eigenvalues, shape (d,), and eigenvectors, shape (m, d), of the walk as the data show it.

    These are the minimiser of the weighted objective over all functions of the state. Their SimGT is the ceiling of
    the data, a yardstick for learners that minimise it on these data and cannot fit all the noise in them.

    All pairs count, in dense matrices. Where there are thousands of states, give a number of `samples` instead: so
    many pairs are drawn with `rng` and their sparse matrix is solved.

    >>> data = Data(np.eye(2), np.array([[0, 1, 0]]), np.array([2]))
    >>> np.allclose(data_spectrum(data, d=2, gamma=0)[0], [0, 2])
    True
    """
    m = len(data.observations)
    if not 1 <= d <= m:
        raise ValueError(f"d must be between 1 and {m}, the number of distinct states: got {d}")
    if samples is None:
        return scipy.linalg.eigh(*empirical(data, gamma), subset_by_index=(0, d - 1))
    s, t = draw(data, samples, gamma, rng)
    W = sp.coo_array((np.full(2 * samples, 0.5 / samples), (np.append(s, t), np.append(t, s))), shape=(m, m)).tocsr()
    rho = W.sum(axis=1)
    if not rho.all():
        raise ValueError(f"samples must be enough to meet every state: of {m}, {(rho == 0).sum()} are in no pair")
    scale = sp.diags_array(rho**-0.5)
    values, vectors = eigsh(scale @ W @ scale, d, which="LA", v0=rho**0.5)  # of P, where the largest are sought
    order = np.argsort(-values)
    return 1 - values[order], scale @ vectors[:, order]


def moments(f: np.ndarray, g: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """G and M from the values at the two ends of sampled pairs, shape (batch, k) each.

    >>> [form.tolist() for form in moments(np.array([[1.0]]), np.array([[-1.0]]))]  # as in `pencil`
    [[[2.0]], [[1.0]]]
    """
    # Both ends of a pair are states of the data; using both halves the noise of M and keeps it symmetric in time.
    return (f - g).T @ (f - g) / (2 * len(f)), (f.T @ f + g.T @ g) / (2 * len(f))


def _check_gamma(gamma: float) -> None:
    if not 0 <= gamma < 1:
        raise ValueError(f"gamma must lie in [0, 1), got {gamma}")
