"""Your own environment: settings from a first look at its spectrum, and checks that need no ground truth.

Where a function takes `f`, it may be a `Representation` or its values at `data.observations`, shape (m, d). Eigenvalues
are those of I - P for the pairs of the data at some γ, ascending, as in `rayleigh`.
"""

from __future__ import annotations

import copy
import textwrap
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from lapbook.layouts import Seed
from lapbook.metrics import sim_gt_per_dim
from lapbook.objective import coefficients, slowest_rate
from lapbook.rayleigh import EXACT_UP_TO, data_spectrum, empirical
from lapbook.rollouts import Data, pairs

if TYPE_CHECKING:
    from lapbook.training import Representation

FEW = 1000  # distinct observations; up to there the eigenvectors of the data are quick to compute
CLEAR = 0.1  # least relative gap (λ_{d+1} - λ_d) / λ_{d+1} that counts as clear
FAR = 0.3  # least λ_{d+1} that the pairs should see
ROOM = 2.0  # β τ over λ_d: every dimension keeps at least half of its target
WEAKEST = 1e-3  # of a hidden layer, directions whose root mean square is less than that of the largest are left out
SAMPLES = 100_000  # pairs, where there are too many observations to count all of them


@dataclass(frozen=True)
class Advice:
    """Settings for `learn`, and why: `learn(data, "fast", **advice.settings)`."""

    d: int
    gamma: float
    coefficients: tuple[float, ...]
    beta: float
    target_scale: float
    reasons: dict[str, str]
    """One sentence for each of "d", "gamma", "coefficients" and "beta"."""

    @property
    def settings(self) -> dict[str, Any]:
        """What `learn` and `training.Settings` call by these names."""
        return {name: value for name, value in vars(self).items() if name != "reasons"}

    def __str__(self) -> str:
        return "\n".join(textwrap.fill(reason, 80, subsequent_indent="    ") for reason in self.reasons.values())


def first_look(data: Data, d: int = 12, gamma: float = 0.9, rng: Seed = 0, **changes: Any) -> np.ndarray:
    """A first estimate of the d smallest eigenvalues, shape (d,).

    With few distinct observations, those of the data (`data_spectrum`). Otherwise from a short run of the unweighted
    objective with the paper's penalty, turned by `wide_ritz`; `changes` go to `learn`. These lie above those of the
    data, the last ones the most.
    """
    if len(data.observations) <= FEW:
        met, _ = _met(data)
        return np.maximum(data_spectrum(met, min(d, len(met.observations)), gamma)[0], 0)
    from lapbook.training import learn

    short = {"steps": 150, "batch": 256, "target_scale": 1.0, "coefficients": "equal"} | changes
    rng = np.random.default_rng(rng)
    return np.maximum(wide_ritz(learn(data, "fast", d=d, gamma=gamma, rng=rng, **short), data, gamma, rng)[1], 0)


def advise(
    values: Sequence[float], gamma: float = 0.9, length: int | None = None, least: int = 2, most: int | None = None
) -> Advice:
    """d, γ, c, β and τ from a first estimate of the eigenvalues at that γ, with reasons.

    d: between `least` and `most` (by default all but the last value), where k times the relative gap r_k =
    (λ_{k+1} - λ_k) / λ_{k+1} is largest, among r_k ≥ 0.1. On a line λ_k grows like k², on a floor like k, and k r_k is
    about 2 or 1 everywhere; what exceeds that stands out. With no such r_k, the largest of them.

    γ: the smallest with λ_{d+1} ≥ 0.3, and at most that whose reach 1 / (1 - γ) is the `length` of an episode.
    Nearer pairs make what does not belong to the span hard to tell from what does; farther ones only add noise.

    c: from d to 1, with c_i - c_{i+1} in proportion to 1 / (λ_{i+1} - λ_i), so that all pairs of neighbours are sorted
    at one rate (`objective.equalised`, without its c_d, which can be so small that the last dimension of a network has
    next to no weight). Gaps count as at least clear, so that a hopeless pair does not take it all.

    β τ: twice λ_d, which leaves each dimension at least half of its target (`objective.mean_square`).

    Values at another γ are computed as if episodes had no end: λ / (1 - γ + γ λ) for an eigenvalue λ of single steps.

    >>> advice = advise([0.0, 0.011, 0.021, 0.062, 0.085, 0.133, 0.486, 0.503])  # six rooms
    >>> advice.d, advice.gamma, advice.target_scale
    (6, 0.78, 0.13)
    """
    values = np.asarray(values, dtype=float)
    if values.ndim != 1 or len(values) < 3 or not np.isfinite(values).all() or (np.diff(values) < 0).any():
        raise ValueError(f"values must be at least three finite eigenvalues in ascending order, got {values}")
    if not 0 <= gamma < 1:
        raise ValueError(f"gamma must lie in [0, 1), got {gamma}")
    most = len(values) - 1 if most is None else most
    if not 2 <= least <= most < len(values):
        raise ValueError(f"least and most must satisfy 2 ≤ least ≤ most < {len(values)}, got {least} and {most}")
    if values[1] <= 1e-9:
        raise ValueError("values must have λ_2 > 0: the data fall into parts, and no pair leads from one to another")
    values, reasons = np.clip(values, 0, 2 / (1 + gamma)), {}  # which is what an eigenvalue 2 of single steps becomes

    d, reasons["d"] = _where_to_cut(values, least, most)
    single = values[: d + 1] * (1 - gamma) / (1 - gamma * values[: d + 1])
    gamma, reasons["gamma"] = _how_far(single, length)
    seen = single / (1 - gamma + gamma * single)
    c, reasons["coefficients"] = _weights(seen)
    target = _two_digits(ROOM * seen[-2])
    reasons["beta"] = (
        f"beta = 1 and target_scale = {target:g}, {ROOM:g} times λ_{d} = {seen[-2]:.2g}: "
        f"every dimension keeps at least {1 - 1 / ROOM:.0%} of its target."
    )
    return Advice(d, gamma, c, 1.0, target, reasons)


