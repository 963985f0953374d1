"""The twins of the chapters: equal to what their chapters make, plain, and with the numbers of the built pages."""

from __future__ import annotations

import ast
import json
import re
from pathlib import Path

import browser as tools
import nbformat
import plain
import pytest
import twins
from bs4 import BeautifulSoup, Tag

from conftest import SITE, give_up

ROOT = Path(__file__).resolve().parent.parent
NAMES = list(twins.chapters())
each = pytest.mark.parametrize("name", NAMES)

# Written anew, not taken from tools/plain.py: what MyST would read as its own.
DIRECTIVE = re.compile(r"^[\s>]*(?:`{3,}|~{3,}|:{3,})\s*\{[^}\n]+\}", re.MULTILINE)
ROLE = re.compile(r"\{[a-zA-Z][\w:+-]*\}`")
OTHER = re.compile(r"^\([\w:-]+\)=|^%|\{\{|\$\$ *\([\w:-]+\)|^:[\w-]+: ", re.MULTILINE)
ENVIRONMENTS = {"aligned", "pmatrix"}
LINK = re.compile(r"(?<!!)\[((?:[^\[\]$]|\$[^$]*\$)*)\]\(([^()\s]*)\)")


def cells(name: str, kind: str) -> list[nbformat.NotebookNode]:
    found = nbformat.read(twins.twin_of(name), as_version=4).cells
    return [cell for cell in found if cell.cell_type == kind]


def text(name: str) -> str:
    return "\n\n".join(cell.source for cell in cells(name, "markdown"))


def formulas(name: str) -> list[tuple[str, bool]]:
    """The formulas of a twin, as a reader of `$` finds them, and whether each is on display."""
    source = re.sub(r"(`+).+?\1", "", text(name), flags=re.DOTALL)
    found = [(tex, True) for tex in re.findall(r"\$\$(.+?)\$\$", source, flags=re.DOTALL)]
    rest = re.sub(r"\$\$.+?\$\$", "", source, flags=re.DOTALL)
    return found + [(tex, False) for tex in re.findall(r"\$([^$]+)\$", rest)]


@pytest.fixture(scope="module")
def article():
    """A function that gives the text of a built page."""
    if not (SITE / "book").exists():
        give_up(f"no built book in {SITE}: run `make book` first")

    def read(name: str) -> Tag:
        page = BeautifulSoup((SITE / "book" / f"{name}.html").read_text(encoding="utf-8"), "html.parser")
        found = page.select_one("article.bd-article")
        for link in found.select("a.headerlink"):
            link.decompose()
        return found

    return read


def words(source: Tag | str) -> str:
    """Text without marks of formulas and emphasis, for comparison."""
    source = source.get_text() if isinstance(source, Tag) else re.sub(r"<a id=[^>]*></a>", "", source)
    source = source.replace(r"\lt ", "<").replace("’", "'").replace("“", '"').replace("”", '"')
    return " ".join(re.sub(r"\\\(|\\\)|[$*`]", "", source).split())


def test_twins_are_what_their_chapters_make():
    assert twins.differences() == []
    assert sorted(NAMES) == sorted(path.stem for path in (ROOT / "book").glob("*.ipynb"))


@each
def test_no_directive_and_no_role_is_left(name):
    outputs = [
        output.data["text/markdown"]
        for cell in cells(name, "code")
        for output in cell.outputs
        if "text/markdown" in output.get("data", {})
    ]
    source = "\n\n".join([text(name), *outputs])
    assert DIRECTIVE.findall(source) == []
    assert ROLE.findall(source) == []
    assert OTHER.findall(source) == []


@each
def test_the_reader_first_meets_the_chapter_and_the_file_is_light(name):
    path = twins.twin_of(name)
    assert path.stat().st_size < 3_000_000
    first = nbformat.read(path, as_version=4).cells[0]
    assert first.cell_type == "markdown"
    assert first.source.startswith("# ")
    assert len(first.source.split()) > 20
    install = cells(name, "code")[0]
    assert install.id == twins.INSTALL
    assert install.metadata["cellView"] == "form"


@each
def test_code_and_outputs_are_those_of_the_chapter(name):
    chapter = [c for c in nbformat.read(twins.source_of(name), as_version=4).cells if c.cell_type == "code"]
    for theirs, ours in zip(chapter, cells(name, "code"), strict=True):
        assert re.sub(r"\A# @title .*\n", "", ours.source) == theirs.source
        assert ours.outputs == theirs.outputs
        assert ours.execution_count == theirs.execution_count


