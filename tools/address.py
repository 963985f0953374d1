"""Keep the address of the repository in one place, `[project.urls]` in pyproject.toml, and the same everywhere else.

    python tools/address.py https://github.com/OWNER/NAME   move: change it in every file below, first cells and twins
    python tools/address.py                                 bring the first code cell of every notebook up to date
    python tools/address.py --check                         one line for each difference; exit code 1 if there is any

The first code cell of a notebook installs the package on Google Colab and does nothing elsewhere. Its text is here.
"""

from __future__ import annotations

import argparse
import re
import sys
import tomllib
from pathlib import Path

import nbformat
from notebooks import write

ROOT = Path(__file__).resolve().parent.parent
PLACES = ("pyproject.toml", "_config.yml", "CITATION.cff", "README.md")  # they name no other repository on GitHub
BRANCH = "main"
HOSTS = r"(github\.com/|colab\.research\.google\.com/github/)"
OWNER_AND_NAME = r"([\w-]+/[\w.-]*[\w-])"

MARK = "# On Google Colab, install what it lacks."
# Never numpy, torch or another package that Colab has: replaced after it was imported, it breaks the session.
# What is there already is left alone, so a second run is free.
FIRST_CELL = f"""\
{MARK} Anywhere else this cell does nothing.
import sys
from importlib.util import find_spec

if "google.colab" in sys.modules:
    sources = {{
        "lapbook": "ADDRESS/archive/{BRANCH}.zip",
        "minigrid": "minigrid",
        "pygame": "pygame-ce",
    }}
    lacking = " ".join(sources[name] for name in sources if not find_spec(name))
    if lacking:
        %pip install --quiet --no-deps {{lacking}}"""


def address(root: Path = ROOT) -> str:
    """The address in pyproject.toml, which all others follow."""
    return tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))["project"]["urls"]["Source"]


def first_cell(where: str) -> str:
    """The text of every notebook's first code cell, for a repository at the address `where`."""
    return FIRST_CELL.replace("ADDRESS", where)


def notebooks(root: Path = ROOT) -> list[Path]:
    return sorted((root / "book").glob("*.ipynb"))


def twins(root: Path = ROOT) -> list[Path]:
    """What tools/twins.py makes of the notebooks; the address is in their first code cells too."""
    return sorted((root / "chapters").glob("*.ipynb"))


def place_first_cell(notebook: nbformat.NotebookNode, source: str) -> nbformat.NotebookNode:
    """The notebook with that first code cell, put before the others or in the place of an older one."""
    cells = [cell for cell in notebook.cells if not cell.source.startswith(MARK)]
    position = next((i for i, cell in enumerate(cells) if cell.cell_type == "code"), len(cells))
    # It was not run, but elsewhere it has no output; `make test` runs it and compares.
    cell = nbformat.v4.new_code_cell(source, execution_count=1, metadata={"tags": ["remove-cell"]})
    notebook.cells = [*cells[:position], cell, *cells[position:]]
    return notebook


def update_notebooks(root: Path = ROOT) -> None:
    """Give every notebook its first code cell; one that has it already is not touched."""
    for path in notebooks(root):
        if differences_in_notebook(path, root):
            write(path, place_first_cell(nbformat.read(path, as_version=4), first_cell(address(root))))


def move(new: str, root: Path = ROOT) -> None:
    """Change the address everywhere."""
    if not re.fullmatch(rf"https://github\.com/{OWNER_AND_NAME}", new) or new.endswith(".git"):
        raise ValueError(f"the address must be https://github.com/OWNER/NAME, which Colab can open: got {new!r}")
    old = address(root).removeprefix("https://github.com/")
    for path in [*(root / name for name in PLACES), *twins(root)]:
        text = path.read_text(encoding="utf-8")
        moved = re.sub(
            rf"{HOSTS}{re.escape(old)}(?![\w-]|\.\w)", rf"\g<1>{new.removeprefix('https://github.com/')}", text
        )
        path.write_text(moved, encoding="utf-8")
    update_notebooks(root)


def differences_in_notebook(path: Path, root: Path) -> list[str]:
    code = [cell for cell in nbformat.read(path, as_version=4).cells if cell.cell_type == "code"]
    marked = [cell for cell in code if cell.source.startswith(MARK)]
    if not marked or marked != code[:1]:
        return [f"book/{path.name} must have the cell for Colab as its first code cell, and once: it has {len(marked)}"]
    if marked[0].source != first_cell(address(root)) or marked[0].metadata.get("tags") != ["remove-cell"]:
        return [f"book/{path.name} has another cell for Colab than tools/address.py"]
    return []


def differences(root: Path = ROOT) -> list[str]:
    """Say where another address stands than in pyproject.toml, or none; empty if all agree."""
    ours = address(root).removeprefix("https://github.com/")
    found = []
    for name in PLACES:
        named = {
            match[1] for match in re.findall(f"{HOSTS}{OWNER_AND_NAME}", (root / name).read_text(encoding="utf-8"))
        }
        if named != {ours}:
            found.append(
                f"{name} must name {ours} on GitHub and nothing else: it names {', '.join(sorted(named)) or 'none'}"
            )
    link = f"{address(root)}/archive/{BRANCH}.zip"
    found += [
        f"chapters/{path.name} must install from {link}: run `make twins`"
        for path in twins(root)
        if path.read_text(encoding="utf-8").count(link) != 1
    ]
    return found + [line for path in notebooks(root) for line in differences_in_notebook(path, root)]


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("url", nargs="?", help="the new address")
    parser.add_argument("--check", action="store_true", help="change nothing, report what differs")
    options = parser.parse_args(arguments)
    if options.check:
        found = differences()
        print(*found, sep="\n", end="\n" if found else "", file=sys.stderr)
        return int(bool(found))
    try:
        move(options.url.rstrip("/")) if options.url else update_notebooks()
    except ValueError as error:
        parser.error(str(error))
    return 0


if __name__ == "__main__":
    sys.exit(main())
