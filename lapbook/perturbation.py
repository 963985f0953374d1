"""How far the eigenvectors of data are from the truth: first-order perturbation theory of G v = λ M v.

For the walk as N transitions show it, eigenvector i is ψ_i + Σ_j a_ij ψ_j to first order, with

    a_ij = ψ_jᵀ(δG - λ_i δM)ψ_i / (λ_i - λ_j),    E a_ij² = V_ij / N,

where ψ are the true eigenfunctions with mean square 1 and δG, δM the noise. So the squared angle to ψ_i is V_i / N with
V_i = Σ_j V_ij, and what is missing of its cosine half of that. Arrays of V have shape (d, n): row i, column j.
"""

from __future__ import annotations

import numpy as np
import scipy.linalg
import scipy.sparse as sp

from lapbook.objective import Matrix
from lapbook.pairs import empirical, forms, lag_law, pair_probabilities
from lapbook.rollouts import Data


def by_state(data: Data, gamma: float = 0.0) -> tuple[np.ndarray, np.ndarray]:
    """The walk as the data show it, as `pairs.empirical`, but with every state as the start of equally many pairs.

    Pairs from a state that was visited twice as often count half: G and M, shape (m, m), then lack the noise of where
    the walk happened to be. They belong to uniform ρ, whatever the visits were.

    >>> data = Data(np.eye(2), np.array([[0, 1, 0, 1]]), np.array([3]))  # of three steps, two begin in state 0
    >>> [form.tolist() for form in by_state(data)]
    [[[0.5, -0.5], [-0.5, 0.5]], [[0.5, 0.0], [0.0, 0.5]]]
    """
    W = pair_probabilities(data, gamma)
    rho = W.sum(axis=1)
    if not rho.all():
        raise ValueError(f"data must hold a pair from every state: of {len(rho)} none begins in {(rho == 0).sum()}")
    return forms(W / rho[:, None] / len(W))


def time_weights(length: int, gamma: float = 0.9) -> np.ndarray:
    """How often `pairs.draw` takes two times of an episode together, symmetric, shape (length + 1, length + 1).

    >>> time_weights(2, gamma=0).tolist()
    [[0.0, 0.25, 0.0], [0.25, 0.0, 0.25], [0.0, 0.25, 0.0]]
    """
    W = np.zeros((length + 1, length + 1))
    for t in range(length):
        W[t, t + 1 :] = lag_law(length - t, gamma) / length
    return (W + W.T) / 2


def data_noise(
    data: Data, d: int, gamma: float = 0.9, truth: tuple[np.ndarray, np.ndarray] | None = None
) -> np.ndarray:
    """V of the pairs, shape (d, m), from the scatter between episodes, which are independent.

    `truth` may give all eigenvalues (m,) and eigenfunctions with mean square 1 (m, m) of I - P as the pairs see it.
    Without it those of the data take their place: V / N is then an error bar that asks for no truth.

    >>> data = Data(np.eye(3), np.array([[0, 1, 2, 1], [1, 0, 0, 1], [2, 2, 1, 1]]), np.full(3, 3))
    >>> float(data_noise(data, d=1).max().round(9))  # a constant has no noise
    0.0
    """
    episodes, m = len(data.index), len(data.observations)
    if episodes < 2:
        raise ValueError("data must hold at least two episodes, for their scatter to be seen")
    values, vectors = scipy.linalg.eigh(*empirical(data, gamma)) if truth is None else truth
    gaps = _gaps(values, d)
    V = np.empty((d, m))
    for i in range(d):
        score = np.empty((episodes, m))  # ψ_jᵀ(G - λ_i M)ψ_i of one episode
        for length in np.unique(data.lengths):
            chosen = data.lengths == length
            index, W = data.index[chosen, : length + 1], time_weights(length, gamma)
            x = vectors[index, i]
            weight = (1 - values[i]) * W.sum(axis=1) * x - x @ W
            rows = np.repeat(np.arange(len(index)), length + 1)
            score[chosen] = sp.csr_array((weight.ravel(), (rows, index.ravel())), shape=(len(index), m)) @ vectors
        V[i] = score.var(axis=0, ddof=1) * data.transitions / episodes / gaps[i] ** 2
    return V