@each
def test_headings_are_those_of_the_page(name, article):
    wanted = [words(heading) for heading in article(name).select("h1, h2, h3, h4")]
    found = [words(line) for line in re.findall(r"^#+ (.+)$", text(name), flags=re.MULTILINE)]
    assert [heading for heading in found if heading != "References"] == wanted


@each
def test_theorems_exercises_figures_and_equations_have_the_numbers_of_the_page(name, article):
    page, source = article(name), text(name)
    titles = [words(title) for title in page.select(":is(.proof, .exercise, .solution) > p.admonition-title")]
    head = r"^> (?:<a id=\"[\w-]+\"></a>)?\*\*([A-Z][a-z]+ [\d.]+)\*\*(?: \((.+?)\)\.(?= |$)|\.)"
    found = [
        words(re.sub(r"</?em>", "", solution) or (f"{number} ({title})" if title else number))
        for number, title, solution in re.findall(rf"{head}|<summary>(.+)</summary>", source, flags=re.MULTILINE)
        if not solution.endswith(", continued")
    ]
    assert found == titles
    captions = [words(caption.find_parent("figcaption")) for caption in page.select("figcaption span.caption-number")]
    found = re.findall(r"^<a id=\"[\w-]+\"></a>\*\*(Fig\. [\d.]+)\.\*\* (.*)$", source, flags=re.MULTILINE)
    plain_captions = [words(f"{number} " + LINK.sub(r"\1", caption)) for number, caption in found]
    assert [caption[:60] for caption in plain_captions] == [caption[:60] for caption in captions]
    numbers = [words(number).strip("()") for number in page.select("span.eqno")]
    assert re.findall(r"\\tag\{([\d.]+)\}", source) == numbers


@each
def test_references_and_citations_are_those_of_the_page(name, article):
    page = article(name)
    for title in page.select("p.admonition-title"):
        title.decompose()
    cited = [re.sub(r"[\[\](),;]", "", words(span)) for span in page.select("span.bibtex-citation")]
    for span in page.select("span.bibtex-citation"):
        span.decompose()
    pointing = [
        (words(link), re.sub(r"\.html|equation-", "", link["href"]))
        for link in page.select("a.reference.internal")
        if link.find_parent("figcaption") or not link.find_parent(class_="cell_output")
    ]
    source = text(name).partition("\n## References\n")[0]
    links = [(words(shown), where.replace(".ipynb", "")) for shown, where in LINK.findall(source)]
    assert [link for link in links if not re.match("#ref-|http", link[1])] == pointing
    shown = [re.sub(r"[(),]", "", citation) for citation, where in links if where.startswith("#ref-")]
    assert " ".join(shown) == " ".join(cited)


@each
def test_every_link_within_the_twins_has_its_anchor(name):
    for _, where in LINK.findall(text(name)):
        page, _, anchor = where.partition("#")
        if where.startswith("http"):
            continue
        target = text(Path(page).stem if page else name)
        assert not anchor or target.count(f'<a id="{anchor}"></a>') == 1, where


@each
def test_cells_that_the_page_hides_are_folded(name, article):
    hidden = [
        bool(cell.find_parent(class_="solution") or {"tag_hide-input", "tag_hide-cell"} & set(cell["class"]))
        or not cell.select_one(".cell_input")
        for cell in article(name).select("div.cell")
    ]
    code = cells(name, "code")[1:]  # the first is not on the page
    assert [cell.metadata.get("cellView") == "form" for cell in code] == hidden
    assert [cell.metadata.get("jupyter", {}).get("source_hidden", False) for cell in code] == hidden
    assert [cell.source.startswith("# @title ") for cell in code] == hidden


@each
def test_formulas_are_of_a_form_that_every_reader_takes(name):
    source = text(name)
    assert source.count("$") % 2 == 0
    assert re.findall(r"\\\[|\\\(|\\begin\{(?:align|equation|gather)\*?\}", source) == []
    for tex, display in formulas(name):
        assert "\n\n" not in tex
        assert display or "\n" not in tex, tex
        assert not re.search(r"\\(?:label|ref|eqref|require|newcommand|def)\b", tex), tex
        assert not re.search(r"<[a-zA-Z/!?]|^ *>", tex, flags=re.MULTILINE), tex
        assert set(re.findall(r"\\begin\{(\w+\*?)\}", tex)) <= ENVIRONMENTS, tex
        assert len(re.findall(r"(?<!\\)\{", tex)) == len(re.findall(r"(?<!\\)\}", tex)), tex
        assert len(re.findall(r"\\left\b", tex)) == len(re.findall(r"\\right\b", tex)), tex
        assert display or r"\tag" not in tex


