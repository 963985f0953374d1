"""The reproduction ledger: a row for each figure, table and theorem of the paper, made from the records alone.

`paper.CLAIMS` has what the paper says, `ENTRIES` which records bear on it, `verdicts` how they are judged, and
`remarks` what there is to say about them.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from fnmatch import fnmatch
from functools import partial
from pathlib import Path

from lapbook import paper, verdicts, verdicts_exact
from lapbook.experiments import EXPERIMENTS
from lapbook.experiments.common import cut_short
from lapbook.remarks import NOTES, SEE, WHYS, about, between, listed
from lapbook.results import Record, folder, matching, read
from lapbook.verdicts import CHANCE, SHORT, SHOWN, VERDICTS, Better, Judge, Numbers

OPEN = "open"  # the verdict of a row that has no record yet; a test fails on it
PROVENANCE = ("command", "commit", "versions", "date")
SETTINGS = {
    "paper": "the paper's settings, as far as it states them",
    "early": "the paper's settings, ended early",
    "changed": "settings of ours",
    "exact": "computed, nothing is trained",
}


@dataclass(frozen=True)
class Row:
    """One line of the ledger."""

    part: str
    """A key of PARTS."""
    kind: str
    """A key of `paper.KINDS`."""
    place: str
    claim: str
    paper: str
    ours: str
    seeds: str
    budget: str
    command: str
    """One line for each group of records."""
    verdict: str
    why: str
    """What there is to say about it; never empty where the claim does not hold."""
    records: tuple[str, ...]
    """Files, relative to the folder of the results."""
    settings: str
    """A key of SETTINGS."""
    see: str
    """Page of the book and a place on it, `page#place`."""
    better: Better | None = None
    """The same with changes of ours."""
    another: Better | None = None
    """What another method gives; it has no say in whether the claim holds."""
    printed: float | None = None
    numbers: Numbers | None = None
    """Our mean and the ends of its interval, to compare with the number printed."""

    @property
    def holds(self) -> bool:
        """Whether the claim was reproduced or exceeded."""
        return self.verdict in VERDICTS[:2]

    @property
    def holds_with_changes(self) -> bool:
        """Whether it does not hold at the paper's settings, and does with changes of ours."""
        return not self.holds and self.better is not None and self.better.verdict in VERDICTS[:2]


@dataclass(frozen=True)
class Entry:
    """What a row is made of."""

    claim: str
    """A key of `paper.CLAIMS`."""
    sources: tuple[str, ...]
    """What is judged: patterns `experiment/name`, as `reproduce experiment --only name` takes them. Where one that
    begins with ? has no records, the row is not run in full."""
    judge: Judge
    """Takes the records of each source, then those of each in `beside`."""
    settings: str = "paper"
    """A key of SETTINGS; of runs that took fewer steps than they might have, "paper" becomes "early"."""
    beside: tuple[str, ...] = ()
    """What is told beside, and not judged; it may be without records."""


# Which records bear on a claim, and who judges them


def _theory() -> Iterator[Entry]:
    exact = partial(Entry, settings="exact")
    yield exact("eq-2", ("exact/rotations-*",), verdicts_exact.invariance)
    yield exact("theorem-1", ("exact/theorem-1-*",), verdicts_exact.unique_minimiser)
    yield exact("lemma-1", ("exact/lemma-1-*",), partial(verdicts_exact.identity, key="difference"))
    yield exact("theorem-2", ("exact/theorem-2-*",), verdicts_exact.on_functions)
    for k in (2, 3):
        yield exact(f"lemma-{k}", ("exact/theorem-2-*",), partial(verdicts_exact.identity, key=f"lemma_{k}"))
    yield exact("loss", ("exact/sampled-loss-*",), verdicts_exact.unbiased)


SCALED = "with target τ = 1/d"
FOURIER = "fourier-ggd-fast", "fourier-gd-fast"


def _table_1() -> Iterator[Entry]:
    for (env, obs), printed in paper.TABLE_1["gd"].items():
        on_grid = env in paper.STATES
        source = f"table1/{env}-{obs}-gd-paper-10-*" if on_grid else f"point/{env}-xy-gd-fast-10-*"
        judge = partial(verdicts.number, printed=printed, tolerance=CHANCE, more=False)
        yield Entry(f"table-1-gd-{env}-{obs}", (source,), judge, "paper" if on_grid else "changed")
    for (env, obs), printed in paper.TABLE_1["ggd"].items():
        key = f"table-1-ggd-{env}-{obs}"
        if env in paper.STATES:
            literal, changed = (f"table1/{env}-{obs}-ggd-{preset}-10-*" for preset in ("paper", "paper-scaled"))
            yield Entry(key, (literal,), partial(verdicts.number, printed=printed, how=SCALED), beside=(changed,))
        else:
            literal, *changed = (f"point/{env}-{run}-10-*" for run in ("xy-ggd-paper", *FOURIER))
            yield Entry(key, (literal,), partial(verdicts.on_floor, printed=printed), beside=tuple(changed))


