"""What the ledger says of its rows: the remarks of claims.toml, filled from records.

A function here takes the records of a row, one list for each source, and says the phrase of its name with what it found
in them, or nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from fnmatch import fnmatch
from string import Template

import numpy as np

from lapbook.reproduction import paper
from lapbook.reproduction.common import cut_short
from lapbook.reproduction.ledger.verdicts import LIKE, SIMILAR
from lapbook.reproduction.ledger.words import between, duration
from lapbook.reproduction.shaping import GOALS
from lapbook.results import Record, metric

NOTES: dict[str, str] = paper.TEXTS["notes"]
WHYS: dict[str, str] = paper.TEXTS["whys"]
SEE: dict[str, str] = paper.TEXTS["see"]
RISE = 0.002  # a curve rises if the mean of its last tenth is so much above that of the tenth before


def say(phrase: str, **found: object) -> str:
    """A phrase of claims.toml, filled.

    >>> say("pace", time="2 days")
    'At this pace a full run takes about 2 days of one core.'
    """
    return Template(paper.TEXTS["phrases"][phrase]).substitute(found)


def about(claim: str, remarks: Mapping[str, str], groups: list[list[Record]] | tuple = ()) -> str:
    """The remark whose pattern fits a claim's key, filled from the records of its row; or none."""
    remark = Template(next((remark for pattern, remark in remarks.items() if fnmatch(claim, pattern)), ""))
    found = {name: FACTS[name](*groups) for name in remark.get_identifiers()}
    return " ".join(remark.substitute(found).split())


# Facts


def small_target(*groups: list[Record]) -> str:
    """How long runs with the target 1/d took, compared with the paper's."""
    steps = {r["budget"]["steps"] for r in groups[-1]}
    return say("small_target", steps=between(sorted(steps)), times=f"{paper.TRAINING['steps'] / max(steps):.0f}")


def small_runs(phrase: str, *groups: list[Record]) -> str:
    """Steps and batch of runs on floors that had settings of ours; nothing if there are none."""
    budgets = [r["budget"] for group in groups for r in group if r["setting"]["preset"] == "fast"]
    used = {key: between(sorted({b[key] for b in budgets})) for key in ("steps", "batch") if budgets}
    return say(phrase, **used) if used else ""


def pace(literal: list[Record], *others: list[Record]) -> str:
    """What a full run would have taken; nothing if all were full."""
    short = [r["budget"] for r in literal if cut_short(r["budget"])]
    if not short:
        return ""
    seconds = float(np.mean([b["wall_seconds"] / b["steps"] * b["steps_allowed"] for b in short]))
    return say("pace", time=duration(seconds, days=86400, hours=3600, minutes=60))


def mixed_pairs(literal: list[Record], *others: list[Record]) -> str:
    """Which neighbouring dimensions end away from their axes, in how many runs; and what was still moving there."""
    found: dict[int, list[Record]] = {}
    for record in literal:
        low = np.array(record["metrics"]["sim_gt_per_dim"]) < LIKE
        for i in np.flatnonzero(low[:-1] & low[1:]).tolist():
            found.setdefault(i, []).append(record)
    if not found:
        return say("sorted_pairs")
    texts = []
    for i, records in sorted(found.items()):
        off = np.degrees(np.arccos(metric(records, "sim_gt_per_dim")[:, i : i + 2])).round().astype(int)
        runs = f"{len(records)} of {len(literal)} runs {'end' if len(records) > 1 else 'ends'}"
        texts.append(say("mixed_pair", runs=runs, i=i + 1, j=i + 2, angles=between(off.ravel(), "°")))
    change = still_rising([record for records in found.values() for record in records])
    return say("mixed_pairs", pairs="; ".join(texts), change=change)


def mixed_concave(*groups: list[Record]) -> str:
    """The same for the runs of group 2."""
    return mixed_pairs(_concave(*groups))


def _concave(*groups: list[Record]) -> list[Record]:
    return [r for group in groups for r in group if r["setting"]["group"] == "concave"]


def still_rising(records: list[Record]) -> str:
    """How much SimGT rose from the tenth of a run that ends at two thirds of it to the last tenth."""
    rises = []
    for record in records:
        curve = np.array(record["metrics"]["curve"]["sim_gt"])
        tenth, then = max(len(curve) // 10, 1), 2 * len(curve) // 3
        rises.append(curve[-tenth:].mean() - curve[max(then - tenth, 0) : max(then, 1)].mean())
    signed = [f"{x:+.3f}".replace("-", "−") for x in sorted(rises)]
    return " to ".join(dict.fromkeys((signed[0], signed[-1])))


def not_over(*groups: list[Record]) -> str:
    """How many runs of group 2 were still rising at their end; nothing if none was."""
    records, rising = _concave(*groups), 0
    for record in records:
        curve = np.array(record["metrics"]["curve"]["sim_gt"])
        tenth = max(len(curve) // 10, 1)
        rising += bool(curve[-tenth:].mean() - curve[-2 * tenth : -tenth].mean() > RISE)
    if not rising:
        return ""
    were = f"{rising} of {len(records)} runs {'was' if rising == 1 else 'were'}"
    return say("not_over", steps=between(sorted({r["budget"]["steps"] for r in records})), were=were)


def networks(*groups: list[Record]) -> str:
    """Which deep agents with shaped rewards there are."""
    records = [record for group in groups for record in group]
    goals = {(r["setting"]["env"], goal) for r in records for goal in r["metrics"]["goals"]}
    each = {r["budget"].get("agents", 0) / np.prod([len(r["metrics"][key]) for key in ("rewards", "variants", "goals")])
            for r in records}  # fmt: skip
    on = len(goals) // len({env for env, _ in goals})
    return say("networks", on=on, goals=GOALS, each=f"{max(each):.0f}")


def only_mixed(*groups: list[Record]) -> str:
    """Whether deep agents had the mixed reward only."""
    alone = any("literal" in r["metrics"]["variants"] for group in groups for r in group)
    return "" if alone else say("only_mixed")


def deep_baseline(*groups: list[Record]) -> str:
    """Whether the deep baseline was cut short."""
    return say("deep_baseline") if any(cut_short(r["budget"]) for r in groups[-1]) else ""


def truth_as_far(ours: list[Record], base: list[Record], truth: list[Record]) -> str:
    """Whether with the options of the truth, too, far rooms are far."""
    ratio = (metric(truth, "far") / metric(truth, "next_door")).mean()
    return say("truth_as_far") if ratio > SIMILAR else ""


def ceilings(records: list[Record], *others: list[Record]) -> str:
    """The ceilings of the data of each run."""
    return say("ceilings", values=", ".join(f"{x:.3f}" for x in metric(records, "ceiling")))


FACTS: dict[str, Callable[..., str]] = {
    "fourier": lambda *groups: small_runs("fourier", *groups),
    "smaller": lambda *groups: small_runs("smaller", *groups),
} | {
    fact.__name__: fact
    for fact in (
        small_target, pace, mixed_pairs, mixed_concave, not_over, networks, only_mixed, deep_baseline, truth_as_far,
        ceilings,
    )
}  # fmt: skip
