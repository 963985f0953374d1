"""Run the book's notebooks and keep them in one canonical form, so that a diff shows only what changed.

    python tools/notebooks.py execute [paths]   run from top to bottom, store the outputs
    python tools/notebooks.py format [paths]    bring into canonical form without running
    python tools/notebooks.py check [paths]     one line for each violation; exit code 1 if there is any

Without paths: every notebook in book/. Canonical: execution counts 1, 2, 3, …; no times, no widget state and no
editor's settings; ids that depend only on the cells' text; one space of indent.
"""

from __future__ import annotations

import argparse
import copy
import hashlib
import os
import sys
from collections import Counter
from pathlib import Path

import nbformat
from nbclient import NotebookClient
from nbclient.exceptions import CellExecutionError, CellTimeoutError, DeadKernelError

BOOK = Path(__file__).resolve().parent.parent / "book"
MAX_BYTES = 1_500_000
CELL_TIMEOUT = 300  # seconds
WIDGET_VIEW = "application/vnd.jupyter.widget-view+json"
NOTEBOOK_METADATA = {
    "kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
    "language_info": {"name": "python"},
}
CELL_METADATA = {"tags", "mystnb"}  # what the book or nbval reads; the rest is an editor's business


def canonical(notebook: nbformat.NotebookNode) -> nbformat.NotebookNode:
    """Return a copy in canonical form; sources and visible outputs stay as they are."""
    notebook = copy.deepcopy(notebook)
    notebook.nbformat, notebook.nbformat_minor = 4, 5
    notebook.metadata = nbformat.from_dict(NOTEBOOK_METADATA)
    seen, count = Counter(), 0
    for cell in notebook.cells:
        cell.metadata = {key: value for key, value in cell.metadata.items() if key in CELL_METADATA}
        # Without the position: a new cell must not change the ids of all that follow.
        text = f"{cell.cell_type}\n{cell.source}"
        seen[text] += 1
        cell.id = hashlib.sha256(f"{text}\n{seen[text]}".encode()).hexdigest()[:12]
        if cell.cell_type != "code":
            continue
        if cell.execution_count is not None:
            count += 1
            cell.execution_count = count
        cell.outputs = _merge_streams(cell.outputs)
        for output in cell.outputs:
            if "execution_count" in output:
                output.execution_count = cell.execution_count
            output.get("data", {}).pop(WIDGET_VIEW, None)  # its model id is random, and no kernel stands behind it
    return notebook


def _merge_streams(outputs: list) -> list:
    """Join neighbouring pieces of one stream: where a kernel cuts them is a matter of timing."""
    merged = []
    for output in outputs:
        last = merged[-1] if merged else None
        if last and output.output_type == last.output_type == "stream" and output.name == last.name:
            last.text += output.text
        else:
            merged.append(output)
    return merged


def dumps(notebook: nbformat.NotebookNode) -> str:
    """Serialise as Jupyter does: one space of indent, sorted keys, a newline at the end."""
    return nbformat.writes(notebook).rstrip("\n") + "\n"


def write(path: Path, notebook: nbformat.NotebookNode) -> None:
    """Replace the file in one step, so that no interrupted run leaves half a notebook."""
    draft = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        draft.write_text(dumps(canonical(notebook)), encoding="utf-8")
        os.replace(draft, path)
    finally:
        draft.unlink(missing_ok=True)


def execute(path: Path) -> None:
    """Run a notebook in its own folder and store it; a cell that fails raises and leaves the file untouched."""
    notebook = nbformat.read(path, as_version=4)
    client = NotebookClient(
        notebook,
        kernel_name="python3",
        timeout=CELL_TIMEOUT,
        resources={"metadata": {"path": str(path.resolve().parent)}},
        record_timing=False,
        store_widget_state=False,
    )
    client.execute()
    write(path, notebook)


def violations(path: Path) -> list[str]:
    """Say what keeps a stored notebook from being canonical, fully executed and clean; empty if nothing does."""
    text = path.read_text(encoding="utf-8")
    try:
        notebook = nbformat.reads(text, as_version=4)
    except nbformat.reader.NotJSONError:
        return ["is not a notebook: no valid JSON"]
    found = []
    if len(text.encode()) >= MAX_BYTES:
        found.append(f"is {len(text.encode()) / 1e6:.2f} MB, the limit is {MAX_BYTES / 1e6:.1f} MB")
    expected = 0
    for number, cell in enumerate(notebook.cells):
        if cell.cell_type != "code" or not cell.source.strip():
            continue
        expected += 1
        where = f"cell {number} ({cell.source.strip().splitlines()[0][:40]!r})"
        if cell.execution_count is None:
            found.append(f"{where} was not executed")
        elif cell.execution_count != expected:
            found.append(f"{where} has execution count {cell.execution_count} instead of {expected}")
        if cell.source.rstrip().endswith(";"):
            # nbval runs cells without history, and IPython finds the semicolon only there.
            found.append(f"{where} hides its value with a semicolon, which strict nbval shows: end with plt.show()")
        for output in cell.outputs:
            if output.output_type == "error":
                found.append(f"{where} stores an error: {output.ename}")
            elif output.output_type == "stream" and output.name == "stderr":
                found.append(f"{where} stores stderr: {output.text.strip().splitlines()[:1]}")
    if not found and text != dumps(canonical(notebook)):
        found.append(f"is not in canonical form; run `make format NB={os.path.relpath(path)}`")
    return found


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("command", choices=["execute", "format", "check"])
    parser.add_argument("paths", nargs="*", type=Path)
    options = parser.parse_args(arguments)
    failed = False
    for path in options.paths or sorted(BOOK.glob("*.ipynb")):
        if not path.is_file():
            print(f"{path}: no such file", file=sys.stderr)
            failed = True
        elif options.command == "check":
            for violation in violations(path):
                print(f"{path}: {violation}", file=sys.stderr)
                failed = True
        elif options.command == "format":
            write(path, nbformat.read(path, as_version=4))
        else:
            print(f"{path} …", flush=True)
            try:
                execute(path)
            except (CellExecutionError, CellTimeoutError, DeadKernelError) as error:
                print(f"{path}: {error}\n{path}: left as it was", file=sys.stderr)
                failed = True
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