def _representations() -> Iterator[Entry]:
    yield Entry("fig-2", ("exact/environments-*",), verdicts_exact.described, "exact")
    yield Entry("truth", ("exact/finite-differences-*",), verdicts_exact.converges, "exact")
    for key, env, dims in (
        ("fig-1", "PointMaze", slice(1, 2)),
        ("fig-4", "PointRoom", slice(None)),
        ("fig-16", "PointMaze", slice(None)),
    ):
        sources = [f"point/{env}-{run}-10-*" for run in ("xy-ggd-paper", "xy-gd-fast", *FOURIER)]
        judge = partial(verdicts.looks_alike_on_floor, dims=dims)
        yield Entry(key, tuple(sources[:2]), judge, beside=tuple(sources[2:]))
    for key, env in (("fig-3", "GridMaze"), ("fig-15", "GridRoom")):
        xy, image = (tuple(f"table1/{env}-{obs}-{method}-paper-10-*" for method in ("ggd", "gd"))
                     for obs in ("xy", "image"))  # fmt: skip
        yield Entry(key, xy, verdicts.looks_alike, beside=image)
    for key, method, first in (
        ("fig-5-ours", "ggd", 3),
        ("fig-5-baseline", "gd", 3),
        ("fig-17", "ggd", None),
        ("fig-18", "gd", None),
    ):
        judge = partial(verdicts.agreement_of_runs, alike=method == "ggd", first=first)
        yield Entry(key, (f"table1/GridRoom-xy-{method}-paper-10-*",), judge)


def _options() -> Iterator[Entry]:
    def climbing(env: str) -> tuple[str, str, str]:
        truth, ours, base = (f"options/{env}-climb-{run}-10-*" for run in ("truth-exact", "ggd-paper", "gd-paper"))
        return truth, ours, base

    for env in paper.STATES:
        deep, base = (f"options/{env}-dqn-{method}-paper-10-*" for method in ("ggd", "gd"))
        sources = (*climbing(env), deep)
        yield Entry(f"fig-6-{env}", sources, verdicts.option_lengths, "changed", beside=(base,))
    truth, ours, base = climbing("GridRoom")
    yield Entry("fig-7-rooms", ("exact/environments-*",), verdicts_exact.numbered_rooms, "exact")
    yield Entry("fig-7-far", (ours, base), verdicts.far_rooms, "changed")
    yield Entry("fig-7-near", (ours, base, truth), verdicts.near_rooms, "changed")
    for key, dims in (("fig-19", range(2, 7)), ("fig-20", range(7, 11))):
        yield Entry(key, (truth, ours, base), partial(verdicts.options_drawn, dims=dims), "changed")


def _shaping() -> Iterator[Entry]:
    runs = {"ggd": "ggd-paper", "gd": "gd-paper", "none": "none-raw"}

    def agents(env: str, *methods: str, kind: str = "tabular") -> tuple[str, ...]:
        return tuple(f"shaping/{env}-{kind}-{runs[method]}-[0-9]" for method in methods)

    def both(*methods: str) -> tuple[str, ...]:
        return tuple(source for env in paper.STATES for source in agents(env, *methods))

    for letter, env in zip("ab", paper.STATES, strict=True):
        yield Entry(f"fig-8-{letter}", agents(env, "ggd"), verdicts.lower_is_better, "changed")
    for letter, env in zip("cd", paper.STATES, strict=True):
        yield Entry(f"fig-8-{letter}", agents(env, "ggd", "gd", "none"), verdicts.alone_and_mixed, "changed")
    deep = [source for env in paper.STATES for source in agents(env, "ggd", "none", "gd", kind="dqn")]
    yield Entry("fig-8-deep", tuple(f"?{source}" for source in deep), verdicts.deep_on_maps, "changed")
    yield Entry("fig-12", ("exact/environments-*",), verdicts_exact.goals_apart, "exact")
    yield Entry("fig-13", both("gd", "ggd"), verdicts.baseline_order, "changed")
    own = partial(verdicts.on_both, judge=partial(verdicts.alone_and_mixed, own=True))
    yield Entry("fig-14", both("ggd"), own, "changed")