def visit_noise(walk: Matrix, d: int, length: int) -> np.ndarray:
    """V of single steps in episodes of that length, shape (d, n), for a symmetric transition matrix (n, n).

    Episodes begin in uniformly random states. The score of a step s → s' is the mean of F = ψ_j(s)(μψ_i(s) - ψ_i(s'))
    and the same for the step run backwards, B. Neither is correlated with itself at other times, nor F with earlier B;
    what is left are F and later B, which meet in g(s) = E[B | s] = E[F | s'].

    >>> coin = np.full((2, 2), 0.5)  # ψ_2 = ±1, λ_2 = 1; the score of a step is half the sum of two tosses
    >>> float(visit_noise(coin, d=2, length=1)[1, 0].round(6))
    0.5
    """
    P, mu, psi = _modes(walk)
    n, gaps = len(mu), _gaps(1 - mu, d)
    lag = np.arange(1, length)
    later = ((length - lag)[:, None] * mu ** (lag - 1)[:, None]).sum(axis=0) / length  # of each eigenvalue
    V = np.empty((d, n))
    for i in range(d):
        p, from_state = psi[:, i], sp.diags_array(psi[:, i])
        forward = (psi**2 * (P @ p**2 - (mu[i] * p) ** 2)[:, None]).mean(axis=0)
        # (μψ_i(s) - ψ_i(s'))(μψ_i(s') - ψ_i(s)), as a matrix on the steps that can be taken
        both = (1 + mu[i] ** 2) * from_state @ P @ from_state
        both = both - mu[i] * (sp.diags_array(p**2) @ P + P @ sp.diags_array(p**2))
        g = mu[i] * (P @ (psi * p[:, None])) - p[:, None] * (P @ psi)
        correlated = (psi * (both @ psi)).mean(axis=0) + later @ (psi.T @ g / n) ** 2
        V[i] = (forward + correlated) / 2 / gaps[i] ** 2
    return np.maximum(V, 0)  # of the constant, rounding may leave less


def state_noise(walk: Matrix, d: int) -> np.ndarray:
    """V of single steps weighed as in `by_state`, shape (d, n), for a symmetric transition matrix (n, n).

    The score of a step is half of μψ_i(s')ψ_j(s') - ψ_i(s)ψ_j(s') - ψ_i(s')ψ_j(s), without its mean over s'. That is
    the product of two *differences* along the step, up to terms of order λ_i, so it is small where both are smooth.

    >>> coin = np.full((2, 2), 0.5)  # as for `visit_noise`, but now only the second toss is random
    >>> float(state_noise(coin, d=2)[1, 0].round(6))
    0.25
    """
    P, mu, psi = _modes(walk)
    gaps = _gaps(1 - mu, d)
    V = np.empty((d, len(mu)))
    for i in range(d):
        p, q = psi[:, [i]], psi
        u = mu[i] * p * q
        mean = P @ u - q * (P @ p) - p * (P @ q)
        square = P @ u**2 + q**2 * (P @ p**2) + p**2 * (P @ q**2)
        square += 2 * (p * q * (P @ (p * q)) - q * (P @ (u * p)) - p * (P @ (u * q)))
        V[i] = (square - mean**2).mean(axis=0) / 4 / gaps[i] ** 2
    return np.maximum(V, 0)


def _modes(walk: Matrix) -> tuple[sp.csr_array, np.ndarray, np.ndarray]:
    """The walk as a sparse matrix, its eigenvalues, largest first, and eigenfunctions with mean square 1."""
    P = sp.csr_array(walk, dtype=float)
    if P.shape[0] != P.shape[1] or abs(P - P.T).max() > 1e-12 or np.abs(P.sum(axis=1) - 1).max() > 1e-9:
        raise ValueError(f"walk must be a symmetric matrix whose rows sum to 1, got shape {P.shape}")
    mu, vectors = np.linalg.eigh(P.toarray())
    return P, mu[::-1], np.sqrt(len(mu)) * vectors[:, ::-1]


def _gaps(values: np.ndarray, d: int) -> np.ndarray:
    """λ_j - λ_i, shape (d, n), infinite for j = i."""
    if not 1 <= d <= len(values):
        raise ValueError(f"d must be between 1 and {len(values)}, the number of states: got {d}")
    gaps = values - values[:d, None]
    gaps[np.arange(d), np.arange(d)] = np.inf
    closest = np.abs(gaps).min()
    if closest < 1e-9:
        i, j = np.unravel_index(np.abs(gaps).argmin(), gaps.shape)
        raise ValueError(f"eigenvalues must be distinct: λ_{i + 1} and λ_{j + 1} are the same within rounding")
    return gaps
