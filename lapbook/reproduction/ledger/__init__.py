"""The reproduction ledger: a row for each figure, table and theorem of the paper, made from the records alone.

`paper.CLAIMS` has what the paper says, `entries` which records bear on it, `verdicts` how they are judged (by the
judges in `exact`, `representations` and `agents`), `remarks` what there is to say about them, `deviations` where we do
otherwise than the paper, and `words` how runs are told.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from fnmatch import fnmatch
from pathlib import Path

from lapbook.reproduction import paper
from lapbook.reproduction.common import cut_short
from lapbook.reproduction.experiments import EXPERIMENTS
from lapbook.reproduction.ledger.entries import ENTRIES, PARTS, SETTINGS, Entry
from lapbook.reproduction.ledger.remarks import NOTES, SEE, WHYS, about
from lapbook.reproduction.ledger.verdicts import CHANGED, HOLDS, SHORT, SHOWN, VERDICTS, Better, Finding, Judge, Values
from lapbook.reproduction.ledger.words import budgets, commands, ended_early, endings, seeds
from lapbook.results import Record, folder, matching, read

__all__ = ["ENTRIES", "OPEN", "PARTS", "SETTINGS", "Row", "count", "ended_early", "faults", "in_full", "rows", "tally"]

OPEN = "open"  # the verdict of a row that has no record yet; a test fails on it
PROVENANCE = ("command", "commit", "versions", "date")


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
    coded: Finding | None = None
    """The second reading, as coded, where the row depends on it and it was run; the rest is as printed."""
    better: Better | None = None
    """The same with changes of ours."""
    another: Better | None = None
    """What another method gives; it has no say in whether the claim holds."""
    printed: float | None = None
    values: Values = ()
    """Ours, one for each run, to compare with the number printed."""

    @property
    def holds(self) -> bool:
        """Whether the claim was reproduced or exceeded, as printed."""
        return self.verdict in HOLDS

    @property
    def holds_as_coded(self) -> bool:
        """The same under the second reading; a row that does not depend on it is none of it."""
        return self.coded is not None and self.coded.verdict in HOLDS

    @property
    def holds_with_changes(self) -> bool:
        """Whether it holds under neither reading of the paper's settings, and does with changes of ours."""
        found = [self.verdict, *(one.verdict for one in (self.coded, self.better) if one)]
        return not (self.holds or self.holds_as_coded) and any(verdict in (*HOLDS, CHANGED) for verdict in found)


# From records to rows


def rows(where: Path | str | None = None) -> list[Row]:
    """All rows of the ledger, from the records in a folder (default: the book's)."""
    where = Path(where or folder())
    known: dict[str, list[Record]] = {}
    return [_row(part, entry, where, known) for part, entries in ENTRIES.items() for entry in entries]


def _row(part: str, entry: Entry, where: Path, known: dict[str, list[Record]]) -> Row:
    claim = paper.CLAIMS[entry.claim]
    judged, beside, coded = (
        [_matching(source, where, known) for source in sources]
        for sources in (entry.sources, entry.beside, entry.coded)
    )
    groups = [*judged, *beside]
    finding = _judged(entry.judge, entry.settings, entry.sources, judged, beside)
    if finding.verdict == OPEN:
        why = f"nothing matches {', '.join(entry.sources)}"
    else:
        texts = (NOTES,) if finding.verdict in (*HOLDS, CHANGED, SHORT) else (NOTES, WHYS)
        ended = endings([*groups, *(group for group in coded if group not in groups)])
        why = " ".join(filter(None, (ended, *(about(entry.claim, each, groups) for each in texts))))
        if finding.verdict == SHORT and (lacking := sum(map(_lacking, entry.sources, judged))):
            why = f"Runs without a record yet: {lacking}. {why}"
    second = None
    if entry.coded:
        second = _judged(entry.coded_judge or entry.judge, entry.coded_settings, entry.coded, coded, ())
        second = second._replace(verdict=SHORT if second.verdict == OPEN else second.verdict)
    early = entry.settings == "paper" and any(map(ended_early, (r for group in groups for r in group)))
    sources = (*entry.sources, *entry.beside, *entry.coded)
    found = [(s, group) for s, group in zip(sources, [*groups, *coded], strict=True) if group]
    files = dict.fromkeys(Path(r["file"]).relative_to(where).as_posix() for _, group in found for r in group)
    return Row(
        part=part,
        kind=claim.kind,
        place=claim.place,
        claim=claim.says,
        paper=claim.printed,
        ours=finding.ours,
        seeds=seeds(judged, [*beside, *coded]),
        budget=budgets([group for _, group in found]),
        command="\n".join(dict.fromkeys(line for source, group in found for line in commands(source, group))),
        verdict=finding.verdict,
        why=why,
        records=tuple(files),
        settings="early" if early else entry.settings,
        see=about(entry.claim, SEE),
        coded=second,
        better=finding.better,
        another=finding.another,
        printed=finding.printed,
        values=finding.values,
    )


def _judged(
    judge: Judge,
    settings: str,
    sources: Sequence[str],
    judged: Sequence[list[Record]],
    beside: Sequence[list[Record]],
) -> Finding:
    """What a judge finds; what lacks runs is not run in full, what holds on settings of ours holds with changes."""
    missing = [s for s, group in zip(sources, judged, strict=True) if not group and not s.startswith("?")]
    if missing or not any(judged):
        return Finding("no record yet", OPEN)
    finding = judge(*judged, *beside)
    if finding.verdict != SHOWN and not all(map(in_full, sources, judged)):
        return finding._replace(verdict=SHORT)
    return finding._replace(verdict=CHANGED) if settings == "changed" and finding.verdict in HOLDS else finding


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
    """How many rows have each verdict, as printed."""
    return {verdict: sum(row.verdict == verdict for row in ledger) for verdict in VERDICTS}


def tally(ledger: list[Row]) -> dict[str, int]:
    """How many rows hold under each reading of the paper, under at least one, and only with changes of ours."""
    return {
        "as printed": sum(row.holds for row in ledger),
        "as coded": sum(row.holds_as_coded for row in ledger),
        "under at least one": sum(row.holds or row.holds_as_coded for row in ledger),
        "only with changes of ours": sum(row.holds_with_changes for row in ledger),
    }
