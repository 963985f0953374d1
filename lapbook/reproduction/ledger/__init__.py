"""The reproduction ledger: a row for each figure, table and theorem of the paper, made from the records alone.

`paper.CLAIMS` has what the paper says, `entries` which records bear on it, `verdicts` how they are judged (by the
judges in `exact`, `representations` and `agents`), `remarks` what there is to say about them, `deviations` where we do
otherwise than the paper, and `words` how runs are told.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from fnmatch import fnmatch
from pathlib import Path

from lapbook.reproduction import paper
from lapbook.reproduction.common import cut_short
from lapbook.reproduction.experiments import EXPERIMENTS
from lapbook.reproduction.ledger.entries import ENTRIES, PARTS, SETTINGS, Entry
from lapbook.reproduction.ledger.remarks import NOTES, SEE, WHYS, about
from lapbook.reproduction.ledger.verdicts import SHORT, SHOWN, VERDICTS, Better, Finding, Values
from lapbook.reproduction.ledger.words import budgets, commands, ended_early, endings, seeds
from lapbook.results import Record, folder, matching, read

__all__ = ["ENTRIES", "OPEN", "PARTS", "SETTINGS", "Row", "count", "ended_early", "faults", "in_full", "rows"]

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
    better: Better | None = None
    """The same with changes of ours."""
    another: Better | None = None
    """What another method gives; it has no say in whether the claim holds."""
    printed: float | None = None
    values: Values = ()
    """Ours, one for each run, to compare with the number printed."""

    @property
    def holds(self) -> bool:
        """Whether the claim was reproduced or exceeded."""
        return self.verdict in VERDICTS[:2]

    @property
    def holds_with_changes(self) -> bool:
        """Whether it does not hold at the paper's settings, and does with changes of ours."""
        return not self.holds and self.better is not None and self.better.verdict in VERDICTS[:2]


# From records to rows


def rows(where: Path | str | None = None) -> list[Row]:
    """All rows of the ledger, from the records in a folder (default: the book's)."""
    where = Path(where or folder())
    known: dict[str, list[Record]] = {}
    return [_row(part, entry, where, known) for part, entries in ENTRIES.items() for entry in entries]


def _row(part: str, entry: Entry, where: Path, known: dict[str, list[Record]]) -> Row:
    claim, sources = paper.CLAIMS[entry.claim], (*entry.sources, *entry.beside)
    groups = [_matching(source, where, known) for source in sources]
    judged = groups[: len(entry.sources)]
    missing = [s for s, group in zip(entry.sources, judged, strict=True) if not group and not s.startswith("?")]
    if missing or not any(judged):
        finding = Finding("no record yet", OPEN)
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
        seeds=seeds(judged, groups[len(judged) :]),
        budget=budgets([group for _, group in found]),
        command="\n".join(dict.fromkeys(line for source, group in found for line in commands(source, group))),
        verdict=finding.verdict,
        why=why,
        records=tuple(files),
        settings="early" if early else entry.settings,
        see=about(entry.claim, SEE),
        better=finding.better,
        another=finding.another,
        printed=finding.printed,
        values=finding.values,
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
