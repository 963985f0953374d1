"""From the book's MyST Markdown to plain Markdown, with the numbers that the built pages show.

Plain means CommonMark, tables, `$…$` and `$$…$$`, a few HTML tags: what Colab, GitHub, VS Code and JupyterLab all read.
Sphinx gives the numbers of a page; here they are counted anew by the same rules, so that no build is needed, and
tests/test_twins.py compares them with the built pages.
"""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pybtex.backends.markdown import Backend as MarkdownBackend
from pybtex.database import Entry, Person, parse_file
from pybtex.plugin import find_plugin

FENCE = re.compile(r"^(?P<mark>`{3,}|~{3,}|:{3,})(?:\{(?P<name>[\w:-]+)\})?(?P<rest>.*)$")
OPTION = re.compile(r"^:([\w-]+):\s*(.*)$")
HEADING = re.compile(r"^(#{1,6}) +(.+)$")
TARGET = re.compile(r"^\(([\w:-]+)\)=\s*$")
INLINE = re.compile(
    r"\{(?P<role>[a-z][\w:-]*)\}`(?P<content>[^`]+)`"
    r"|(?P<ticks>`+)(?P<code>.+?)(?<!`)(?P=ticks)(?!`)"
    r"|(?<!\\)\$\$(?P<display>.+?)\$\$(?:[ ]*\((?P<label>[\w:-]+)\))?"
    r"|(?<![\\$])\$(?P<math>[^\s$](?:[^$]*[^\s$\\])?)\$(?!\d)",
    re.DOTALL,
)
EXPLICIT = re.compile(r"^(?P<text>.*?)\s*<(?P<label>[^<>]+)>$", re.DOTALL)


@dataclass(frozen=True)
class Directive:
    """A fenced block with a name in braces."""

    name: str
    argument: str
    options: dict[str, str]
    body: str


@dataclass(frozen=True)
class Code:
    """A fenced block of code, fences included."""

    text: str


Piece = str | Code | Directive


@dataclass(frozen=True)
class Target:
    """What a role can point to: `name` is what the reader sees, such as "Theorem 3.1" or the title of a section."""

    page: str
    name: str
    title: str = ""


def pieces(source: str) -> list[Piece]:
    """Cut Markdown into running text, blocks of code and directives.

    >>> pieces("Let\\n```{prf:lemma} Ours\\n:label: lem\\n\\nit be.\\n```")
    ['Let', Directive(name='prf:lemma', argument='Ours', options={'label': 'lem'}, body='it be.')]
    """
    found: list[Piece] = []
    text: list[str] = []
    lines = source.split("\n")
    i = 0
    while i < len(lines):
        fence = FENCE.match(lines[i])
        if not fence or (fence["mark"][0] == ":" and not fence["name"]):
            text.append(lines[i])
            i += 1
            continue
        closing = re.compile(rf"^{fence['mark'][0]}{{{len(fence['mark'])},}}\s*$")
        end = next((j for j in range(i + 1, len(lines)) if closing.match(lines[j])), None)
        if end is None:
            raise ValueError(f"a block is not closed: {lines[i]!r}")
        if "\n".join(text).strip():
            found.append("\n".join(text).strip("\n"))
        text = []
        if fence["name"]:
            found.append(_directive(fence["name"], fence["rest"].strip(), lines[i + 1 : end]))
        else:
            found.append(Code("\n".join(lines[i : end + 1])))
        i = end + 1
    if "\n".join(text).strip():
        found.append("\n".join(text).strip("\n"))
    return found


def _directive(name: str, argument: str, lines: list[str]) -> Directive:
    options = {}
    while lines and (option := OPTION.match(lines[0])):
        options[option[1]] = option[2]
        lines = lines[1:]
    return Directive(name, argument, options, "\n".join(lines).strip("\n"))


def plain_math(tex: str) -> str:
    """TeX that no Markdown reader takes for HTML, on one line.

    >>> plain_math("a_{i<j}\\n+ 1")
    'a_{i\\\\lt j} + 1'
    """
    return re.sub(r"\s+", " ", re.sub(r"<(?=[A-Za-z/!?])", r"\\lt ", tex)).strip()