def _analysis() -> Iterator[Entry]:
    def runs(env: str, group: str) -> str:
        return f"coefficients/{env}-{group}-paper-scaled-10-*"

    literal = tuple(f"table1/{env}-xy-ggd-paper-10-0" for env in paper.STATES)  # the seed with snapshots
    yield Entry("fig-9", literal, verdicts.kept_to_span, beside=tuple(runs(env, "paper") for env in paper.STATES))
    yield Entry("fig-10", ("exact/eigenvalues-*",), verdicts_exact.distinct, "exact")
    groups = tuple(runs("GridMaze", group) for group in paper.TABLE_6)
    yield Entry("fig-11-a", groups[:2], verdicts.groups_drawn, "changed")
    yield Entry("fig-11-b", groups, verdicts.groups_as_good, "changed")
    for group, printed in paper.TABLE_6.items():
        key, judge = f"table-6-{group}", partial(verdicts.number, printed=printed, how=SCALED)
        if group == "paper":
            yield Entry(key, ("table1/GridRoom-xy-ggd-paper-10-*",), judge, beside=(runs("GridRoom", group),))
        else:
            yield Entry(key, (runs("GridRoom", group),), partial(judge, inside=True), "changed")


def _settings() -> Iterator[Entry]:
    source, networks = "exact/hyperparameters-*", "exact/networks-*"
    for key, obs, table in (("table-2", "xy", paper.TABLE_2), ("table-3", "image", paper.TABLE_3)):
        yield Entry(key, (networks,), partial(verdicts_exact.layers, obs=obs, table=table), "exact")
    same = verdicts_exact.same_settings
    for key, name, table, runs in (
        ("table-4", "options", paper.TABLE_4, "options/*-dqn-*-paper-10-*"),
        ("table-5", "shaping", paper.TABLE_5, "shaping/*-dqn-[gn]*-[0-9]"),
    ):
        yield Entry(key, (source,), partial(same, name=name, table=table, of=paper.PRINTED), beside=(runs,))
    data = ("table1/*-ggd-paper-10-*", "table1/*-gd-paper-10-*", "point/*-ggd-paper-10-*")
    yield Entry("training", (source,), partial(same, name="training", table=paper.TRAINING), beside=data)


PARTS = {
    "The theory": _theory,
    "Table 1": _table_1,
    "Learned representations": _representations,
    "Options": _options,
    "Reward shaping": _shaping,
    "Assumptions and coefficients": _analysis,
    "Networks and settings": _settings,
}
ORDER = list(paper.CLAIMS)
ENTRIES = {part: tuple(sorted(made(), key=lambda entry: ORDER.index(entry.claim))) for part, made in PARTS.items()}


# From records to rows


def rows(where: Path | str | None = None) -> list[Row]:
    """All rows of the ledger, from the records in a folder (default: the book's)."""
    where, known = Path(where or folder()), {}
    return [_row(part, entry, where, known) for part, entries in ENTRIES.items() for entry in entries]


def _row(part: str, entry: Entry, where: Path, known: dict[str, list[Record]]) -> Row:
    claim, sources = paper.CLAIMS[entry.claim], (*entry.sources, *entry.beside)
    groups = [_matching(source, where, known) for source in sources]
    judged = groups[: len(entry.sources)]
    missing = [s for s, group in zip(entry.sources, judged, strict=True) if not group and not s.startswith("?")]
    if missing or not any(judged):
        finding = verdicts.Finding("no record yet", OPEN)
        why = f"nothing matches {', '.join(missing or entry.sources)}"
    else:
        finding = entry.judge(*groups)
        if finding.verdict != SHOWN and not all(map(in_full, entry.sources, judged)):
            finding = finding._replace(verdict=SHORT)
        texts = (NOTES,) if finding.verdict in (*VERDICTS[:2], SHORT) else (NOTES, WHYS)
        why = " ".join(filter(None, (endings(groups), *(about(entry.claim, each, groups) for each in texts))))
        if finding.verdict == SHORT and (lacking := sum(map(_lacking, entry.sources, judged))):
            why = f"Runs without a record yet: {lacking}. {why}"
    early = entry.settings == "paper" and any(map(ended_early, (r for group in groups for r in group)))
    found = [(s, group) for s, group in zip(sources, groups, strict=True) if group]
    files = dict.fromkeys(Path(r["file"]).relative_to(where).as_posix() for _, group in found for r in group)
    return Row(
        part=part,
        kind=claim.kind,
        place=claim.place,
        claim=claim.says,
        paper=claim.printed,
        ours=finding.ours,
        seeds=_seeds(judged, groups[len(judged) :]),
        budget=_budgets([group for _, group in found]),
        command="\n".join(dict.fromkeys(_command(source, group) for source, group in found)),
        verdict=finding.verdict,
        why=why,
        records=tuple(files),
        settings="early" if early else entry.settings,
        see=about(entry.claim, SEE),
        better=finding.better,
        another=finding.another,
        printed=finding.printed,
        numbers=finding.numbers,
    )


