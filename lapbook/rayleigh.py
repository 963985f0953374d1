"""Rayleigh–Ritz: the eigenvectors within a learned span, by one small eigenproblem from data."""

from __future__ import annotations

import copy
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import scipy.linalg
import scipy.sparse as sp
from scipy.sparse.linalg import eigsh

from lapbook.layouts import Seed
from lapbook.rollouts import Data, pair_probabilities, pairs

if TYPE_CHECKING:
    from lapbook.training import Representation

EXACT_UP_TO = 4096  # distinct observations; beyond, the law of the pairs is too large a table and is sampled


def rotation(f: np.ndarray, g: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Eigenvalues λ, shape (d,), and Q, shape (d, d), from values f(s), g = f(s') of shape (batch, d) on sampled pairs.

    With G = E (f(s) - f(s'))(f(s) - f(s'))ᵀ / 2 and M = E f fᵀ, solve G q = λ M q. The columns of fQ are the
    eigenfunctions of I - P within the span of f, ordered, with mean square 1; λ are their eigenvalues.
    """
    f, g = np.asarray(f, dtype=float), np.asarray(g, dtype=float)
    if f.shape != g.shape or f.ndim != 2:
        raise ValueError(f"f and g must have the same shape (batch, d), got {f.shape} and {g.shape}")
    if len(f) < f.shape[1]:
        raise ValueError(f"f must have at least as many samples as dimensions: got {len(f)} for {f.shape[1]}")
    difference = f - g
    G = difference.T @ difference / (2 * len(f))
    # Both ends of a pair are states of the data; using both halves the noise of M and keeps it symmetric in time.
    M = (f.T @ f + g.T @ g) / (2 * len(f))
    return _solve(G, M)


def empirical(data: Data, gamma: float = 0.9) -> tuple[np.ndarray, np.ndarray]:
    """The walk as the data show it: I - P and ρ of the pairs, as matrices G and M of shape (m, m).

    For f of shape (m, d), fᵀGf = E (f(s) - f(s'))(f(s) - f(s'))ᵀ / 2 and fᵀMf = E f fᵀ over all pairs, not a sample.
    """
    W = pair_probabilities(data, gamma)
    W = (W + W.T) / 2
    M = np.diag(W.sum(axis=1))
    return M - W, M


def data_spectrum(
    data: Data, d: int, gamma: float = 0.9, samples: int | None = None, rng: Seed = 0
) -> tuple[np.ndarray, np.ndarray]:
    """Eigenvalues, shape (d,), and eigenvectors, shape (m, d), of the walk as the data show it.

    These are the minimiser of the weighted objective over all functions of the state. Their SimGT is the ceiling of
    the data, a yardstick for learners that minimise it on these data and cannot fit all the noise in them.

    All pairs count, in dense matrices. Where there are thousands of states, give a number of `samples` instead: so
    many pairs are drawn with `rng` and their sparse matrix is solved.
    """
    m = len(data.observations)
    if not 1 <= d <= m:
        raise ValueError(f"d must be between 1 and {m}, the number of distinct states: got {d}")
    if samples is None:
        return scipy.linalg.eigh(*empirical(data, gamma), subset_by_index=(0, d - 1))
    s, t = pairs(data, samples, gamma, rng)
    W = sp.coo_array((np.full(2 * samples, 0.5 / samples), (np.append(s, t), np.append(t, s))), shape=(m, m)).tocsr()
    rho = W.sum(axis=1)
    if not rho.all():
        raise ValueError(f"samples must be enough to meet every state: of {m}, {(rho == 0).sum()} are in no pair")
    scale = sp.diags_array(rho**-0.5)
    values, vectors = eigsh(scale @ W @ scale, d, which="LA", v0=rho**0.5)  # of P, where the largest are sought
    order = np.argsort(-values)
    return 1 - values[order], scale @ vectors[:, order]


def ritz(
    rep: Representation, data: Data, gamma: float = 0.9, rng: Seed = 0, samples: int = 200_000
) -> tuple[Representation, np.ndarray]:
    """The same representation turned into eigenfunctions, ordered, with mean square 1; and their eigenvalues, (d,).

    The rotation is folded into the last layer. Eigenvalues are those of I - P for the multi-step pairs of that γ.
    All pairs of the data count where there are few distinct observations, else `samples` of them, drawn with `rng`.
    """
    if len(data.observations) <= EXACT_UP_TO:
        f, (G, M) = rep(data.observations).astype(float), empirical(data, gamma)
        values, Q = _solve(f.T @ G @ f, f.T @ M @ f)
    else:
        s, t = pairs(data, samples, gamma, rng)
        values, Q = rotation(rep(data.observations[s]), rep(data.observations[t]))
    return turned(rep, Q), values


def turned(rep: Representation, Q: np.ndarray) -> Representation:
    """f ↦ fQ with Q of shape (d, d), as a change of the last layer."""
    import torch

    if np.shape(Q) != (rep.settings.d, rep.settings.d):
        raise ValueError(f"Q must have shape {(rep.settings.d, rep.settings.d)}, got {np.shape(Q)}")
    encoder = copy.deepcopy(rep.encoder)
    last, turn = encoder[-1], torch.from_numpy(np.ascontiguousarray(Q.T, dtype=np.float64))
    with torch.no_grad():
        last.weight.copy_(turn @ last.weight.double())
        last.bias.copy_(turn @ last.bias.double())
    return replace(rep, encoder=encoder)


def _solve(G: np.ndarray, M: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    weakest = np.linalg.eigvalsh(M)[0]
    if weakest <= 1e-10 * np.trace(M):
        raise ValueError(
            "the dimensions must be independent: some combination of them vanishes on the data "
            f"(smallest eigenvalue of E f fᵀ: {weakest:.1e})"
        )
    return scipy.linalg.eigh(G, M)