class Numbers:
    """The targets of the whole book, and where each of them is."""

    def __init__(self) -> None:
        self.targets: dict[str, Target] = {}
        self.titles: dict[str, str] = {}  # of pages, without number
        self.chapters: dict[str, int] = {}  # pages with a number
        self.elsewhere: Counter[str] = Counter()  # pages without one share their counts

    def add_page(self, page: str, cells: list[Any], chapter: int | None) -> None:
        """Count what is on a page: figures, equations, theorems by kind, exercises."""
        if chapter:
            self.chapters[page] = chapter
        count = Counter() if chapter else self.elsewhere

        def number(kind: str) -> str:
            count[kind] += 1
            return f"{chapter}.{count[kind]}" if chapter else str(count[kind])

        def add(label: str, target: Target) -> None:
            if label in self.targets:
                raise ValueError(f"{page}: the label {label} is taken by {self.targets[label].page}")
            self.targets[label] = target

        def text(source: str) -> None:
            waiting: list[str] = []
            for line in source.split("\n"):
                if heading := HEADING.match(line):
                    self.titles.setdefault(page, heading[2])
                    for label in waiting:
                        add(label, Target(page, heading[2]))
                    waiting = []
                elif target := TARGET.match(line):
                    waiting.append(target[1])
            for label in waiting:  # before something else than a heading: for roles that bring their own text
                add(label, Target(page, ""))
            for match in INLINE.finditer(source):
                if match["label"]:
                    add(match["label"], Target(page, f"({number('equation')})"))

        def walk(source: str) -> None:
            for piece in pieces(source):
                if isinstance(piece, str):
                    text(piece)
                elif isinstance(piece, Directive):
                    kind = kind_of(piece)
                    if kind and kind != "Proof":
                        add(piece.options["label"], Target(page, f"{kind} {number(kind)}", piece.argument))
                    elif piece.name == "figure" and "name" in piece.options:
                        add(piece.options["name"], Target(page, f"Fig. {number('figure')}"))
                    walk(piece.body)

        for cell in cells:
            if cell.cell_type == "markdown":
                walk(cell.source)
            elif name := figure_of(cell).get("name"):
                add(name, Target(page, f"Fig. {number('figure')}"))


def kind_of(block: Directive) -> str:
    """The word at the head of a theorem, a proof or an exercise; empty for other directives."""
    if block.name.startswith("prf:"):
        return block.name.removeprefix("prf:").capitalize()
    return "Exercise" if block.name in ("exercise", "exercise-start") else ""


def figure_of(cell: Any) -> dict[str, str]:
    """Name and caption of the figure that a code cell shows; empty if it has none."""
    return cell.metadata.get("mystnb", {}).get("figure", {})


class Quiet(MarkdownBackend):
    """Markdown in which only what has a meaning within a line is escaped."""

    def format_str(self, text: str) -> str:
        """Escape stars and the like, but neither dots nor dashes."""
        return re.sub(r"([\\`*_\[\]<>])", r"\\\1", text)


class Library:
    """The bibliography: citations as author and year, and entries as one line each."""

    def __init__(self, path: Path) -> None:
        data = parse_file(str(path))
        style = find_plugin("pybtex.style.formatting", "plain")()
        self.lines = {
            entry.key: entry.text.render(Quiet()).replace("\n", " ") for entry in style.format_bibliography(data)
        }
        self.entries: dict[str, Entry] = dict(data.entries.items())

    def authors(self, key: str) -> str:
        """The last names: one, two, or one *et al.*"""
        entry = self.entries[key]
        people: list[Person] = entry.persons.get("author") or entry.persons.get("editor") or []
        names = [str(_last(person)) for person in people]
        return " and ".join(names) if len(names) < 3 else f"{names[0]} et al."

    def year(self, key: str) -> str:
        """The year, with a real dash in a range."""
        return self.entries[key].fields["year"].replace("--", "–")

    def cite(self, keys: list[str], textual: bool) -> str:
        """The citation with links to the list, in its order."""
        keys = sorted(keys, key=list(self.lines).index)
        if textual:
            return ", ".join(f"[{self.authors(key)} ({self.year(key)})](#ref-{key})" for key in keys)
        return "(" + "; ".join(f"[{self.authors(key)}, {self.year(key)}](#ref-{key})" for key in keys) + ")"

    def listed(self, keys: set[str]) -> str:
        """The list of references, in the order of the book's own."""
        return "\n".join(f'- <a id="ref-{key}"></a>{line}' for key, line in self.lines.items() if key in keys)


def _last(person: Person) -> str:
    return " ".join(str(name) for name in person.rich_prelast_names + person.rich_last_names)