def _matching(source: str, where: Path, known: dict[str, list[Record]]) -> list[Record]:
    """The records of a source; `known` keeps what has been read."""
    experiment, only = source.lstrip("?").split("/")
    if experiment not in known:
        there = any((where / experiment).glob("*.json"))
        known[experiment] = read(experiment, where) if there else []
    return [r for r in known[experiment] if fnmatch(Path(r["file"]).stem, only)]


def _lacking(source: str, records: list[Record]) -> int:
    """How many settings of a source have no record."""
    experiment, only = source.lstrip("?").split("/")
    return max(len(matching(EXPERIMENTS[experiment].settings, only)) - len(records), 0)


def in_full(source: str, records: list[Record]) -> bool:
    """Whether all settings of a source have been run, and none was cut short by its time."""
    return _lacking(source, records) == 0 and not any(cut_short(r["budget"]) for r in records)


def ended_early(record: Record) -> bool:
    """Whether a run took fewer steps than it might have: because its curves were flat, or its time was over."""
    return record["budget"].get("steps", 0) < record["budget"].get("steps_allowed", 0)


METHODS = {"ggd": "ours", "gd": "the baseline", "none": "no representation"}


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


def _seeds(judged: list[list[Record]], beside: list[list[Record]]) -> str:
    """The seeds of each group, those that are among another's left out; then others that are told beside."""

    def sets(groups: list[list[Record]]) -> list[str]:
        found = dict.fromkeys(frozenset(r["setting"]["seed"] for r in group) for group in groups if group)
        return [", ".join(map(str, sorted(one))) for one in found if not any(one < other for other in found)]

    others = [seeds for seeds in sets(beside) if seeds not in sets(judged)]
    return "; ".join([*sets(judged), *(f"beside {seeds}" for seeds in others)])


def _budgets(groups: list[list[Record]]) -> str:
    """What each group has used; those that took the same steps together."""
    alike: dict[tuple, list[Record]] = {}
    for group in groups:
        steps = sorted(r["budget"].get("steps", 0) for r in group)
        key = steps[0], steps[-1], any(cut_short(r["budget"]) for r in group)
        alike.setdefault(key, []).extend(group)
    return "; ".join(map(spent, alike.values()))


def _command(source: str, records: list[Record]) -> str:
    experiment, only = source.lstrip("?").split("/")
    hours = {m.group() for r in records if (m := re.search(r" --hours \S+", r["provenance"]["command"]))}
    return f"python -m lapbook reproduce {experiment} --only '{only}'{max(hours, default='')}"


def spent(records: list[Record]) -> str:
    """What runs have used, in words."""
    budgets = [r["budget"] for r in records]
    parts = ["1 run" if len(budgets) == 1 else f"{len(budgets)} runs"]
    if agents := sum(b.get("agents", 0) for b in budgets):
        parts.append(f"{agents:,} agents")
    steps = sorted({b.get("steps", 0) for b in budgets})
    if steps[-1] > 1:
        parts.append(" to ".join(f"{step:,}" for step in dict.fromkeys((steps[0], steps[-1]))) + " steps")
    if short := [b for b in budgets if cut_short(b)]:
        parts.append(f"{len(short)} cut short of {short[0]['steps_allowed']:,}")
    seconds = sum(b["wall_seconds"] for b in budgets)
    unit, size = next((u, s) for u, s in (("h", 3600), ("min", 60), ("s", 1)) if seconds >= 2 * s or s == 1)
    return ", ".join([*parts, f"{seconds / size:.0f} {unit}" if seconds >= 1 else "under 1 s"])


def faults(ledger: list[Row], where: Path | str | None = None) -> list[str]:
    """What keeps a ledger from being trusted, one sentence each: nothing, if all is well."""
    found = [f"{row.place} has no verdict" for row in ledger if row.verdict not in VERDICTS]
    found += [f"{row.place} has no record" for row in ledger if not row.records]
    found += [f"{row.place} does not say why" for row in ledger if not row.holds and not row.why]
    for file in dict.fromkeys(file for row in ledger for file in row.records):
        record = json.loads((Path(where or folder()) / file).read_text(encoding="utf-8"))
        lacking = [part for part in PROVENANCE if not record.get("provenance", {}).get(part)]
        found += [f"{file} does not tell its {part}" for part in lacking]
    return found


def count(ledger: list[Row]) -> dict[str, int]:
    """How many rows have each verdict; those that hold only with a change of ours also as "with changes"."""
    found = {verdict: sum(row.verdict == verdict for row in ledger) for verdict in VERDICTS}
    return found | {"with changes": sum(row.holds_with_changes for row in ledger)}
