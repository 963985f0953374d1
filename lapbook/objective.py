"""The paper's objectives on matrices, and the quantities of its theorem (sections 2.3 and 3, appendix A).

Throughout, U has orthonormal columns u_1 … u_d, shape (n, d), and E holds the eigenvectors e_1 … e_d. Where U = EQ, the
entry q_ji = Q[j, i] is the component of u_i along e_j, and a_ji = q_ji² is the share of e_j in u_i.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike

Matrix: TypeAlias = np.ndarray | sp.sparray


def graph_drawing(U: np.ndarray, L: Matrix) -> float:
    """Eq. (2): Σ_i u_iᵀ L u_i, for U of shape (n, d).

    >>> graph_drawing(np.eye(2), np.array([[1, -1], [-1, 1]]))  # a whole basis: the trace of L
    2.0
    """
    return float(np.sum(U * (L @ U)))


def generalized(U: np.ndarray, L: Matrix, c: ArrayLike) -> float:
    """Eq. (3): Σ_i c_i u_iᵀ L u_i, for U of shape (n, d) and c of shape (d,).

    >>> generalized(np.eye(2), np.array([[1, -1], [-1, 1]]), [2, 1])
    3.0
    """
    return float(np.sum(U * (L @ U), axis=0) @ np.asarray(c))


def minimum(values: ArrayLike, c: ArrayLike) -> float:
    """Theorem 1: the smallest value of eq. (3), Σ_i c_i λ_i, for decreasing c and ascending eigenvalues.

    >>> minimum([1.0, 2.0, 4.0], [3, 2, 1])
    11.0
    """
    c = np.asarray(c)
    return float(c @ np.asarray(values)[: len(c)])


def coefficients(d: int, kind: str | Sequence[float] | np.ndarray = "paper", decreasing: bool = True) -> np.ndarray:
    """The weights c_1 … c_d of eq. (3), shape (d,).

    `"paper"` is d, d-1, …, 1 (eq. 4). `"convex"` and `"concave"` run from d to 1 with increasing and with decreasing
    first differences (groups 1 and 2 of Fig. 11, whose values the paper does not print). `"equal"` is 1, …, 1, which
    gives back eq. (2). Any other sequence must be finite, positive and strictly decreasing, unless
    `decreasing=False`, which asks for finite numbers only.

    >>> coefficients(4).tolist()
    [4.0, 3.0, 2.0, 1.0]
    """
    if d < 1:
        raise ValueError(f"d must be at least 1, got {d}")
    if isinstance(kind, str):
        i, last = np.arange(d), max(d - 1, 1)
        kinds = {"paper": d - i, "equal": np.ones(d), "convex": 1 + (d - 1 - i) ** 2 / last, "concave": d - i**2 / last}
        if kind not in kinds:
            raise ValueError(f"coefficients must be one of {', '.join(kinds)}, or {d} numbers: got {kind!r}")
        return kinds[kind].astype(float)
    c = np.asarray(kind, dtype=float)
    if c.shape != (d,):
        raise ValueError(f"coefficients must be {d} numbers, one per dimension: got shape {c.shape}")
    if not np.isfinite(c).all():
        raise ValueError(f"coefficients must be finite: c[{int(np.argmin(np.isfinite(c))) + 1}] is not")
    if decreasing:
        rises = np.flatnonzero(np.diff(c) >= 0)
        if len(rises):
            k = int(rises[0]) + 1
            raise ValueError(f"coefficients must be strictly decreasing: c[{k + 1}]={c[k]:g} ≥ c[{k}]={c[k - 1]:g}")
        if c[-1] <= 0:
            raise ValueError(f"coefficients must be positive: c[{d}]={c[-1]:g} ≤ 0")
    return c


def shares(Q: ArrayLike) -> np.ndarray:
    """A = Q∘Q, shape (d, d): a_ji is the share of e_j in u_i. Rows and columns sum to 1.

    >>> shares([[0.6, -0.8], [0.8, 0.6]]).round(2).tolist()
    [[0.36, 0.64], [0.64, 0.36]]
    """
    return np.asarray(Q) ** 2


def block_mass(A: np.ndarray) -> np.ndarray:
    """m_k = Σ_{i≤k} Σ_{j>k} a_ji for k = 1 … d-1, shape (d-1,): how much of u_1…u_k lies outside e_1…e_k.

    Lemma 1, eq. (11): for a doubly stochastic A the transposed block has the same sum.

    >>> block_mass(shares(np.eye(3)[:, [1, 2, 0]])).tolist()  # e_2, e_3, e_1
    [1.0, 1.0]
    """
    d = len(A)
    return np.array([A[k:, :k].sum() for k in range(1, d)])


def gap(Q: ArrayLike, values: ArrayLike, c: ArrayLike) -> float:
    """Eq. (16): g = Σ_i c_i Σ_j a_ji λ_j - Σ_i c_i λ_i, the objective of EQ above Σ c_i λ_i.

    >>> gap([[0, 1], [1, 0]], values=[0, 3], c=[2, 1])  # in the wrong order, 2·3 instead of 1·3
    3.0
    """
    values, c = np.asarray(values, dtype=float), np.asarray(c, dtype=float)
    return float(values @ shares(Q) @ c - values @ c)


def gap_weights(Q: ArrayLike, c: ArrayLike) -> np.ndarray:
    """Eq. (20): s_k = Σ_{i≤k} Σ_{j>k} (c_i a_ji - c_j a_ij) for k = 1 … d-1, shape (d-1,).

    The gap is Σ_k s_k (λ_{k+1} - λ_k), eq. (19), and s_k ≥ (c_k - c_{k+1}) m_k ≥ 0 where c decreases, eq. (22).

    >>> gap_weights([[0, 1], [1, 0]], c=[2, 1]).tolist()
    [1.0]
    """
    A, c = shares(Q), np.asarray(c, dtype=float)
    r = A * c  # r_ji = c_i a_ji
    return block_mass(r - r.T)


def plane_gap(theta: ArrayLike, c: ArrayLike, values: ArrayLike) -> np.ndarray:
    """The gap after turning e_i, e_j by θ, shape (...), in their plane: (c_i - c_j)(λ_j - λ_i) sin²θ.

    >>> plane_gap([0, np.pi / 4, np.pi / 2], c=[2, 1], values=[0, 3]).round(6).tolist()
    [0.0, 1.5, 3.0]
    """
    return -np.diff(c)[0] * np.diff(values)[0] * np.sin(theta) ** 2


def slowest_rate(values: ArrayLike, c: ArrayLike) -> float:
    """The rate at which descent on frames loses its slowest error, over c_1, for λ_1 … λ_{d+1} and c_1 … c_d.

    An error in the plane of e_i and e_j goes at the rate (c_i - c_j)(λ_j - λ_i), one out of the span at
    2 c_i (λ_j - λ_i); neighbours are the slowest. Over c_1, because the steps must be as small as that is large.

    >>> slowest_rate([0.0, 1.0, 3.0], [2, 1])
    0.5
    """
    values, c = np.asarray(values, dtype=float), np.asarray(c, dtype=float)
    if values.shape != (len(c) + 1,):
        raise ValueError(f"values must be {len(c) + 1} eigenvalues, one more than c has: got shape {values.shape}")
    return float((np.append(c[:-1] - c[1:], 2 * c[-1]) * np.diff(values)).min() / c[0])


def equalised(values: ArrayLike) -> np.ndarray:
    """The c, shape (d,), whose `slowest_rate` is the largest for eigenvalues λ_1 < … < λ_{d+1}; c_1 = d.

    All errors between neighbours go at one rate: c_i - c_{i+1} is proportional to 1 / (λ_{i+1} - λ_i).

    >>> equalised([0.0, 1.0, 2.0]).round(3).tolist()
    [2.0, 0.667]
    """
    gaps = np.diff(np.asarray(values, dtype=float))
    if len(gaps) < 1 or not (gaps > 0).all():
        raise ValueError(f"values must be at least two eigenvalues, strictly increasing: got gaps {gaps.tolist()}")
    waits = 1 / gaps
    waits[-1] /= 2  # out of the span one vector moves, not two
    c = np.cumsum(waits[::-1])[::-1]
    return len(c) * c / c[0]


def pair_loss(f: Any, g: Any, c: Any) -> Any:
    """Eq. (6) for any c: the mean over pairs (s, s') of Σ_i c_i (f_i(s) - f_i(s'))².

    f, g of shape (batch, d) and c of shape (d,), all numpy arrays or all torch tensors. For an eigenfunction of the
    walk with eigenvalue 1 - λ each term is 2 λ c_i E f_i².

    >>> float(pair_loss(np.array([[1, 0]]), np.array([[0, 2]]), np.array([3, 1])))  # 3·1² + 1·2²
    7.0
    """
    return (((f - g) ** 2) @ c).mean()


def penalty(F1: Any, F2: Any, c: Any, target: float = 1.0) -> Any:
    """Eq. (7) and (8) for any c: Σ_jk min(c_j, c_k) (E f_j f_k - τ δ_jk)², without bias.

    The square is the product of two estimates from independent batches F1, F2 of shape (batch, d). `target` is τ,
    the mean square wanted of each f_i: 1 in the paper, 1/d in the code it builds on.

    >>> F = np.array([[1, 1], [1, -1]])  # E f_j f_k = δ_jk, as it should be
    >>> float(penalty(F, F, np.array([2, 1]))), float(penalty(2 * F, 2 * F, np.array([2, 1])))
    (0.0, 27.0)
    """
    G1, G2 = F1.T @ F1 / len(F1), F2.T @ F2 / len(F2)
    lesser = (c[:, None] + c - abs(c[:, None] - c)) / 2  # min(c_j, c_k)
    both = G1.diagonal() + G2.diagonal()
    return (lesser * G1 * G2).sum() - target * (c * both).sum() + target**2 * c.sum()


def mean_square(values: ArrayLike, beta: float, target: float = 1.0) -> np.ndarray:
    """What the penalty leaves of each dimension: E f_i² = τ max(0, 1 - λ_i/(β τ)), for the eigenvalues λ_i of I - P.

    A dimension with λ_i ≥ β τ vanishes.

    >>> mean_square([0.0, 0.5, 2.0], beta=1.0).tolist()
    [1.0, 0.5, 0.0]
    """
    return target * np.maximum(0, 1 - np.asarray(values) / (beta * target))
