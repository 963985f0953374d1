"""Rayleigh–Ritz: the eigenvectors within a learned span, by one small eigenproblem from data."""

from __future__ import annotations

import copy
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import scipy.linalg

from lapbook.layouts import Seed
from lapbook.pairs import EXACT_UP_TO, draw, moments, pencil
from lapbook.rollouts import Data

if TYPE_CHECKING:
    from lapbook.training import Representation

WEAKEST = 1e-3  # of a hidden layer, directions whose root mean square is less than that of the largest are left out


class DependentDimensionsError(ValueError):
    """Dimensions, or a combination of them, have vanished on the data: there is nothing to turn them by."""


def rotation(f: np.ndarray, g: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Eigenvalues λ, shape (d,), and Q, shape (d, d), from values f(s), g = f(s') of shape (batch, d) on sampled pairs.

    With G = E (f(s) - f(s'))(f(s) - f(s'))ᵀ / 2 and M = E f fᵀ, solve G q = λ M q. The columns of fQ are the
    eigenfunctions of I - P within the span of f, ordered, with mean square 1; λ are their eigenvalues.

    >>> f = np.array([[1, 0], [1, 0], [0, 1], [0, 1]])  # two states that follow each other and themselves equally often
    >>> np.allclose(rotation(f, f[[0, 2, 1, 3]])[0], [0, 1])
    True
    """
    f, g = np.asarray(f, dtype=float), np.asarray(g, dtype=float)
    if f.shape != g.shape or f.ndim != 2:
        raise ValueError(f"f and g must have the same shape (batch, d), got {f.shape} and {g.shape}")
    if len(f) < f.shape[1]:
        raise ValueError(f"f must have at least as many samples as dimensions: got {len(f)} for {f.shape[1]}")
    return _solve(*moments(f, g))


def ritz(
    rep: Representation, data: Data, gamma: float = 0.9, rng: Seed = 0, samples: int = 200_000
) -> tuple[Representation, np.ndarray]:
    """The same representation turned into eigenfunctions, ordered, with mean square 1; and their eigenvalues, (d,).

    The rotation is folded into the last layer. Eigenvalues are those of I - P for the multi-step pairs of that γ.
    All pairs of the data count where there are few distinct observations, else `samples` of them, drawn with `rng`.

    >>> import lapbook as lb
    >>> data = lb.collect("lapbook/GridRoom-v0", transitions=1000)
    >>> rep, values = ritz(lb.learn(data, "smoke", d=2, steps=1), data)
    >>> bool((values >= lb.pairs.data_spectrum(data, 2)[0] - 1e-9).all())  # no span is better than all functions
    True
    """
    if len(data.observations) <= EXACT_UP_TO:
        values, Q = _solve(*pencil(rep(data.observations).astype(float), data, gamma))
    else:
        s, t = draw(data, samples, gamma, rng)
        values, Q = rotation(rep(data.observations[s]), rep(data.observations[t]))
    return turned(rep, Q), values


def wide_ritz(
    rep: Representation, data: Data, gamma: float = 0.9, rng: Seed = 0, samples: int = 50_000
) -> tuple[Representation, np.ndarray]:
    """`ritz` in the span of the last hidden layer and the constant, not of the d outputs only; eigenvalues, (d,).

    The outputs are linear in that layer, so no combination of them has smaller eigenvalues on the same pairs, and the
    result is again a network of the same shape. Directions in which the layer hardly varies are left out.

    >>> import lapbook as lb
    >>> data = lb.collect("lapbook/GridRoom-v0", transitions=1000)
    >>> rep = lb.learn(data, "smoke", d=2, steps=1)
    >>> bool((wide_ritz(rep, data)[1] <= ritz(rep, data)[1]).all())  # the more to choose from, the better
    True
    """
    from torch import nn

    width, d = rep.linear.in_features, rep.settings.d
    all_but_last = nn.Sequential(*list(rep.encoder)[:-1])
    layer = replace(rep, encoder=all_but_last, settings=replace(rep.settings, d=width, coefficients="equal"))

    def at(observations: np.ndarray) -> np.ndarray:
        return np.column_stack([np.ones(len(observations)), layer(observations)])

    if len(data.observations) <= EXACT_UP_TO:
        G, M = pencil(at(data.observations), data, gamma)
    else:
        G, M = np.zeros((2, width + 1, width + 1))
        drawn = np.stack(draw(data, samples, gamma, rng))
        for part in np.array_split(drawn, -(-samples // 4096), axis=1):  # a layer of all at once would be large
            more_G, more_M = moments(*(at(data.observations[rows]) for rows in part))
            G += more_G * part.shape[1] / samples
            M += more_M * part.shape[1] / samples
    values, Q = whitened(G, M, WEAKEST**2)
    if len(values) < d:
        raise ValueError(f"the last hidden layer must vary in at least d = {d} ways, got {len(values)}")
    return _with_last_layer(rep, Q[1:, :d].T, Q[0, :d]), values[:d]


def turned(rep: Representation, Q: np.ndarray) -> Representation:
    """f ↦ fQ with Q of shape (d, d), as a change of the last layer.

    >>> import lapbook as lb
    >>> data = lb.collect("lapbook/GridRoom-v0", transitions=1000)
    >>> rep = lb.learn(data, "smoke", d=2, steps=1)
    >>> swapped = turned(rep, np.array([[0, 1], [1, 0]]))
    >>> np.allclose(swapped(data.observations), rep(data.observations)[:, ::-1], atol=1e-6)
    True
    """
    if np.shape(Q) != (rep.settings.d, rep.settings.d):
        raise ValueError(f"Q must have shape {(rep.settings.d, rep.settings.d)}, got {np.shape(Q)}")
    weight, bias = (parameter.detach().double().numpy() for parameter in (rep.linear.weight, rep.linear.bias))
    return _with_last_layer(rep, Q.T @ weight, Q.T @ bias)


def whitened(G: np.ndarray, M: np.ndarray, weakest: float = 1e-14) -> tuple[np.ndarray, np.ndarray]:
    """Eigenvalues and Q of G q = λ M q, within the directions where M is more than `weakest` of its largest.

    >>> values, Q = whitened(np.diag([1.0, 3.0, 1.0]), np.diag([2.0, 1.0, 0.0]))  # of the third there is nothing
    >>> values.round(6).tolist(), Q.shape
    ([0.5, 3.0], (3, 2))
    """
    size, basis = np.linalg.eigh(M)
    kept = size > weakest * size[-1]
    white = basis[:, kept] / np.sqrt(size[kept])
    values, turn = np.linalg.eigh(white.T @ G @ white)
    return values, white @ turn


def _with_last_layer(rep: Representation, weight: np.ndarray, bias: np.ndarray) -> Representation:
    import torch

    changed = replace(rep, encoder=copy.deepcopy(rep.encoder))
    with torch.no_grad():
        changed.linear.weight.copy_(torch.from_numpy(np.ascontiguousarray(weight)))
        changed.linear.bias.copy_(torch.from_numpy(np.ascontiguousarray(bias)))
    return changed


def _solve(G: np.ndarray, M: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    weakest = np.linalg.eigvalsh(M)[0]
    if weakest <= 1e-10 * np.trace(M):
        raise DependentDimensionsError(
            "the dimensions must be independent: some combination of them vanishes on the data "
            f"(smallest eigenvalue of E f fᵀ: {weakest:.1e})"
        )
    return scipy.linalg.eigh(G, M)
