"""The book's sources: every chapter is in the table of contents, canonical, described and free of local paths."""

from __future__ import annotations

import re
from pathlib import Path

import nbformat
import pytest
import yaml

from lapbook import plots

ROOT = Path(__file__).resolve().parent.parent
NOTEBOOKS = sorted((ROOT / "book").glob("*.ipynb"))
each_notebook = pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.name)


def code_cells(path: Path):
    """Yield (number, cell) for the code cells of a notebook."""
    for number, cell in enumerate(nbformat.read(path, as_version=4).cells):
        if cell.cell_type == "code":
            yield number, cell


def test_table_of_contents_and_folder_agree():
    toc = yaml.safe_load((ROOT / "_toc.yml").read_text())
    chapters = [chapter for part in toc["parts"] for chapter in part["chapters"]]
    sections = [section for chapter in chapters for section in chapter.get("sections", [])]
    listed = [toc["root"]] + [page["file"] for page in chapters + sections]
    pages = [*NOTEBOOKS, *(ROOT / "book").glob("**/*.md"), ROOT / "genindex.md"]
    assert sorted(listed) == sorted(path.relative_to(ROOT).with_suffix("").as_posix() for path in pages)


def figures(path: Path):
    """Yield (number, cell) for the cells that show a picture or an explorer."""
    for number, cell in code_cells(path):
        shown = [output.get("data", {}) for output in cell.outputs]
        if any("image/png" in data or "explorer.render(" in data.get("text/html", "") for data in shown):
            yield number, cell


@each_notebook
def test_figures_have_alt_text_and_a_caption_with_a_number(path):
    missing = []
    for number, cell in figures(path):
        mystnb = cell.metadata.get("mystnb", {})
        picture = any("image/png" in output.get("data", {}) for output in cell.outputs)
        if picture and not mystnb.get("image", {}).get("alt"):  # an explorer says itself what it shows
            missing.append(f"{path.name}, cell {number}: no alt text")
        if not mystnb.get("figure", {}).get("caption"):
            missing.append(f"{path.name}, cell {number}: no caption")
        if not mystnb.get("figure", {}).get("name"):  # figures without a name get no number
            missing.append(f"{path.name}, cell {number}: no name")
    assert missing == []


METHODS = "|".join(map(re.escape, plots.COLOURS))
# Besides the two maps of lapbook.plots: an order (viridis), shares from 0 to 1 (Greys, Blues), an angle (twilight).
MAPS = {"viridis", "Greys", "Blues", "twilight"}


@each_notebook
def test_figures_keep_to_one_style(path):
    sources = {number: cell.source for number, cell in code_cells(path)}
    everything = "\n".join(sources.values())
    if "plt." in everything:
        assert "plots.use_style()" in everything
    wrong = []
    for number, source in sources.items():
        named = re.findall(r"""(?:cmap\s*=\s*|get_cmap\(|colormaps\[)["'](\w+)["']""", source)
        wrong += [f"cell {number}: the colour map {name}" for name in named if name not in MAPS]
        wrong += [
            f"cell {number}: a colour of its own for {name}, which has one in lapbook.plots.COLOURS"
            for name in re.findall(rf"""["']({METHODS})["']: *\(?["'](?:#|tab:|C\d)""", source)
        ]
        wrong += [f"cell {number}: {setting}" for setting in re.findall(r"rcParams|style\.use|jet\b|rainbow", source)]
    assert wrong == []


def test_outputs_are_rarely_left_unchecked():
    ignored = [
        f"{path.name}, cell {number}"
        for path in NOTEBOOKS
        for number, cell in code_cells(path)
        if "nbval-ignore-output" in cell.metadata.get("tags", []) or "NBVAL_IGNORE_OUTPUT" in cell.source
    ]
    assert len(ignored) <= 3, ignored


@each_notebook
def test_no_path_of_a_machine_is_stored(path):
    text = path.read_text()
    assert [name for name in ("root", "home", "Users", "site-packages") if f"/{name}/" in text] == []


@pytest.mark.parametrize("path", [p for p in NOTEBOOKS if p.name[0].isdigit()], ids=lambda path: path.name)
def test_every_chapter_has_four_exercises_with_solutions_that_run(path):
    cells = nbformat.read(path, as_version=4).cells
    text = "\n".join(cell.source for cell in cells if cell.cell_type == "markdown")
    asked = re.findall(r"\{exercise(?:-start)?\}.*\n:label: (\S+)", text)
    solved = re.findall(r"\{solution(?:-start)?\} (\S+)\n:class: dropdown", text)
    assert len(asked) >= 4
    assert sorted(asked) == sorted(solved)
    begins = next(i for i, cell in enumerate(cells) if "\n## Exercises" in f"\n{cell.source}")
    assert sum(cell.cell_type == "code" for cell in cells[begins:]) >= 4
