"""Advice for an environment of your own: settings from a first estimate of its eigenvalues, with reasons.

Eigenvalues are those of I - P for the pairs of the data at some γ, ascending, as `diagnosis.first_look` finds them.
"""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.optimize import brentq

from lapbook.objective import coefficients, slowest_rate
from lapbook.pairs import multi_step

CLEAR = 0.1  # least relative gap (λ_{d+1} - λ_d) / λ_{d+1} that counts as clear
FAR = 0.3  # least λ_{d+1} that the pairs should see
ROOM = 2.0  # β τ over λ_d: the last dimension keeps half of its target, the others more


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
        """What `learn` and `settings.Settings` call by these names."""
        return {name: value for name, value in vars(self).items() if name != "reasons"}

    def __str__(self) -> str:
        return "\n".join(textwrap.fill(reason, 80, subsequent_indent="    ") for reason in self.reasons.values())


def advise(
    values: Sequence[float] | np.ndarray,
    gamma: float = 0.9,
    length: int | None = None,
    least: int = 2,
    most: int | None = None,
) -> Advice:
    """d, γ, c, β and τ from a first estimate of the eigenvalues at that γ, with reasons.

    d: between `least` and `most` (by default all but the last value), where k times the relative gap r_k =
    (λ_{k+1} - λ_k) / λ_{k+1} is largest, among r_k ≥ 0.1. On a line λ_k grows like k², on a floor like k, and k r_k is
    about 2 or 1 everywhere; what exceeds that stands out. With no such r_k, the largest of them.

    γ: the smallest with λ_{d+1} ≥ 0.3, to two digits of 1 - γ, and at most that whose reach 1 / (1 - γ) is the
    `length` of an episode: beyond it γ hardly changes the pairs, which end with the episode. Nearer pairs make what
    does not belong to the span hard to tell from what does; farther ones only add noise.

    c: from d to 1, with c_i - c_{i+1} in proportion to 1 / (λ_{i+1} - λ_i), so that all pairs of neighbours are sorted
    at one rate (`objective.equalised`, without its c_d, which can be so small that the last dimension of a network has
    next to no weight). Gaps count as at least clear, so that a hopeless pair does not take it all.

    β τ: twice λ_d, which leaves the last dimension half of its target and the others more (`objective.mean_square`).

    Values at another γ are those of a walk without memory that sees `values` at this one (`single_steps`, `seen`), in
    episodes of that `length`; without it, as if they had no end.

    >>> advice = advise([0.0, 0.011, 0.021, 0.062, 0.085, 0.133, 0.486, 0.503])  # six rooms
    >>> advice.d, advice.gamma, advice.target_scale
    (6, 0.78, 0.13)
    """
    found = np.asarray(values, dtype=float)
    if found.ndim != 1 or len(found) < 3 or not np.isfinite(found).all() or (np.diff(found) < 0).any():
        raise ValueError(f"values must be at least three finite eigenvalues in ascending order, got {found}")
    if not 0 <= gamma < 1:
        raise ValueError(f"gamma must lie in [0, 1), got {gamma}")
    if length is not None and length < 1:
        raise ValueError(f"length must be at least 1, got {length}")
    most = len(found) - 1 if most is None else most
    if not 2 <= least <= most < len(found):
        raise ValueError(f"least and most must satisfy 2 ≤ least ≤ most < {len(found)}, got {least} and {most}")
    if found[1] <= 1e-9:
        raise ValueError("values must have λ_2 > 0: the data fall into parts, and no pair leads from one to another")

    reasons = {}
    d, reasons["d"] = _where_to_cut(found, least, most)
    single = single_steps(found[: d + 1], gamma, length)
    far, remark = _how_far(single[-1], length)
    then = seen(single, far, length)
    before = f" At gamma = {gamma:g} it was {found[d]:.2g}." if far != gamma else ""
    reasons["gamma"] = f"gamma = {far:g}: pairs this far apart see λ_{d + 1} = {then[d]:.2g}, {remark}.{before}"
    c, reasons["coefficients"] = _weights(then)
    target = _two_digits(ROOM * then[-2])
    reasons["beta"] = (
        f"beta = 1 and target_scale = {target:g}, {ROOM:g} times λ_{d} = {then[-2]:.3g}: "
        f"dimension {d} keeps {1 - 1 / ROOM:.0%} of its target, the others more."
    )
    return Advice(d, far, c, 1.0, target, reasons)


def seen(single: ArrayLike, gamma: float, length: int | None = None) -> np.ndarray:
    """What pairs at γ see of eigenvalues ν of single steps, in episodes of that length; without it, endless ones.

    With a length it is `pairs.multi_step`, otherwise its limit ν / (1 - γ + γ ν).

    >>> [seen(0.1, 0.9, length).round(2).tolist() for length in (50, 1000, None)]
    [0.44, 0.52, 0.53]
    """
    single = np.asarray(single, dtype=float)
    return single / (1 - gamma + gamma * single) if length is None else multi_step(1 - single, length, gamma)


def single_steps(values: ArrayLike, gamma: float, length: int | None = None) -> np.ndarray:
    """The eigenvalues ν of single steps of a walk without memory, where pairs at γ see `values`: `seen`, inverted.

    >>> single_steps(seen([0.01, 0.1], 0.9, length=50), 0.9, length=50).round(6).tolist()
    [0.01, 0.1]
    """
    values = np.clip(values, 0, seen(2.0, gamma, length))  # no walk has more than 2
    if length is None:
        return values * (1 - gamma) / (1 - gamma * values)
    # There is one solution below 1: up to there both rise together, and no ν above 1 is seen as less than 1, since
    # longer lags are never likelier than shorter ones.
    return np.array([brentq(lambda nu, value=value: seen(nu, gamma, length) - value, 0, 2) for value in values])


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


def _how_far(outside: float, length: int | None) -> tuple[float, str]:
    """γ for the first eigenvalue of single steps that does not belong to the span any more, and how far it goes."""
    farthest = 1.0 if length is None else 1 - 1 / length
    if seen(outside, 0, length) >= FAR:
        return 0.0, "which is enough to tell it from 0"
    if seen(outside, farthest, length) < FAR:
        return _rounded(farthest), f"short of {FAR:g}: episodes of {length} allow no larger reach 1 / (1 - gamma)"
    gamma = brentq(lambda gamma: seen(outside, gamma, length) - FAR, 0, farthest)
    return _rounded(gamma), "which is enough to tell it from 0"


def _rounded(gamma: float) -> float:
    return round(1 - _two_digits(1 - gamma), 10)


def _weights(values: np.ndarray) -> tuple[tuple[float, ...], str]:
    d, gaps, least = len(values) - 1, np.diff(values), CLEAR * values[1:]
    waits = 1 / np.maximum(gaps, least)[:-1]
    c = 1 + (d - 1) * np.append(np.cumsum(waits[::-1])[::-1], 0) / waits.sum()
    ours, plain = (slowest_rate(values, weights) for weights in (c, coefficients(d)))
    faster = f", which sorts the slowest pair {ours / plain:.1f} times as fast as {d}, …, 1" if plain > 0 else ""
    blurred = [f"{i + 1} and {i + 2}" for i in np.flatnonzero(gaps < least)]
    trouble = f"; {', '.join(blurred)} are hardly apart" if blurred else ""
    shown = ", ".join(f"{x:.2g}" for x in c)
    return tuple(c.tolist()), f"c = {shown}, with large steps where gaps are small{faster}{trouble}."


def _two_digits(x: float) -> float:
    return float(f"{x:.2g}")