@dataclass
class Page:
    """One page on its way to plain Markdown, cell by cell: what is counted, cited and left open on the way."""

    name: str
    numbers: Numbers
    library: Library
    cited: set[str] = field(default_factory=set)
    sections: list[int] = field(default_factory=list)
    block: str = ""  # "exercise" or "solution" between its start and its end, which may be cells apart
    head: str = ""  # of an exercise, until its text comes
    exercise: str = ""  # the label of the exercise that a solution solves
    begun: bool = False  # whether a part of the open solution was shown already

    def plain(self, source: str) -> str:
        """The Markdown of one cell."""
        parts = []
        for piece in pieces(source):
            if isinstance(piece, Directive):
                parts.append(self.directive(piece))
                continue
            text = piece.text if isinstance(piece, Code) else self.text(piece, quoted=self.block == "exercise")
            if self.block == "exercise":
                text, self.head = quote(f"{self.head} {text}".strip()), ""
            elif self.block == "solution":
                text = self.folded(text)
            parts.append(text)
        return "\n\n".join(part for part in parts if part)

    def directive(self, block: Directive) -> str:
        """A directive as a headed block."""
        if block.name in ("exercise-end", "solution-end"):
            self.block = ""
            return ""
        if block.name == "solution-start":
            self.block, self.exercise, self.begun = "solution", block.argument, False
            return ""
        if block.name == "margin":
            return quote(f"*Note.* {self.body(block.body)}")
        kind = kind_of(block)
        if not kind:
            raise ValueError(f"{self.name}: no plain form is known for the directive {block.name}")
        if kind == "Proof":
            head = f"**Proof** {self.text(block.argument)}." if block.argument else "**Proof.**"
        else:
            label = block.options["label"]
            head = f'<a id="{label}"></a>**{self.numbers.targets[label].name}**'
            head += f" ({self.text(block.argument)})." if block.argument else "."
        if block.name == "exercise-start":
            self.block, self.head = "exercise", head
            return ""
        return quote(f"{head} {self.body(block.body)}")

    def body(self, source: str) -> str:
        """What is inside a block, to be quoted."""
        parts = []
        for piece in pieces(source):
            if isinstance(piece, Directive):
                parts.append(self.directive(piece))
            else:
                parts.append(piece.text if isinstance(piece, Code) else self.text(piece, quoted=True))
        return "\n\n".join(parts)

    def folded(self, text: str) -> str:
        """A part of a solution, behind a line to click on."""
        exercise = self.numbers.targets[self.exercise]
        title = re.sub(r"\$(\w)\$", r"<em>\1</em>", exercise.title)  # within a tag nobody reads formulas
        summary = f"Solution to {exercise.name}" + (f" ({title})" if title else "")
        summary += ", continued" if self.begun else ""
        self.begun = True
        return f"<details>\n<summary>{summary}</summary>\n\n{text}\n\n</details>"

    def text(self, source: str, quoted: bool = False) -> str:
        """Running text: numbers before headings, anchors, formulas, and words in the place of roles."""
        lines = []
        for line in source.split("\n"):
            if heading := HEADING.match(line):
                line = f"{heading[1]} {self.heading(len(heading[1]))}{heading[2]}"
            elif target := TARGET.match(line):
                line = f'<a id="{target[1]}"></a>\n'
            lines.append(line)
        return INLINE.sub(lambda match: self.inline(match, quoted), "\n".join(lines))

    def heading(self, level: int) -> str:
        """The number of the next heading, as on the page; empty on pages without numbers."""
        if self.name not in self.numbers.chapters:
            return ""
        depth = level - 1
        above = [*self.sections, *[0] * level][:level]
        self.sections = [*above[:depth], above[depth] + 1] if depth else [self.numbers.chapters[self.name]]
        return ".".join(map(str, self.sections)) + ". "

    def inline(self, match: re.Match[str], quoted: bool) -> str:
        """A role, a formula or a piece of code within a text."""
        if match["role"]:
            return self.role(match["role"], match["content"])
        if match["math"]:
            return f"${plain_math(match['math'])}$"
        if not match["display"]:
            return match[0]
        tex, label = plain_math(match["display"]), match["label"]
        anchor = f'<a id="{label}"></a>\n\n' if label else ""
        if label:
            tex += rf" \tag{{{self.numbers.targets[label].name.strip('()')}}}"
        return anchor + (f"$$ {tex} $$" if quoted else f"$$\n{tex}\n$$")

    def role(self, name: str, content: str) -> str:
        """Words with a link, as on the page."""
        if name in ("cite", "cite:p", "cite:t"):
            keys = [key.strip() for key in content.split(",")]
            self.cited.update(keys)
            return self.library.cite(keys, textual=name == "cite:t")
        explicit = EXPLICIT.match(content)
        text, label = (explicit["text"], explicit["label"]) if explicit else ("", content)
        label = re.sub(r"\s+", " ", label)
        if name == "doc":
            return f"[{text or self.numbers.titles[label]}]({label}.ipynb)"
        if name not in ("ref", "numref", "eq", "prf:ref"):
            raise ValueError(f"{self.name}: no plain form is known for the role {name}")
        target = self.numbers.targets[label]
        if not (text or target.name):
            raise ValueError(f"{self.name}: a reference to {label} needs a text")
        where = "" if target.page == self.name else f"{target.page}.ipynb"
        return f"[{text or target.name}]({where}#{label})"


def quote(text: str) -> str:
    """A block quotation: what belongs together stays together, with a line at its side."""
    return "\n".join(f"> {line}".rstrip() for line in text.split("\n"))
