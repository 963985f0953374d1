"""What records say of their runs, in words: seeds, steps, time, commands, and why some ended early."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence

import numpy as np

from lapbook.reproduction.common import cut_short
from lapbook.results import Record, name

METHODS = {"ggd": "ours", "gd": "the baseline", "none": "no representation"}


def between(values: Sequence[int] | np.ndarray, unit: str = "") -> str:
    """A range in words.

    >>> between([2000, 2000]), between([31, 30], "°")
    ('2,000', '30° to 31°')
    """
    ends = dict.fromkeys((f"{min(values):,}{unit}", f"{max(values):,}{unit}"))
    return " to ".join(ends)


def listed(words: list[str]) -> str:
    """Words in a row.

    >>> listed(["a", "b", "c"])
    'a, b and c'
    """
    return " and ".join(filter(None, (", ".join(words[:-1]), words[-1])))


def duration(seconds: float, **units: int) -> str:
    """A time in the largest of the units, given with their seconds, of which there are two; else in the last one.

    >>> duration(7200, h=3600, min=60, s=1), duration(7199, h=3600, min=60), duration(30, min=60)
    ('2 h', '120 min', '0 min')
    """
    unit = next((unit for unit, size in units.items() if seconds >= 2 * size), list(units)[-1])
    return f"{seconds / units[unit]:.0f} {unit}"


def ended_early(record: Record) -> bool:
    """Whether a run took fewer steps than it might have: because its curves were flat, or its time was over."""
    return record["budget"].get("steps", 0) < record["budget"].get("steps_allowed", 0)


def endings(groups: list[list[Record]]) -> str:
    """After how many steps runs ended early, group by group, in words; nothing if none did."""
    groups = [group for group in groups if group]
    places = [sorted({r["setting"]["env"] for r in group if "env" in r["setting"]}) for group in groups]
    differ = len({tuple(envs) for envs in places if envs}) > 1
    found: dict[tuple[str, int], list[str]] = {}
    for group, envs in zip(groups, places, strict=True):
        for reason, flat in (("on flat curves", True), ("out of time", False)):
            early = [r for r in group if ended_early(r) and bool(r["budget"].get("stopped_flat")) == flat]
            if early:
                steps = sorted({r["budget"]["steps"] for r in early})
                after = between(steps) if len(steps) > 3 else listed([f"{step:,}" for step in steps])
                part = f" ({len(early)} of {len(group)} runs)" if len(early) < len(group) else ""
                ended = f"{_who(early, envs if differ else [])}{part} after {after}"
                found.setdefault((reason, early[0]["budget"]["steps_allowed"]), []).append(ended)
    return " ".join(f"Ended early, {end}: {'; '.join(parts)} of {allowed:,} steps."
                    for (end, allowed), parts in found.items())  # fmt: skip


def _who(group: list[Record], envs: list[str]) -> str:
    """The runs of a group in words."""
    setting = group[0]["setting"]
    methods = dict.fromkeys(METHODS.get(r["setting"].get("method"), "others") for r in group)
    deep = "deep agents, " if "dqn" in (setting.get("route"), setting.get("agent")) else ""
    images = " from images" if {r["setting"].get("obs") for r in group} == {"image"} else ""
    return f"{deep}{listed(list(methods))}{images}" + (f" on {listed(envs)}" if envs else "")


def seeds(judged: list[list[Record]], beside: list[list[Record]]) -> str:
    """The seeds of each group, those that are among another's left out; then others that are told beside."""

    def sets(groups: list[list[Record]]) -> list[str]:
        found = dict.fromkeys(frozenset(r["setting"]["seed"] for r in group) for group in groups if group)
        return [", ".join(map(str, sorted(one))) for one in found if not any(one < other for other in found)]

    others = [one for one in sets(beside) if one not in sets(judged)]
    return "; ".join([*sets(judged), *(f"beside {one}" for one in others)])


def budgets(groups: list[list[Record]]) -> str:
    """What each group has used; those that took the same steps together."""
    alike: dict[tuple, list[Record]] = {}
    for group in groups:
        steps = sorted(r["budget"].get("steps", 0) for r in group)
        key = steps[0], steps[-1], any(cut_short(r["budget"]) for r in group)
        alike.setdefault(key, []).extend(group)
    return "; ".join(map(spent, alike.values()))


def spent(records: list[Record]) -> str:
    """What runs have used, in words."""
    used = [r["budget"] for r in records]
    parts = ["1 run" if len(used) == 1 else f"{len(used)} runs"]
    if agents := sum(b.get("agents", 0) for b in used):
        parts.append(f"{agents:,} agents")
    steps = sorted({b.get("steps", 0) for b in used})
    if steps[-1] > 1:
        parts.append(f"{between(steps)} steps")
    if short := [b for b in used if cut_short(b)]:
        parts.append(f"{len(short)} cut short of {short[0]['steps_allowed']:,}")
    seconds = sum(b["wall_seconds"] for b in used)
    return ", ".join([*parts, duration(seconds, h=3600, min=60, s=1) if seconds >= 1 else "under 1 s"])


def commands(source: str, records: list[Record]) -> list[str]:
    """What runs the records of a source again, a line for each limit of hours that they had.

    >>> told = [{"setting": {"env": "a", "seed": seed}, "provenance": {"command": hours}, "metrics": {},
    ...          "budget": {"wall_seconds": 9.0}} for seed, hours in enumerate(["", " --hours 2", " --hours 2"])]
    >>> [line.partition(" reproduce ")[2] for line in commands("trial/a-*", told)]
    ["trial --only 'a-0'", "trial --only 'a-[12]' --hours 2"]
    """
    experiment, only = source.lstrip("?").split("/")
    limits = [_limit(record) for record in records]
    patterns = dict.fromkeys((only, limit) for limit in limits)
    if len(patterns) > 1:
        seeds: dict[tuple[str, str], str] = {}
        for record, limit in zip(records, limits, strict=True):
            run, _, seed = name(record["setting"]).rpartition("-")
            seeds[run, limit] = seeds.get((run, limit), "") + seed
        patterns = {(f"{run}-{s if len(s) == 1 else f'[{s}]'}", limit): None for (run, limit), s in seeds.items()}
    return [f"python -m lapbook reproduce {experiment} --only '{pattern}'{limit}" for pattern, limit in patterns]


def _limit(record: Record) -> str:
    """The hours that a run was given, or that it took, if it had gone on past a point of its curve after those.

    Such a run was interrupted, and then given few hours only to store what it had.
    """
    given = re.search(r" --hours (\S+)", record["provenance"]["command"])
    if given is None:
        return ""
    seconds, points = record["budget"]["wall_seconds"], len(record["metrics"].get("curve", {}).get("steps", [0]))
    if seconds * (1 - 1 / points) <= 3600 * float(given[1]):
        return given[0]
    return f" --hours {math.floor(seconds / 36) / 100:g}"
