"""Checks that need no ground truth, for an environment of your own.

Where a function takes `f`, it may be a `Representation` or its values at `data.observations`, shape (m, d). Eigenvalues
are those of I - P for the pairs of the data at some γ, ascending, as in `rayleigh`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from lapbook.layouts import Seed
from lapbook.metrics import sim_gt_per_dim
from lapbook.pairs import SAMPLES, data_spectrum, pencil
from lapbook.rayleigh import whitened, wide_ritz
from lapbook.rollouts import Data

if TYPE_CHECKING:
    from lapbook.training import Representation

FEW = 1000  # distinct observations; up to there the eigenvectors of the data are quick to compute


def first_look(data: Data, d: int = 12, gamma: float = 0.9, rng: Seed = 0, **changes: Any) -> np.ndarray:
    """A first estimate of the d smallest eigenvalues, shape (d,).

    With few distinct observations, those of the data (`data_spectrum`). Otherwise from a short run of the unweighted
    objective with the paper's penalty, turned by `wide_ritz`; `changes` go to `learn`. These lie above those of the
    data, the last ones the most.

    >>> back_and_forth = Data(np.eye(2), np.array([[0, 1, 0]]), np.array([2]))
    >>> first_look(back_and_forth, gamma=0).round(6).tolist()
    [0.0, 2.0]
    """
    if len(data.observations) <= FEW:
        met, _ = _met(data)
        return np.maximum(data_spectrum(met, min(d, len(met.observations)), gamma)[0], 0)
    from lapbook.training import learn

    short: dict[str, Any] = {"steps": 150, "batch": 256, "target_scale": 1.0, "coefficients": "equal"} | changes
    rng = np.random.default_rng(rng)
    return np.maximum(wide_ritz(learn(data, "fast", d=d, gamma=gamma, rng=rng, **short), data, gamma, rng)[1], 0)


def halves(data: Data, rng: Seed = 0) -> tuple[Data, Data]:
    """The episodes, split at random into two halves; both keep all rows of `observations`.

    >>> data = Data(np.eye(2), index=np.array([[0, 1]] * 5), lengths=np.ones(5, dtype=int))
    >>> [len(half.index) for half in halves(data)]
    [3, 2]
    """
    if len(data.index) < 2:
        raise ValueError("data must hold at least two episodes to be split")
    order = np.random.default_rng(rng).permutation(len(data.index))
    first, second = np.array_split(order, 2)
    return (
        replace(data, index=data.index[first], lengths=data.lengths[first]),
        replace(data, index=data.index[second], lengths=data.lengths[second]),
    )


def agreement(f: Representation | np.ndarray, g: Representation | np.ndarray, data: Data) -> np.ndarray:
    """|cos| between f_i and g_i over the states as the data visit them, shape (d,).

    >>> data = Data(np.eye(2), np.array([[0, 0, 0, 1]]), np.array([3]))  # three visits and one
    >>> f, g = np.array([[1.0], [0.0]]), np.array([[-1.0], [1.0]])
    >>> (agreement(f, g, data) ** 2).round(6).tolist()
    [0.75]
    """
    root = np.sqrt(data.rho)[:, None]
    return sim_gt_per_dim(root * _at(f, data), root * _at(g, data))


def stability(
    f: Representation | np.ndarray,
    data: Data,
    gamma: float = 0.9,
    rng: Seed = 0,
    samples: int = SAMPLES,
    splits: int = 5,
) -> np.ndarray:
    """|cos| between f turned on one half of the episodes and f turned on the other, for each dimension, shape (d,).

    The mean over some splits. It shows the noise of the axes within the span of f; errors that both halves make alike
    it cannot show. What is missing to 1 is about four times what noise costs f itself: the error of a half has twice
    the variance of that of the whole, and here are two of them.

    >>> alike = Data(np.eye(3), np.array([[0, 1, 2, 1, 0, 0]] * 4), np.full(4, 5))  # each half is as the whole
    >>> stability(np.eye(3), alike).round(6).tolist()
    [1.0, 1.0, 1.0]
    """
    values, rng, found = _at(f, data), np.random.default_rng(rng), []
    for _ in range(splits):
        first, second = (_axes(*pencil(values, half, gamma, rng, samples))[1] for half in halves(data, rng))
        found.append(agreement(values @ first, values @ second, data))
    return np.mean(found, axis=0)


def quotients(
    f: Representation | np.ndarray, data: Data, gamma: float = 0.9, rng: Seed = 0, samples: int = SAMPLES
) -> np.ndarray:
    """Rayleigh quotients E (f_i(s) - f_i(s'))² / 2 E f_i², shape (d,); nan for a dimension that is 0 everywhere.

    For an eigenfunction it is the eigenvalue. A mixture has a mean of eigenvalues, noise one near 1.

    >>> back_and_forth = Data(np.eye(2), np.array([[0, 1, 0]]), np.array([2]))  # its eigenvalues are 0 and 2
    >>> quotients(np.array([[1, 1, 1], [1, -1, 0]]), back_and_forth, gamma=0).tolist()  # the last is half of each
    [0.0, 2.0, 1.0]
    """
    G, M = pencil(_at(f, data), data, gamma, rng, samples)
    with np.errstate(invalid="ignore"):
        return np.diag(G) / np.diag(M)


def residuals(
    f: Representation | np.ndarray, data: Data, gamma: float = 0.9, rng: Seed = 0, samples: int = 50_000
) -> np.ndarray:
    """Sine of the angle between f_i and what it would be in a richer span, shape (d,).

    To first order each component of the residual (I - P) f_i - λ_i f_i, divided by its own distance from λ_i. With
    few distinct observations the richer span is all functions of them, otherwise that of the last hidden layer, which
    sees nothing that the layer cannot express. Noise that is in the data is in both, so this does not see it.

    >>> back_and_forth = Data(np.eye(2), np.array([[0, 1], [1, 0]]), np.array([1, 1]))
    >>> residuals(np.array([[1, 1], [1, 0]]), back_and_forth, gamma=0).round(3).tolist()  # the second is 45° off
    [0.0, 0.707]
    """
    values = _at(f, data)
    richer: Representation | np.ndarray
    if len(data.observations) <= FEW:
        data, rows = _met(data)
        values, richer = values[rows], data_spectrum(data, values.shape[1], gamma)[1]
    elif callable(f):
        richer = wide_ritz(f, data, gamma, rng, samples)[0]
    else:
        raise ValueError("f must be a Representation where there are many distinct observations, got an array")
    return np.sqrt(np.maximum(1 - agreement(values, richer, data) ** 2, 0))


def memory(f: Representation | np.ndarray, data: Data, lags: Sequence[int] = (1, 2, 4, 8)) -> np.ndarray:
    """The eigenvalue of a single step as seen at each lag k, 1 - c_k^(1/k), shape (lags, d).

    c_k is the correlation of f_i with itself k steps later. For an eigenfunction of a walk without memory it is μ^k,
    and the rows agree. They differ where what is observed is not the whole state, and for mixtures. nan where c_k
    is not positive, or no episode is that long.

    >>> back_and_forth = Data(np.eye(2), np.array([[0, 1, 0]]), np.array([2]))
    >>> memory(np.array([[1, 1], [1, -1]]), back_and_forth, lags=(1, 2)).tolist()  # a step turns -1 into 1, two do not
    [[0.0, nan], [0.0, 0.0]]
    """
    values, out = _at(f, data), []
    for lag in lags:
        t = np.arange(data.index.shape[1] - lag) if lag < data.index.shape[1] else np.array([], dtype=int)
        inside = t + lag <= data.lengths[:, None]
        s, later = (data.index[:, at][inside] for at in (t, t + lag))
        with np.errstate(invalid="ignore"):
            lost = ((values[s] - values[later]) ** 2).sum(axis=0)
            left = 1 - lost / (values[s] ** 2 + values[later] ** 2).sum(axis=0)
            out.append(1 - np.where(left > 0, left, np.nan) ** (1 / lag))
    return np.array(out)


@dataclass(frozen=True)
class Checkup:
    """What `check` measured for each dimension, shape (d,) each. Printed, it says which are within bounds.

    >>> print(Checkup(np.array([0.0, 0.5]), np.array([1.0, 0.8]), order=np.zeros(2), memory=np.ones(2)))
    dimension    1   2
    residual    ok  no
    stability   ok  no
    order       ok  ok
    memory      ok  ok
    """

    residual: np.ndarray
    """`residuals`; at most 0.3."""
    stability: np.ndarray
    """`stability`; at least 0.9."""
    order: np.ndarray
    """|quotient - eigenvalue within the span|, over the distance from that eigenvalue to its nearest neighbour; at most
    0.25, which is what a pair turned by 30° has. 0 for what has just been turned."""
    memory: np.ndarray
    """Eigenvalue of a single step as seen at lag 8 over that at lag 1; between 2/3 and 3/2. nan,
    which passes, for a constant and where after 8 steps nothing is left."""

    @property
    def passed(self) -> dict[str, np.ndarray]:
        """True where a dimension is within bounds, shape (d,), for each of the four."""
        return {
            "residual": self.residual <= 0.3,
            "stability": self.stability >= 0.9,
            "order": self.order <= 0.25,
            "memory": np.isnan(self.memory) | (np.abs(np.log(np.abs(self.memory))) <= np.log(1.5)),
        }

    def __str__(self) -> str:
        rows: dict[str, Iterable[object]] = {"dimension": range(1, len(self.residual) + 1)}
        rows |= {name: ["ok" if ok else "no" for ok in within] for name, within in self.passed.items()}
        return "\n".join(f"{name:<10}" + "".join(f"{entry:>4}" for entry in row) for name, row in rows.items())


def check(f: Representation | np.ndarray, data: Data, gamma: float = 0.9, rng: Seed = 0) -> Checkup:
    """All four checks of a representation that should be eigenfunctions of the data, in order.

    >>> back_and_forth = Data(np.eye(2), np.array([[0, 1] * 5] * 4), np.full(4, 9))
    >>> passed = check(np.array([[1, 1], [1, -1]]), back_and_forth, gamma=0).passed
    >>> [name for name, within in passed.items() if within.all()]
    ['residual', 'stability', 'order', 'memory']
    """
    values, rng = _at(f, data), np.random.default_rng(rng)
    G, M = pencil(values, data, gamma, rng)
    eigenvalues = _axes(G, M)[0]
    with np.errstate(invalid="ignore"):  # of a dimension that is 0, the order is nan
        apart = np.abs(eigenvalues[:, None] - eigenvalues) + np.where(np.eye(len(eigenvalues)), np.inf, 0)
        order = np.abs(np.diag(G) / np.diag(M) - eigenvalues) / apart.min(axis=0)
    once, later = memory(values, data, (1, 8))
    varies = data.rho @ (values - data.rho @ values) ** 2 > 0.05 * (data.rho @ values**2)
    ratio = np.divide(later, once, out=np.full(len(once), np.nan), where=varies)
    return Checkup(residuals(f, data, gamma, rng), stability(values, data, gamma, rng), order, ratio)


def _at(f: Representation | np.ndarray, data: Data) -> np.ndarray:
    values = np.asarray(f(data.observations) if callable(f) else f, dtype=float)
    if values.ndim != 2 or len(values) != len(data.observations):
        wanted = f"({len(data.observations)}, d), one row for each of data.observations"
        raise ValueError(f"f must have shape {wanted}: got {values.shape}")
    return values


def _met(data: Data) -> tuple[Data, np.ndarray]:
    """The data without observations that are in none of their episodes, as in one of two halves; and the rows kept."""
    rows, index = np.unique(data.index, return_inverse=True)
    states = None if data.states is None else data.states[rows]
    return Data(data.observations[rows], index.reshape(data.index.shape), data.lengths, states), rows


def _axes(G: np.ndarray, M: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """`whitened` to as many axes as dimensions: where f is all but dependent, ∞ and columns of 0 at the end."""
    values, Q = whitened(G, M)
    missing = len(G) - len(values)
    return np.append(values, np.full(missing, np.inf)), np.pad(Q, ((0, 0), (0, missing)))