def test_formulas_are_typeset_without_error(tmp_path):
    path = tools.executable()
    if path is None:
        give_up(f"no browser found, looked for {', '.join(tools.NAMES)}: no formula was typeset")
    page = tmp_path / "formulas.html"
    script = (ROOT / "book" / "static" / "mathjax" / "tex-mml-chtml.js").as_uri()
    settings = {"tex": {"packages": {"[-]": ["noundefined", "noerrors"]}}, "startup": {"typeset": False}}
    page.write_text(f'<script>MathJax = {json.dumps(settings)}</script><script src="{script}"></script>')
    every = sorted({formula for name in NAMES for formula in formulas(name)})
    typeset = """async (every) => { await MathJax.startup.promise; const wrong = [];
        for (const [tex, display] of every) {
          try { if (MathJax.tex2chtml(tex, { display }).querySelector("mjx-merror")) wrong.push(tex); }
          catch (error) { wrong.push(tex + ": " + error); }
        } return wrong; }"""
    with tools.chromium(path) as chromium:
        tab = chromium.new_page()
        tab.goto(page.as_uri())
        assert tab.evaluate(typeset, [[r"\nothing x", False], [r"\frac{1}", True]]) != []
        assert tab.evaluate(typeset, every) == []
    assert len(every) > 500


@each
def test_the_page_offers_its_twin_for_download(name, article):
    article(name)
    assert (SITE / "_sources" / "book" / f"{name}.ipynb").read_text() == twins.twin_of(name).read_text()


@each
def test_no_assertion_depends_on_sliders_that_the_reader_moves(name):
    """An explorer that is shown, under a name, is the reader's: assertions take another one."""
    code = [re.sub(r"^(\s*)%.*", r"\1pass", cell.source, flags=re.MULTILINE) for cell in cells(name, "code")]
    shown = {
        node.targets[0].id
        for tree in map(ast.parse, code)
        for node in tree.body
        if isinstance(node, ast.Assign)
        and "lb.explorers." in ast.unparse(node.value)
        and isinstance(node.targets[0], ast.Name)
        and isinstance(tree.body[-1], ast.Expr)
        and ast.unparse(tree.body[-1]) == node.targets[0].id
    }
    asserted = {
        used.id
        for tree in map(ast.parse, code)
        for node in ast.walk(tree)
        if isinstance(node, ast.Assert)
        for used in ast.walk(node)
        if isinstance(used, ast.Name)
    }
    assert shown & asserted == set()


def page_of(source: str) -> str:
    numbers = plain.Numbers()
    numbers.add_page("page", [nbformat.v4.new_markdown_cell(source)], 3)
    return plain.Page("page", numbers, plain.Library(ROOT / "book" / "references.bib")).plain(source)


def test_blocks_and_references_become_plain():
    found = page_of(
        "# Title\n\n```{prf:lemma} Ours\n:label: lem\n\nLet $a_{i<j}$.\n\n$$\na\n= b\n$$ (eq-a)\n```\n\n"
        "By {eq}`eq-a` and {prf:ref}`lem`, {cite:t}`wang2021towards`; `{eq}` is code."
    )
    assert found.split("\n\n") == [
        "# 3. Title",
        '> <a id="lem"></a>**Lemma 3.1** (Ours). Let $a_{i\\lt j}$.\n>\n'
        '> <a id="eq-a"></a>\n>\n> $$ a = b \\tag{3.1} $$',
        "By [(3.1)](#eq-a) and [Lemma 3.1](#lem), [Wang et al. (2021)](#ref-wang2021towards); `{eq}` is code.",
    ]


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ("```{prf:lemma} A\n:label: a\n", "not closed"),
        ("```{mermaid}\ngraph\n```", "directive mermaid"),
        ("See {abbr}`x`.", "role abbr"),
        ("(here)=\ntext {ref}`here`", "needs a text"),
        ("$$ a $$ (eq-a)\n\n$$ b $$ (eq-a)", "is taken"),
    ],
)
def test_what_has_no_plain_form_is_an_error(source, message):
    with pytest.raises(ValueError, match=message):
        page_of(source)