def _where_to_cut(values: np.ndarray, least: int, most: int) -> tuple[int, str]:
    k, relative = np.arange(1, len(values)), np.diff(values) / values[1:]
    allowed = (k >= least) & (k <= most)
    clear = allowed & (relative >= CLEAR)
    score = np.where(clear, k * relative, -1) if clear.any() else np.where(allowed, relative, -1)
    d = int(k[score.argmax()])
    if relative[d - 1] <= 0:
        raise ValueError(f"values must have a gap to cut at between λ_{least} and λ_{most + 1}, got {values}")
    pair = f"λ_{d + 1} = {values[d]:.2g} is {values[d] / values[d - 1]:.2g} times λ_{d} = {values[d - 1]:.2g}"
    verdict = "the gap that stands out most" if clear.any() else "and no gap is clear: expect a span that is not stable"
    return d, f"d = {d}: {pair}, {verdict}."


def _how_far(single: np.ndarray, length: int | None) -> tuple[float, str]:
    """γ for eigenvalues of single steps, the last of which does not belong to the span any more."""
    d, outside = len(single) - 1, single[-1]
    reach = max(1.0, FAR * (1 - outside) / (outside * (1 - FAR)))
    longest = np.inf if length is None else float(length)
    gamma = round(1 - _two_digits(1 / min(reach, longest)), 10)
    if gamma == 0:
        return 0.0, f"gamma = 0: single steps see λ_{d + 1} = {outside:.2g}, which is enough to tell it from 0."
    seen = outside / (1 - gamma + gamma * outside)
    cause = f"a single step sees λ_{d + 1} = {outside:.2g}, pairs this far apart {seen:.2g}"
    limit = f" (episodes of {length} allow no more)" if reach > longest else ""
    return gamma, f"gamma = {gamma:g}: {cause}{limit}."


def _weights(seen: np.ndarray) -> tuple[tuple[float, ...], str]:
    d, gaps, least = len(seen) - 1, np.diff(seen), CLEAR * seen[1:]
    waits = 1 / np.maximum(gaps, least)[:-1]
    c = 1 + (d - 1) * np.append(np.cumsum(waits[::-1])[::-1], 0) / waits.sum()
    ours, plain = (slowest_rate(seen, weights) for weights in (c, coefficients(d)))
    faster = f", which sorts the slowest pair {ours / plain:.1f} times as fast as {d}, …, 1" if plain > 0 else ""
    blurred = [f"{i + 1} and {i + 2}" for i in np.flatnonzero(gaps < least)]
    trouble = f"; {', '.join(blurred)} are hardly apart" if blurred else ""
    shown = ", ".join(f"{x:.2g}" for x in c)
    return tuple(c.tolist()), f"c = {shown}, with large steps where gaps are small{faster}{trouble}."


def _two_digits(x: float) -> float:
    return float(f"{x:.2g}")


