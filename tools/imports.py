"""The import graph of lapbook, as the figure in CONTRIBUTING.md: `python tools/imports.py` writes it anew.

An arrow goes from a module to one that imports it; one that follows from others is left out.
"""

from __future__ import annotations

import ast
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
ABOVE = "reproduction"
START, END = "<!-- imports -->\n", "<!-- /imports -->"


def modules(root: Path = ROOT) -> dict[str, Path]:
    """Every module of the package and its file."""
    return {
        ".".join(path.relative_to(root).with_suffix("").parts).removesuffix(".__init__"): path
        for path in sorted((root / "lapbook").rglob("*.py"))
    }


def graph(root: Path = ROOT) -> dict[str, set[str]]:
    """What each module imports of lapbook, anywhere in its file, for types too."""
    known = modules(root)
    found: dict[str, set[str]] = {}
    for name, path in known.items():
        imported: set[str] = set()
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("lapbook"):
                inner = {f"{node.module}.{alias.name}" for alias in node.names}
                imported |= {each if each in known else str(node.module) for each in inner}
            elif isinstance(node, ast.Import):
                imported |= {alias.name for alias in node.names if alias.name.startswith("lapbook.")}
        found[name] = imported - {name, "lapbook"}
    return found


def drawn(root: Path = ROOT) -> str:
    """The graph of the core in Mermaid's words, with all that is above as one node."""

    def short(name: str) -> str:
        top = name.removeprefix("lapbook.").split(".")[0]
        return "reproduction/" if top == ABOVE else top

    arrows: dict[str, set[str]] = {}
    for name, imported in graph(root).items():
        if name not in ("lapbook", "lapbook.__main__"):
            arrows.setdefault(short(name), set()).update({short(other) for other in imported} - {short(name)})

    def reached(name: str) -> set[str]:
        return arrows[name].union(*(reached(other) for other in arrows[name])) if arrows[name] else set()

    lines = ["```mermaid", "graph TD"]
    for name in sorted(arrows):
        through = set().union(*(reached(other) for other in arrows[name])) if arrows[name] else set()
        lines += [f"    {other} --> {name}" for other in sorted(arrows[name] - through)]
    return "\n".join([*lines, "```", ""])


def main() -> None:
    """Put the figure where it belongs."""
    page = ROOT / "CONTRIBUTING.md"
    before, _, rest = page.read_text(encoding="utf-8").partition(START)
    page.write_text(before + START + drawn() + END + rest.partition(END)[2], encoding="utf-8")


if __name__ == "__main__":
    main()
