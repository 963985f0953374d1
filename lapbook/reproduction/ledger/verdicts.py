"""How the ledger judges: numbers against those the paper printed, claims without a number by conditions.

All thresholds are here. The judges are in `exact`, `representations` and `agents`: each takes records, one list for
each group of them, and gives a `Finding`. Whether the runs behind it were all there, and long enough, is for the ledger
to say.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from typing import NamedTuple

import numpy as np

from lapbook.reproduction.common import cut_short
from lapbook.reproduction.ledger.words import listed
from lapbook.results import Record
from lapbook.statistics import bootstrap

CHANGED, SHORT, LOST, SHOWN = "with changes", "not run in full", "not possible", "no claim"
HOLDS = ("reproduced", "exceeded")
VERDICTS = (*HOLDS, CHANGED, "differs", SHORT, LOST, SHOWN)
ANOTHER = "another method"  # no verdict: what it finds says nothing of the paper's
CLOSE = 0.02  # two SimGT agree: on GridRoom the ceilings of three data sets make a mean vary by half of it, else less
CHANCE = 0.1  # the same for the baseline, whose axes are left to chance: SimGT of a random rotation varies by 0.06
LIKE, UNLIKE = 0.9, 0.5  # |cos| from which on, and up to which, two functions look alike, or do not
NEAR = 0.1  # cosine distance up to which a vector is close to a span
SIMILAR = 2.0  # numbers of steps up to this ratio are similar
ROUNDING = 1e-9  # what identities may be off by, relative to what they compare
DISTINCT = 0.02  # eigenvalues are distinct if they differ by this share of the larger

Records = Sequence[Record]
Numbers = tuple[float, float, float]
"""A mean, and the ends of its interval."""
Values = tuple[float, ...]
"""One for each run."""


class Better(NamedTuple):
    """The same with changes of ours, where the paper's settings were run too; or what another method gives."""

    verdict: str
    words: str
    """One line for each thing that is compared, as in `Finding.ours`."""
    values: Values = ()


class Finding(NamedTuple):
    """What a judge makes of the records."""

    ours: str
    verdict: str
    better: Better | None = None
    printed: float | None = None
    values: Values = ()
    another: Better | None = None


Judge = Callable[..., Finding]


# How numbers and conditions become verdicts


def compare(value: float, printed: float, tolerance: float = CLOSE, more: bool = True) -> str:
    """The verdict on a number; `more` says that larger is better, so that it can be exceeded.

    >>> compare(0.96, 0.97), compare(0.99, 0.96), compare(0.9, 0.96)
    ('reproduced', 'exceeded', 'differs')
    """
    if abs(value - printed) <= tolerance + 1e-12:
        return "reproduced"
    return "exceeded" if more and value > printed else "differs"


def compare_runs(
    values: Sequence[float] | np.ndarray, printed: float, tolerance: float = CLOSE, more: bool = True
) -> str:
    """The verdict on the mean of several runs, which does not hold if most of them by themselves do not.

    >>> compare_runs([0.99, 0.93, 0.93], 0.96), compare_runs([0.97, 0.96, 0.91], 0.96)
    ('differs', 'reproduced')
    """
    alone = [compare(value, printed, tolerance, more) != "differs" for value in values]
    return compare(float(np.mean(values)), printed, tolerance, more) if most(alone) else "differs"


def most(passed: Sequence[bool] | np.ndarray) -> bool:
    """Whether at least half of some runs pass."""
    return 2 * int(np.sum(passed)) >= len(passed)


def margin(values: Sequence[float] | np.ndarray, limit: float, least: bool = True, digits: int = 2) -> str:
    """How far a mean is from the limit that decides, and how many runs pass it by themselves.

    >>> margin([0.95, 0.97], 0.9), margin([2.5, 1.9], 2.0, least=False, digits=1)
    ('passes 0.9 by 0.06, 2 of 2 runs do', 'misses 2.0 by 0.2, 1 of 2 runs passes')
    """
    values = np.asarray(values, dtype=float)
    passed = values >= limit if least else values <= limit
    by = (values.mean() - limit) * (1 if least else -1)
    does = "do" if passed.sum() != 1 else "does"
    end = f"run{'s' * (len(values) != 1)} {does if by >= 0 else 'pass' if does == 'do' else 'passes'}"
    return f"{'passes' if by >= 0 else 'misses'} {limit} by {abs(by):.{digits}f}, {passed.sum()} of {len(values)} {end}"


def holds(*conditions: bool) -> str:
    """The verdict on a claim without a number."""
    return "reproduced" if all(conditions) else "differs"


def estimate(values: Sequence[float] | np.ndarray) -> Numbers:
    """Mean over seeds and the ends of its 95 % bootstrap interval."""
    return _estimate(tuple(map(float, values)))


@cache
def _estimate(values: tuple[float, ...]) -> Numbers:
    low, high = map(float, bootstrap(np.array([values])))
    return float(np.mean(values)), low, high


def shown(values: Sequence[float] | np.ndarray, digits: int = 3) -> str:
    """Mean and interval in words; one run has no interval.

    >>> shown([0.25, 0.5]), shown([0.25])
    ('0.375 [0.250, 0.500]', '0.250 (one run)')
    """
    if len(values) == 1:
        return f"{values[0]:.{digits}f} (one run)"
    mean, low, high = estimate(values)
    return f"{mean:.{digits}f} [{low:.{digits}f}, {high:.{digits}f}]".replace("-", "−")


def of_runs(records: Records, values: Sequence[float] | np.ndarray, digits: int = 3) -> str:
    """Mean and interval of a value of each run; where some were cut short, each by itself and after how many steps.

    >>> budgets = [{"steps": steps, "steps_allowed": 2000} for steps in (2000, 500)]
    >>> of_runs([{"budget": budget} for budget in budgets], [0.5, 0.25], 2)
    '0.50, 0.25 (after 2,000 and 500 steps)'
    """
    if not any(cut_short(r["budget"]) for r in records):
        return shown(values, digits)
    steps = [f"{r['budget']['steps']:,}" for r in records]
    after = steps[0] if len(set(steps)) == 1 else listed(steps)
    return f"{', '.join(f'{x:.{digits}f}' for x in values)} (after {after} steps)"
