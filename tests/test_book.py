"""The book's sources: every chapter is in the table of contents, canonical, described and free of local paths."""

from __future__ import annotations

from pathlib import Path

import nbformat
import pytest
import yaml

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
    listed = [toc["root"]] + [chapter["file"] for part in toc["parts"] for chapter in part["chapters"]]
    pages = [*NOTEBOOKS, *(ROOT / "book").glob("*.md")]
    assert sorted(listed) == sorted(f"book/{path.stem}" for path in pages)


@each_notebook
def test_figures_have_alt_text_and_caption(path):
    for number, cell in code_cells(path):
        if any("image/png" in output.get("data", {}) for output in cell.outputs):
            mystnb = cell.metadata.get("mystnb", {})
            assert mystnb.get("image", {}).get("alt"), f"{path.name}, cell {number}: a figure without alt text"
            if "figure" in mystnb:
                assert mystnb["figure"].get("caption"), f"{path.name}, cell {number}: a numbered figure without caption"


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
