"""Minimising eq. (3) over orthonormal frames by gradient descent (section 3)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike

from lapbook.layouts import Seed
from lapbook.metrics import cosines
from lapbook.objective import Matrix, coefficients, generalized
from lapbook.spectrum import smallest_eigenpairs


@dataclass(frozen=True)
class Trace:
    """What `minimise` found, and how it went: one row for each recorded step."""

    U: np.ndarray
    """The final frame, shape (n, d)."""
    steps: np.ndarray
    """Step numbers, shape (t,)."""
    objective: np.ndarray
    """Eq. (3) at these steps, shape (t,)."""
    sim_gt: np.ndarray
    """SimGT at these steps, shape (t,)."""
    order: np.ndarray
    """For each u_i the number, from 1, of the eigenvector it is closest to, shape (t, d)."""


def minimise(
    L: Matrix,
    d: int,
    c: str | Sequence[float] | np.ndarray = "paper",
    steps: int = 3000,
    retraction: str = "polar",
    project: bool = False,
    momentum: bool = True,
    start: np.ndarray | None = None,
    rate: float | None = None,
    every: int = 50,
    rng: Seed = 0,
) -> Trace:
    """Gradient descent on eq. (3) over orthonormal frames, from a random one (or `start`, shape (n, d)).

    Each step goes down the gradient 2LUC, by `rate` (`step_size` by default), and then back to the frames by
    `retraction`: `"polar"`, the nearest frame, or `"qr"`, Gram–Schmidt. `project=True` first removes the part of the
    gradient that points off the frames. `momentum` is Nesterov's, begun anew whenever the objective rises; without it
    this is plain descent. Any finite c is allowed: seeing what wrong ones do is the point.

    >>> path = np.array([[1, -1, 0], [-1, 2, -1], [0, -1, 1]])
    >>> float(minimise(path, d=2, steps=200).objective[-1].round(6))  # 2·0 + 1·1
    1.0
    """
    retract = {"polar": polar, "qr": qr}.get(retraction)
    if retract is None:
        raise ValueError(f"retraction must be 'polar' or 'qr', got {retraction!r}")
    L, weights = sp.csr_array(L), coefficients(d, c, decreasing=False)
    if not weights.any():
        raise ValueError("coefficients must not all be 0: there is nothing to minimise")
    if steps < 0 or every < 1:
        raise ValueError(f"steps must be at least 0 and every at least 1: got {steps} and {every}")
    if start is not None and (np.shape(start) != (L.shape[0], d) or np.linalg.matrix_rank(start) < d):
        raise ValueError(f"start must have shape ({L.shape[0]}, {d}) and independent columns")
    truth = smallest_eigenpairs(L, d).vectors
    U = retract(np.random.default_rng(rng).standard_normal((L.shape[0], d)) if start is None else start)
    rate = step_size(L, weights) if rate is None else rate
    record = []
    ahead, age, before = U, 0, np.inf
    for step in range(steps + 1):
        if step % every == 0 or step == steps:
            C = cosines(U, truth)
            record.append((step, generalized(U, L, weights), np.diag(C).mean(), C.argmax(axis=1) + 1))
        if step == steps:
            break
        G = 2 * (L @ ahead) * weights
        if project:
            S = ahead.T @ G
            G -= ahead @ (S + S.T) / 2
        new = retract(ahead - rate * G)
        value = generalized(new, L, weights)
        age = age + 1 if momentum and value <= before else 0
        ahead, U, before = retract(new + age / (age + 3) * (new - U)), new, value
    columns = [np.array(column) for column in zip(*record, strict=True)]
    return Trace(U, *columns)


def polar(U: np.ndarray) -> np.ndarray:
    """The orthonormal frame nearest to U, U(UᵀU)^(-1/2), shape (n, d).

    >>> polar(np.array([[3.0, -3.0], [4.0, 4.0]])).round(6).tolist()
    [[0.707107, -0.707107], [0.707107, 0.707107]]
    """
    values, vectors = np.linalg.eigh(U.T @ U)
    return U @ (vectors / np.sqrt(values)) @ vectors.T


def qr(U: np.ndarray) -> np.ndarray:
    """Gram–Schmidt: u_1 keeps its direction, u_2 what is left of it beside u_1, and so on, shape (n, d).

    >>> qr(np.array([[3.0, -3.0], [4.0, 4.0]])).round(6).tolist()
    [[0.6, -0.8], [0.8, 0.6]]
    """
    Q, R = np.linalg.qr(U)
    return Q * np.where(np.diag(R) < 0, -1, 1)


def step_size(L: Matrix, c: ArrayLike) -> float:
    """1 / (2 max|c| ‖L‖_∞): the gradient 2LUC never changes faster than that allows.

    >>> step_size(np.array([[1, -1], [-1, 1]]), c=[2, 1])
    0.125
    """
    return float(1 / (2 * np.abs(c).max() * abs(sp.csr_array(L)).sum(axis=1).max()))
