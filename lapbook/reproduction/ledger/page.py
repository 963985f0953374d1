"""The ledger as a page: its rows in HTML, links to them, and the numbers of the paper next to ours in a figure."""

from __future__ import annotations

import re
from collections import Counter
from html import escape
from typing import Any

from matplotlib.axes import Axes

from lapbook import plots
from lapbook.reproduction import ledger
from lapbook.reproduction.ledger import verdicts

MARKS = dict(zip(verdicts.VERDICTS, "✓+~≠…–·", strict=True))
WIDTHS = {"place": 15, "the paper": 25, "as printed": 31, "as coded": 29}
STYLE = """<style>
.lb-find p {margin: 0 0 0.4rem; line-height: 2}
.lb-find a {display: inline-block; padding: 0 0.45rem; margin: 0 0.1rem; line-height: 1.6;
  border: 1px solid var(--pst-color-border, #8886); border-radius: 6px; text-decoration: none; white-space: nowrap}
.lb-find small {margin-left: 0.3rem; letter-spacing: 0.05em}
.lb-ledger {width: 100%; border-collapse: collapse; table-layout: fixed;
  color: inherit; font-size: 0.85rem; line-height: 1.45}
.lb-ledger :is(th, td) {text-align: left !important; vertical-align: top; padding: 0.45rem 0.5rem !important;
  white-space: normal; color: inherit; background: none !important; border: 0; overflow-wrap: break-word}
.lb-ledger tr {background: none !important}
.lb-ledger tbody {border-top: 1px solid var(--pst-color-border, #8886)}
.lb-ledger .more td {padding-top: 0 !important; font-size: 0.8rem}
.lb-ledger .more p {margin: 0 0 0.3rem}
.lb-ledger .beside {font-style: italic; margin-top: 0.35rem}
.lb-ledger summary {cursor: pointer}
.lb-ledger pre {white-space: pre-wrap; overflow-wrap: anywhere; font-size: 0.75rem; margin: 0.3rem 0; padding: 0.5rem}
.lb-verdict {display: inline-block; font-weight: 600; padding-left: 0.4rem; border-left: 0.35rem solid #6b7280}
.lb-verdict.reproduced {border-color: #16a34a}
.lb-verdict.exceeded {border-color: #2563eb}
.lb-verdict.with-changes {border-color: #0d9488}
.lb-verdict.differs {border-color: #d97706}
@media (max-width: 700px) {
  .lb-ledger, .lb-ledger :is(tbody, tr, td, th) {display: block; width: auto}
  .lb-ledger thead {display: none}
  .lb-ledger :is(th, td) {padding: 0.15rem 0 !important}
  .lb-ledger tbody {padding: 0.7rem 0}
  .lb-ledger td[data-label]:not(:empty)::before {content: attr(data-label) ": "; font-weight: 600}
}
</style>"""


def anchor(row: ledger.Row) -> str:
    """The name of a row in the address of the page.

    >>> anchor(next(row for row in ledger.rows() if row.place == "Figure 8(c, d), deep agents"))
    'ledger-figure-8c-d-deep-agents'
    """
    return "ledger-" + row.place.lower().translate(str.maketrans(" ", "-", "(),."))


def numbered(rows: list[ledger.Row]) -> dict[str, dict[str, list[ledger.Row]]]:
    """The rows by kind and number: "Figure 8(c, d), deep agents" belongs to "Figure" and "8"."""
    found: dict[str, dict[str, list[ledger.Row]]] = {}
    for row in rows:
        match = re.match(r"(\w+?)s? ([E\d.]+(?: to \d+)?)", row.place)
        assert match, row.place
        found.setdefault(match[1], {}).setdefault(match[2], []).append(row)
    return found


def best(row: ledger.Row) -> str:
    """The verdict of a row under the reading that is kinder to it."""
    return min((row.verdict, row.coded.verdict if row.coded else row.verdict), key=verdicts.VERDICTS.index)


def finder(rows: list[ledger.Row]) -> str:
    """HTML with a link to the first row of each number, and the marks of all its rows."""
    kinds = numbered(rows)

    def links(kind: str) -> str:
        made = []
        for number in sorted(kinds[kind], key=lambda n: (len(n), n)):
            found = kinds[kind][number]
            told = ", ".join(f"{many} {verdict}" for verdict, many in Counter(map(best, found)).items())
            marks = "".join(MARKS[best(row)] for row in found)
            label = f'aria-label="{kind} {number}: {told}"'
            made.append(f'<a href="#{anchor(found[0])}" {label}>{number}<small>{marks}</small></a>')
        return f"<b>{kind}</b> {' '.join(made)}"

    lines = [links("Figure"), links("Table")]
    lines += [" &ensp; ".join(links(kind) for kind in kinds if kind not in ("Figure", "Table"))]
    legend = ", ".join(f"{mark} {verdict}" for verdict, mark in MARKS.items())
    lines += [f"<small>A mark for each row, under the reading that is kinder to it: {legend}.</small>"]
    return STYLE + '<div class="lb-find"><p>' + "</p><p>".join(lines) + "</p></div>"


