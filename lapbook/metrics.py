"""How close a representation is to the truth, to another run, and to the right span (section 4.1 of the paper)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import scipy.linalg
from numpy.typing import ArrayLike


def cosines(first: ArrayLike, second: ArrayLike) -> np.ndarray:
    """|cos| between every column of first and every column of second, shapes (n, d), (n, e) → (d, e).

    Columns are normalised first; a column that is zero everywhere has cosine 0 with everything.

    >>> cosines([[1, 3], [0, 4]], [[-2], [0]]).round(2).tolist()
    [[1.0], [0.6]]
    """
    first, second = _unit(first, "first"), _unit(second, "second")
    if len(first) != len(second):
        raise ValueError(f"both must have one row per state: got {len(first)} and {len(second)} rows")
    return np.abs(first.T @ second)


def sim_gt(vectors: ArrayLike, truth: ArrayLike) -> float:
    """SimGT: the mean over dimensions of |cos(f_i, e_i)|, for two arrays of shape (n, d). 1 is perfect.

    The paper's formula with both vectors normalised to length 1 over the states, which it leaves unsaid.

    >>> sim_gt(np.eye(2), np.array([[-1.0, 0.0], [0.0, 5.0]]))
    1.0
    """
    return float(sim_gt_per_dim(vectors, truth).mean())


def sim_gt_per_dim(vectors: ArrayLike, truth: ArrayLike) -> np.ndarray:
    """|cos(f_i, e_i)| for each dimension, shape (d,).

    >>> sim_gt_per_dim([[1, 3], [0, 4]], [[-2, 0], [0, 1]]).round(2).tolist()
    [1.0, 0.8]
    """
    vectors, truth = _unit(vectors, "vectors"), _unit(truth, "truth")
    if vectors.shape != truth.shape:
        raise ValueError(f"vectors and truth must have the same shape, got {vectors.shape} and {truth.shape}")
    return np.abs((vectors * truth).sum(axis=0))


def sim_run(runs: Sequence[ArrayLike]) -> np.ndarray:
    """SimRUN: entry (l, m) compares run l with run m as SimGT does, shape (runs, runs).

    It is a similarity: 1 means that two runs found the same representation. (The paper's text has this reversed.)

    >>> sim_run([np.eye(2), -np.eye(2), np.eye(2)[::-1]]).tolist()
    [[1.0, 1.0, 0.0], [1.0, 1.0, 0.0], [0.0, 0.0, 1.0]]
    """
    return np.array([[sim_gt(first, second) for second in runs] for first in runs])


def span_distance(vectors: ArrayLike, truth: ArrayLike) -> float:
    """Sine of the largest principal angle between the two column spaces: 0 if they are equal, at most 1.

    >>> quarter_turn = np.array([[0.0, -1.0], [1.0, 0.0], [0.0, 0.0]])
    >>> span_distance(quarter_turn, np.eye(3)[:, :2])
    0.0
    """
    return float(np.sin(scipy.linalg.subspace_angles(vectors, truth).max()))


def in_span(vectors: ArrayLike, truth: ArrayLike) -> np.ndarray:
    """cos of the angle between each u_i and its projection on the span of the columns of truth, shape (d,).

    Section 4.4: the paper's first assumption says that this is 1. A column that is zero everywhere has 0.

    >>> in_span(np.array([[1.0, 3.0], [0.0, 4.0]]), np.array([[2.0], [0.0]])).round(3).tolist()
    [1.0, 0.6]
    """
    basis, _ = np.linalg.qr(np.asarray(truth))
    return np.linalg.norm(basis.T @ _unit(vectors, "vectors"), axis=0)


def _unit(vectors: ArrayLike, name: str) -> np.ndarray:
    vectors = np.asarray(vectors, dtype=float)
    if vectors.ndim != 2:
        raise ValueError(f"{name} must have shape (states, dimensions), got {vectors.shape}")
    if not np.isfinite(vectors).all():
        raise ValueError(f"{name} must be finite: dimension {np.argwhere(~np.isfinite(vectors))[0][1] + 1} is not")
    norm = np.linalg.norm(vectors, axis=0)
    return vectors / np.where(norm > 0, norm, 1)
