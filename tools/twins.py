"""A twin of every chapter in plain Markdown, for readers of Colab, GitHub, VS Code and JupyterLab.

    python tools/twins.py            write chapters/*.ipynb from book/*.ipynb
    python tools/twins.py --check    one line for each twin that differs from its chapter; exit code 1 if there is any

A twin has the code and the stored outputs of its chapter. Its text is made by tools/plain.py, captions stand under
their figures, the works cited are listed at the end, and cells that the page hides are folded: as forms on Colab,
with a hidden source in JupyterLab and VS Code. Nobody edits a twin.
"""

from __future__ import annotations

import argparse
import copy
import hashlib
import sys
from collections import Counter
from pathlib import Path

import address
import nbformat
import yaml
from notebooks import NOTEBOOK_METADATA, dumps
from plain import Library, Numbers, Page, figure_of

ROOT = Path(__file__).resolve().parent.parent
FOLDER = "chapters"
HIDDEN = {"hide-input", "hide-cell", "remove-input", "remove-cell"}  # the tags of cells whose code the page hides
INSTALL = "install-on-colab"


def chapters(root: Path = ROOT) -> dict[str, int | None]:
    """The pages that are notebooks, in the order of the book, each with the number of its chapter if it has one."""
    toc = yaml.safe_load((root / "_toc.yml").read_text(encoding="utf-8"))
    found: dict[str, int | None] = {}
    number = 0
    for part in toc["parts"]:
        for chapter in part["chapters"]:
            number += bool(part.get("numbered"))
            if (root / f"{chapter['file']}.ipynb").exists():
                found[Path(chapter["file"]).name] = number if part.get("numbered") else None
    return found


def source_of(name: str, root: Path = ROOT) -> Path:
    return root / "book" / f"{name}.ipynb"


def twin_of(name: str, root: Path = ROOT) -> Path:
    return root / FOLDER / f"{name}.ipynb"


def markdown(source: str) -> nbformat.NotebookNode:
    return nbformat.v4.new_markdown_cell(source)


def folded(cell: nbformat.NotebookNode, title: str, outputs_too: bool = False) -> nbformat.NotebookNode:
    """The cell with its code out of sight, where it is read and run as before."""
    cell.source = f"# @title {title}\n{cell.source}"
    cell.metadata["cellView"] = "form"
    cell.metadata["jupyter"] = {"source_hidden": True}
    if outputs_too:
        cell.metadata["jupyter"]["outputs_hidden"] = True
    return cell


def code_cells(cell: nbformat.NotebookNode, page: Page) -> list[nbformat.NotebookNode]:
    """A code cell, folded if the page hides it, and the caption of its figure."""
    tags, figure = set(cell.metadata.get("tags", [])), figure_of(cell)
    twin = copy.deepcopy(cell)
    twin.metadata = nbformat.from_dict({})
    shown = page.numbers.targets[figure["name"]].name if figure else ""
    if cell.source.startswith(address.MARK):
        folded(twin, "Install what Google Colab lacks")
    elif page.block == "solution":
        folded(twin, f"Code of the solution to {page.numbers.targets[page.exercise].name}", outputs_too=True)
    elif tags & HIDDEN:
        folded(twin, f"Code of {shown}" if shown else "Code")
    if not figure:
        return [twin]
    return [twin, markdown(f'<a id="{figure["name"]}"></a>**{shown}.** {page.text(figure["caption"])}')]


def twin(name: str, numbers: Numbers, library: Library, root: Path = ROOT) -> nbformat.NotebookNode:
    """The twin of one chapter."""
    page = Page(name, numbers, library)
    cells = []
    for cell in nbformat.read(source_of(name, root), as_version=4).cells:
        if cell.cell_type == "markdown":
            text = page.plain(cell.source)
            cells += [markdown(text)] if text else []
        else:
            cells += code_cells(cell, page)
    if page.cited:
        cells.append(markdown(f"## References\n\n{library.listed(page.cited)}"))
    return identified(nbformat.v4.new_notebook(cells=cells, metadata=copy.deepcopy(NOTEBOOK_METADATA)))


def identified(notebook: nbformat.NotebookNode) -> nbformat.NotebookNode:
    """The notebook with ids that depend only on the text; the cell with the address has one of its own."""
    seen: Counter[str] = Counter()
    for cell in notebook.cells:
        text = f"{cell.cell_type}\n{cell.source}"
        seen[text] += 1
        cell.id = hashlib.sha256(f"{text}\n{seen[text]}".encode()).hexdigest()[:12]
        if address.MARK in cell.source:
            cell.id = INSTALL
    return notebook


def twins(root: Path = ROOT) -> dict[str, str]:
    """The text of every twin by its name."""
    numbers, pages = Numbers(), chapters(root)
    first = yaml.safe_load((root / "_toc.yml").read_text(encoding="utf-8"))["root"]
    numbers.add_page(Path(first).name, [markdown((root / f"{first}.md").read_text(encoding="utf-8"))], None)
    for name, chapter in pages.items():
        numbers.add_page(name, nbformat.read(source_of(name, root), as_version=4).cells, chapter)
    library = Library(root / "book" / "references.bib")
    return {name: dumps(twin(name, numbers, library, root)) for name in pages}


def write(root: Path = ROOT) -> None:
    """Write all twins, and remove those whose chapter is gone."""
    made = twins(root)
    (root / FOLDER).mkdir(exist_ok=True)
    for path in (root / FOLDER).glob("*.ipynb"):
        if path.stem not in made:
            path.unlink()
    for name, text in made.items():
        twin_of(name, root).write_text(text, encoding="utf-8")


def differences(root: Path = ROOT) -> list[str]:
    """Say which twins are not what their chapters make now; empty if all are."""
    made = twins(root)
    stored = {path.stem: path.read_text(encoding="utf-8") for path in (root / FOLDER).glob("*.ipynb")}
    return [
        f"{FOLDER}/{name}.ipynb is not the twin of its chapter: run `make twins`"
        for name in sorted(made.keys() | stored.keys())
        if made.get(name) != stored.get(name)
    ]


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true", help="change nothing, report what differs")
    options = parser.parse_args(arguments)
    if not options.check:
        write()
        return 0
    found = differences()
    print(*found, sep="\n", end="\n" if found else "", file=sys.stderr)
    return int(bool(found))


if __name__ == "__main__":
    sys.exit(main())