def wide_ritz(
    rep: Representation, data: Data, gamma: float = 0.9, rng: Seed = 0, samples: int = 50_000
) -> tuple[Representation, np.ndarray]:
    """`ritz` in the span of the last hidden layer and the constant, not of the d outputs only; eigenvalues, (d,).

    The outputs are linear in that layer, so no combination of them has smaller eigenvalues on the same pairs, and the
    result is again a network of the same shape. Directions in which the layer hardly varies are left out.
    """
    import torch

    width, d = rep.linear.in_features, rep.settings.d
    layer = replace(rep, encoder=rep.encoder[:-1], settings=replace(rep.settings, d=width, coefficients="equal"))

    def at(observations: np.ndarray) -> np.ndarray:
        return np.column_stack([np.ones(len(observations)), layer(observations)])

    if len(data.observations) <= EXACT_UP_TO:
        G, M = _pencil(at(data.observations), data, gamma, rng)
    else:
        G, M = np.zeros((2, width + 1, width + 1))
        drawn = np.stack(pairs(data, samples, gamma, rng))
        for part in np.array_split(drawn, -(-samples // 4096), axis=1):  # a layer of all at once would be large
            s, t = (at(data.observations[rows]) for rows in part)
            G += (s - t).T @ (s - t) / (2 * samples)
            M += (s.T @ s + t.T @ t) / (2 * samples)
    values, Q = _turn(G, M, WEAKEST**2)
    if len(values) < d:
        raise ValueError(f"the last hidden layer must vary in at least d = {d} ways, got {len(values)}")
    last = torch.from_numpy(np.ascontiguousarray(Q[:, :d].T))
    encoder = copy.deepcopy(rep.encoder)
    with torch.no_grad():
        encoder[-1].bias.copy_(last[:, 0])
        encoder[-1].weight.copy_(last[:, 1:])
    return replace(rep, encoder=encoder), values[:d]


def halves(data: Data, rng: Seed = 0) -> tuple[Data, Data]:
    """The episodes, split at random into two halves; both keep all rows of `observations`."""
    if len(data.index) < 2:
        raise ValueError("data must hold at least two episodes to be split")
    order = np.random.default_rng(rng).permutation(len(data.index))
    return tuple(replace(data, index=data.index[part], lengths=data.lengths[part]) for part in np.array_split(order, 2))


def agreement(f: Representation | np.ndarray, g: Representation | np.ndarray, data: Data) -> np.ndarray:
    """|cos| between f_i and g_i over the states as the data visit them, shape (d,)."""
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
    """
    values, rng, found = _at(f, data), np.random.default_rng(rng), []
    for _ in range(splits):
        first, second = (_axes(*_pencil(values, half, gamma, rng, samples))[1] for half in halves(data, rng))
        found.append(agreement(values @ first, values @ second, data))
    return np.mean(found, axis=0)


def quotients(
    f: Representation | np.ndarray, data: Data, gamma: float = 0.9, rng: Seed = 0, samples: int = SAMPLES
) -> np.ndarray:
    """Rayleigh quotients E (f_i(s) - f_i(s'))² / 2 E f_i², shape (d,); nan for a dimension that is 0 everywhere.

    For an eigenfunction it is the eigenvalue. A mixture has a mean of eigenvalues, noise one near 1.
    """
    G, M = _pencil(_at(f, data), data, gamma, rng, samples)
    with np.errstate(invalid="ignore"):
        return np.diag(G) / np.diag(M)


def residuals(
    f: Representation | np.ndarray, data: Data, gamma: float = 0.9, rng: Seed = 0, samples: int = 50_000
) -> np.ndarray:
    """Sine of the angle between f_i and what it would be in a richer span, shape (d,).

    To first order each component of the residual (I - P) f_i - λ_i f_i, divided by its own distance from λ_i. With
    few distinct observations the richer span is all functions of them, otherwise that of the last hidden layer, which
    sees nothing that the layer cannot express. Noise that is in the data is in both, so this does not see it.
    """
    values = _at(f, data)
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
    """What `check` measured for each dimension, shape (d,) each. Printed, it says which are within bounds."""

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
        rows = {"dimension": range(1, len(self.residual) + 1)}
        rows |= {name: ["ok" if ok else "no" for ok in within] for name, within in self.passed.items()}
        return "\n".join(f"{name:<10}" + "".join(f"{entry:>4}" for entry in row) for name, row in rows.items())


def check(f: Representation | np.ndarray, data: Data, gamma: float = 0.9, rng: Seed = 0) -> Checkup:
    """All four checks of a representation that should be eigenfunctions of the data, in order."""
    values, rng = _at(f, data), np.random.default_rng(rng)
    G, M = _pencil(values, data, gamma, rng)
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


def _pencil(
    f: np.ndarray, data: Data, gamma: float, rng: Seed, samples: int = SAMPLES
) -> tuple[np.ndarray, np.ndarray]:
    """G = E (f(s) - f(s'))(f(s) - f(s'))ᵀ / 2 and M = E f fᵀ over all pairs, or many, for f of shape (m, k)."""
    if len(f) <= EXACT_UP_TO:
        G, M = empirical(data, gamma)
        return f.T @ G @ f, f.T @ M @ f
    s, t = (f[rows] for rows in pairs(data, samples, gamma, rng))
    return (s - t).T @ (s - t) / (2 * len(s)), (s.T @ s + t.T @ t) / (2 * len(s))


def _turn(G: np.ndarray, M: np.ndarray, weakest: float = 1e-14) -> tuple[np.ndarray, np.ndarray]:
    """Eigenvalues and Q of G q = λ M q, within the directions where M is more than `weakest` of its largest."""
    size, basis = np.linalg.eigh(M)
    kept = size > weakest * size[-1]
    white = basis[:, kept] / np.sqrt(size[kept])
    values, turn = np.linalg.eigh(white.T @ G @ white)
    return values, white @ turn


def _axes(G: np.ndarray, M: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """`_turn` to as many axes as there were dimensions: where f is all but dependent, ∞ and columns of 0 at the end."""
    values, Q = _turn(G, M)
    missing = len(G) - len(values)
    return np.append(values, np.full(missing, np.inf)), np.pad(Q, ((0, 0), (0, missing)))
