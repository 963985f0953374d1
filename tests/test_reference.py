"""The reference: API pages, notation, glossary, bibliography and search name what there is, and nothing else."""

from __future__ import annotations

import doctest
import pkgutil
import re
from dataclasses import is_dataclass
from importlib import import_module
from pathlib import Path

import docstrings
import pytest
from browser import SITE
from traitlets import HasTraits, TraitType

import lapbook
from conftest import give_up

ROOT = Path(__file__).resolve().parent.parent
BOOK = ROOT / "book"
SOURCES = sorted([*BOOK.glob("*.ipynb"), *BOOK.glob("*.md"), *BOOK.glob("api/*.md")])
INTERNAL = {"__main__", "explorers.base", "checkpoints", "reproduction"}


def top(module: str) -> str:
    """The name of a module, or of the internal package that it is in."""
    name = module.removeprefix("lapbook.")
    return next((known for known in INTERNAL if name.startswith(f"{known}.")), name)


def text_of(path: Path) -> str:
    return path.read_text().replace("\\n", "\n").replace("\\\\", "\\")


def test_every_module_is_on_an_api_page_or_said_to_be_internal():
    found = {top(module.name) for module in pkgutil.walk_packages(lapbook.__path__, "lapbook.")}
    described = {module.removeprefix("lapbook.") for module in docstrings.modules()}
    assert found == described | INTERNAL
    overview = (BOOK / "api.md").read_text()
    for name in described:
        assert f"lapbook.{name}`" in overview or f"lapbook.{name}>`" in overview, f"api.md does not link to {name}"
    for name in INTERNAL - {"__main__", "explorers.base"}:
        assert f"`{name}`" in overview, f"api.md does not say what {name} is"


def test_every_public_name_is_on_a_page():
    """Public: a function or class defined in a described module whose name does not begin with an underscore."""
    inventory = SITE / "objects.inv"
    if not inventory.exists():
        give_up(f"no built book in {SITE}: run `make book` first")
    from sphinx.util.inventory import InventoryFile

    with inventory.open("rb") as file:
        objects = InventoryFile.load(file, "", lambda base, path: path)
    pages = {
        name: where[2] for kind, entries in objects.items() if kind[:3] == "py:" for name, where in entries.items()
    }
    missing = [
        f"{m}.{name}" for m in docstrings.modules() for name in docstrings.public(m) if f"{m}.{name}" not in pages
    ]
    assert missing == []
    assert all(page.startswith("book/api/") for page in pages.values())


@pytest.mark.parametrize("module", docstrings.modules())
def test_every_public_name_has_an_example(module):
    """`pytest --doctest-modules` runs them. The example of a class may be that of a method.

    Three kinds of classes need none: errors and warnings, dataclasses, whose fields are described one by one, and the
    widgets of `explorers` with their traits; the latter two are shown by the functions that make them.
    """
    exempt = (Exception, HasTraits, TraitType)
    shown = {test.name for test in doctest.DocTestFinder().find(import_module(module)) if test.examples}
    missing = [
        name
        for name, thing in docstrings.public(module).items()
        if not (is_dataclass(thing) or (isinstance(thing, type) and issubclass(thing, exempt)))
        and not any(re.match(rf"{re.escape(module)}\.{name}(\.|$)", where) for where in shown)
    ]
    assert missing == []


def test_docstrings_become_markup():
    assert doctest.testmod(docstrings).failed == 0
    plain = [
        "An index λ_i of `sim_gt`, a star *.",
        "",
        ">>> 1 * 1",
        "1",
        "",
        "| a | b |",
        "|---|---|",
        "| `x` | y |",
        "",
        "    p = q",
    ]
    page = "\n".join(docstrings.markup(plain, "lapbook.metrics", set()))
    assert r"λ\ :sub:`i`\  of :py:obj:`sim_gt <lapbook.metrics.sim_gt>`, a star \*." in page
    assert "\n>>> 1 * 1\n1\n" in page
    assert "   * - ``x``\n     - y\n" in page
    assert "::\n\n    p = q" in page


