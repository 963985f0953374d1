"""Advice for an environment of your own: settings from a first estimate of its eigenvalues, with reasons.

Eigenvalues are those of I - P for the pairs of the data at some γ, ascending, as `diagnosis.first_look` finds them.
"""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from lapbook.objective import coefficients, slowest_rate

CLEAR = 0.1  # least relative gap (λ_{d+1} - λ_d) / λ_{d+1} that counts as clear
FAR = 0.3  # least λ_{d+1} that the pairs should see
ROOM = 2.0  # β τ over λ_d: every dimension keeps at least half of its target


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
    found = np.asarray(values, dtype=float)
    if found.ndim != 1 or len(found) < 3 or not np.isfinite(found).all() or (np.diff(found) < 0).any():
        raise ValueError(f"values must be at least three finite eigenvalues in ascending order, got {found}")
    if not 0 <= gamma < 1:
        raise ValueError(f"gamma must lie in [0, 1), got {gamma}")
    most = len(found) - 1 if most is None else most
    if not 2 <= least <= most < len(found):
        raise ValueError(f"least and most must satisfy 2 ≤ least ≤ most < {len(found)}, got {least} and {most}")
    if found[1] <= 1e-9:
        raise ValueError("values must have λ_2 > 0: the data fall into parts, and no pair leads from one to another")
    found, reasons = np.clip(found, 0, 2 / (1 + gamma)), {}  # which is what an eigenvalue 2 of single steps becomes

    d, reasons["d"] = _where_to_cut(found, least, most)
    single = found[: d + 1] * (1 - gamma) / (1 - gamma * found[: d + 1])
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