def numbers(rows: list[ledger.Row], ax: Axes) -> None:
    """The numbers that the paper printed, next to ours as printed (filled) and as coded (open)."""
    printed = [(row, row.printed) for row in rows if row.printed is not None]

    def dot(values: verdicts.Values, y: float, method: str, **look: Any) -> None:
        mean, low, high = verdicts.estimate(values)
        ax.plot([low, high], [y, y], color=plots.COLOURS[method], lw=1.5)
        ax.plot(mean, y, "o", color=plots.COLOURS[method], **look)

    for y, (row, theirs) in enumerate(printed):
        method = "gd" if row.place.endswith("baseline") else "ggd"
        if row.verdict == verdicts.SHORT:  # runs of different length have no mean
            ax.plot(row.values, [y] * len(row.values), "x", color=plots.COLOURS[method])
        else:
            dot(row.values, y, method)
        if row.coded and row.coded.values:
            dot(row.coded.values, y + 0.25, method, mfc="white", ms=5)
        if row.another:
            dot(row.another.values, y - 0.25, "gd+ritz", mfc="white", ms=5)
        ax.plot(theirs, y, "D", color="#111827", mfc="none", ms=7)
    ax.set_yticks(range(len(printed)), [row.place for row, _ in printed])
    ax.set(xlabel="SimGT", xlim=(0, 1.02), ylim=(len(printed) - 0.4, -0.6))


def failing(rows: list[ledger.Row]) -> str:
    """Markdown: the rows that hold under neither reading, with what holds after changes of ours."""
    lines = ["| row | as printed | as coded | with changes of ours |", "|---|---|---|---|"]
    for row in rows:
        if row.verdict != verdicts.SHOWN and not (row.holds or row.holds_as_coded):
            coded = row.coded.verdict if row.coded else ""
            better = row.better.verdict if row.better else ""
            lines.append(f'| <a href="#{anchor(row)}">{row.place}</a> | {row.verdict} | {coded} | {better} |')
    return "\n".join(lines)


def table(rows: list[ledger.Row], part: str) -> str:
    """HTML of the rows of a part of the ledger."""
    widths = "".join(f'<col style="width: {w}%">' for w in WIDTHS.values())
    heads = "".join(f'<th scope="col">{name}</th>' for name in WIDTHS)
    bodies = "".join(_body(row) for row in rows if row.part == part)
    top = f'<table class="lb-ledger"><colgroup>{widths}</colgroup>'
    return f"{top}<thead><tr>{heads}</tr></thead>{bodies}</table>"


def _html(text: str) -> str:
    """Escaped, with its lines, and with what follows an underscore set lower."""
    text = escape(text).replace("\n", "<br>")
    return re.sub(r"_(?:{(.+?)}|(\w))", r"<sub>\1\2</sub>", text)


def _found(verdict: str, ours: str, strong: str) -> str:
    """A verdict and what it rests on."""
    mark = f'<span class="lb-verdict {verdict.replace(" ", "-")}">{verdict}</span>'
    return f"{mark}<br><{strong}>{_html(ours)}</{strong}>"


def _body(row: ledger.Row) -> str:
    """A row of the ledger: a line of the table, and one with what is behind it."""
    strong = "strong" if row.printed is not None else "span"
    theirs = f"{_html(row.claim)}<br><{strong}>{escape(row.paper)}</{strong}>"
    ours = _found(row.verdict, row.ours, strong)
    for other in (row.better, row.another):
        if other is not None:
            ours += f'<div class="beside">{_html(f"{other.words} ({other.verdict})")}</div>'
    coded = _found(row.coded.verdict, row.coded.ours, strong) if row.coded else ""
    cells = zip(list(WIDTHS)[1:], (theirs, ours, coded), strict=True)
    line = "".join(f'<td data-label="{name}">{cell}</td>' for name, cell in cells)
    page, _, place = row.see.partition("#")
    link = f'<a href="{page}.html{f"#{place}" if place else ""}">chapter {int(page[:2])}</a>'
    settings = ledger.SETTINGS[row.settings].capitalize()
    work = f"{settings}. Seeds {row.seeds}; {row.budget}. See {link}."
    behind = "".join(f"<p>{text}</p>" for text in filter(None, (_html(row.why), work)))
    evidence = escape("\n".join([row.command, "", *row.records]))
    return (
        f'<tbody id="{anchor(row)}"><tr><th scope="row">{escape(row.place)}</th>{line}</tr>'
        f'<tr class="more"><td colspan="{len(WIDTHS)}">{behind}<details><summary>command and records</summary>'
        f"<pre>{evidence}</pre></details></td></tr></tbody>"
    )
