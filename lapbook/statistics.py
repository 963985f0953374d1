"""Success curves of many agents in a few numbers, each with an interval.

Arrays of outcomes have shape (..., goals, seeds): conditions first, then the goals that all conditions share, then
agents that differ by nothing but their random numbers.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import ArrayLike
from scipy import stats

from lapbook.layouts import Seed


def area(steps: ArrayLike, success: ArrayLike) -> np.ndarray:
    """Mean height of success curves (..., points) between step 0 and the last of `steps` (points,); shape (...).

    The curves are joined by straight lines, beginning with 0 at step 0.

    >>> float(area([10, 20], [1.0, 1.0]))
    0.75
    """
    steps, success = _curve(steps, success)
    curve = np.concatenate([np.zeros((*success.shape[:-1], 1)), success], axis=-1)
    return np.trapezoid(curve, np.append(0.0, steps), axis=-1) / steps[-1]


def steps_to(steps: ArrayLike, success: ArrayLike, level: float) -> np.ndarray:
    """The first of `steps` (points,) at which curves (..., points) are at `level` or above; shape (...).

    inf where they never are: such an agent is slower than all others, which a median respects. A mean does not exist,
    and leaving these agents out would reward failing.

    >>> steps_to([10, 20], [[0.2, 0.9], [0.1, 0.1]], level=0.5).tolist()
    [20.0, inf]
    """
    steps, success = _curve(steps, success)
    above = success >= level
    return np.where(above.any(axis=-1), steps[above.argmax(axis=-1)], np.inf)


def spearman(x: ArrayLike, y: ArrayLike) -> float:
    """Spearman's rank correlation of two arrays of one shape; nan where one of them is constant.

    >>> spearman([1, 2, 3], [0.1, 0.5, 0.3])
    0.5
    """
    x, y = np.ravel(x), np.ravel(y)
    if x.shape != y.shape:
        raise ValueError(f"x and y must have the same number of values: got {len(x)} and {len(y)}")
    if 0 in (np.ptp(x), np.ptp(y)):
        return float("nan")
    return round(float(stats.spearmanr(x, y).statistic), 12)


def lead(ours: ArrayLike, other: ArrayLike, resamples: int = 2000, rng: Seed = 0) -> tuple[float, float, float]:
    """Mean difference of two sets of outcomes (goals, agents) and its 95 % interval, over goals and agents.

    The goals are drawn for both, since they share them; agents within a goal for each by itself, as many as it has.

    >>> lead([[0.5, 0.75]], [[0.25, 0.25]])[0]
    0.375
    """
    ours, other = (np.asarray(arm, dtype=float) for arm in (ours, other))
    if ours.ndim != 2 or other.ndim != 2 or len(ours) != len(other):
        shapes = f"{ours.shape} and {other.shape}"
        raise ValueError(f"ours and other must have shape (goals, agents), with the same goals: got {shapes}")
    rng = np.random.default_rng(rng)
    goals = rng.integers(len(ours), size=(resamples, len(ours)))

    def drawn(arm: np.ndarray) -> np.ndarray:
        agents = rng.integers(arm.shape[1], size=(*goals.shape, arm.shape[1]))
        return arm[goals[:, :, None], agents].mean(axis=(1, 2))

    low, high = np.quantile(drawn(ours) - drawn(other), [0.025, 0.975])
    return float(ours.mean() - other.mean()), float(low), float(high)


def bootstrap(
    outcomes: ArrayLike,
    statistic: Callable[[np.ndarray], float | np.ndarray] = np.mean,
    resamples: int = 2000,
    level: float = 0.95,
    over: str = "seeds",
    rng: Seed = 0,
) -> tuple[float | np.ndarray, float | np.ndarray]:
    """Percentile interval of `statistic(outcomes)` for outcomes of shape (..., goals, seeds).

    `over="seeds"` draws agents with replacement within each condition and goal: how sure is this, for these goals?
    `over="both"` draws the goals first, the same ones for all conditions: how sure for goals of this kind? Conditions
    are never drawn, and share their goals, so that a comparison of two stays paired by goal.

    >>> bootstrap([[0.2, 0.2], [0.8, 0.8]]), bootstrap([[0.2, 0.2], [0.8, 0.8]], over="both")
    ((0.5, 0.5), (0.2, 0.8))
    """
    outcomes = np.asarray(outcomes, dtype=float)
    if outcomes.ndim < 2 or 0 in outcomes.shape:
        raise ValueError(f"outcomes must have shape (..., goals, seeds), none of them 0: got {outcomes.shape}")
    if over not in ("seeds", "both"):
        raise ValueError(f"over must be 'seeds' or 'both', got {over!r}")
    if resamples < 1:
        raise ValueError(f"resamples must be at least 1, got {resamples}")
    if not 0 < level < 1:
        raise ValueError(f"level must be between 0 and 1, got {level}")
    rng = np.random.default_rng(rng)
    goals, seeds = outcomes.shape[-2:]
    drawn: list[ArrayLike] = []
    for _ in range(resamples):
        sample = outcomes[..., rng.integers(goals, size=goals), :] if over == "both" else outcomes
        sample = np.take_along_axis(sample, rng.integers(seeds, size=outcomes.shape), axis=-1)
        drawn.append(statistic(sample))
    low, high = np.quantile(np.array(drawn), [(1 - level) / 2, (1 + level) / 2], axis=0)
    return (float(low), float(high)) if np.ndim(low) == 0 else (low, high)


def _curve(steps: ArrayLike, success: ArrayLike) -> tuple[np.ndarray, np.ndarray]:
    steps, success = np.asarray(steps, dtype=float), np.asarray(success, dtype=float)
    if steps.ndim != 1 or not len(steps) or not (np.diff(steps, prepend=0) > 0).all():
        raise ValueError("steps must be positive and increasing, one for each point of the curve")
    if success.shape[-1:] != steps.shape:
        raise ValueError(f"success must have {len(steps)} points, as steps has: got shape {success.shape}")
    if not np.isfinite(success).all():
        raise ValueError("success must be finite, it holds NaN or infinity")
    return steps, success