def test_a_name_is_linked_where_it_is_described():
    assert docstrings.target("gap", "lapbook.objective", set()) == "lapbook.objective.gap"
    assert docstrings.target("lb.metrics.sim_gt", "lapbook.objective", set()) == "lapbook.metrics.sim_gt"
    assert (
        docstrings.target("training.Representation.save", "lapbook.metrics", set())
        == "lapbook.training.Representation.save"
    )
    assert docstrings.target("gap", "lapbook.objective", {"gap"}) is None  # here it is a parameter
    assert docstrings.target("_unit", "lapbook.metrics", set()) is None


def test_every_entry_is_cited_and_every_citation_has_an_entry():
    entries = set(re.findall(r"^@\w+\{([^,]+),", (BOOK / "references.bib").read_text(), flags=re.MULTILINE))
    roles = [keys for path in SOURCES for keys in re.findall(r"\{cite(?::\w+)?\}`([^`]+)`", text_of(path))]
    assert entries == {key.strip() for keys in roles for key in keys.split(",")}


def test_every_symbol_is_linked_to_where_it_is_introduced():
    rows = [row for row in (BOOK / "notation.md").read_text().splitlines() if row.startswith("| $")]
    assert len(rows) > 50
    for row in rows:
        symbol, meaning, where, _ = (cell.strip() for cell in row.strip("|").split("|"))
        assert meaning, symbol
        assert re.search(r"\{(eq|prf:ref|ref)\}`|\]\(\d\d-[\w-]+\.ipynb#", where), f"{symbol} is linked to no place"


def test_every_term_is_linked_to_where_it_is_introduced():
    body = re.search(r"```\{glossary\}\n(.*?)```", (BOOK / "glossary.md").read_text(), flags=re.DOTALL).group(1)
    terms = [entry.split("\n", 1) for entry in body.strip().split("\n\n")]
    assert len(terms) >= 40
    names = [name.lower().replace("–", "-") for name, _ in terms]
    assert names == sorted(names)
    for name, text in terms:
        assert re.search(r"See (equation \{eq\}`|\{prf:ref\}`|\[chapter \d+\]\(\d\d-[\w-]+\.ipynb#)", text), name


@pytest.mark.parametrize(
    ("query", "found"),
    [
        ("horseshoe", "book/02-graph-drawing.html"),
        ("sim_gt", "book/api/foundations.html#lapbook.metrics.sim_gt"),
        ("lapbook.options.climb", "book/api/using.html#lapbook.options.climb"),
        ("effective resistance", "book/glossary.html#term-effective-resistance"),
    ],
)
@pytest.mark.parametrize("scheme", ["http", "file"])
def test_search_works_offline(browser, origins, scheme, query, found):
    problems = []
    page = browser.new_page()
    page.on("request", lambda r: r.url.startswith((origins[scheme], "data:")) or problems.append(f"leaves: {r.url}"))
    page.on("pageerror", lambda e: problems.append(f"page error: {e}"))
    page.on("console", lambda m: m.type == "error" and problems.append(f"console error: {m.text}"))
    try:
        page.goto(f"{origins[scheme]}search.html?q={query}")
        page.wait_for_selector("#search-results .search li a")
        page.wait_for_selector("#search-results .search-summary")  # says how many pages were found, at the end
        page.wait_for_load_state("networkidle")
        links = page.locator("#search-results .search li a").evaluate_all("es => es.map(e => e.getAttribute('href'))")
    finally:
        page.close()
    assert [
        link for link in links if link.split("?")[0] == found or link.replace("?highlight=" + query, "") == found
    ], links
    assert problems == []


def test_index_is_in_the_navigation(browser, origins):
    page = browser.new_page()
    try:
        page.goto(origins["file"] + "book/01-states-as-a-graph.html")
        page.locator("nav.bd-links a", has_text=re.compile(r"^\s*Index\s*$")).click()
        page.wait_for_selector("table.genindextable")
        words = page.locator("table.genindextable a").all_text_contents()
    finally:
        page.close()
    assert {"ceiling of the data", "sim_gt() (in module lapbook.metrics)"} <= set(words)
