"""A Sphinx extension: the docstrings of lapbook, which are plain text, as reStructuredText for the API pages.

A docstring reads well in a terminal: names stand in single backticks, mathematics is Unicode with `_` before an index,
examples are doctests, and a bar or a star is a bar or a star. On the page names of lapbook become links and indices
become subscripts; what reStructuredText would take for markup is escaped.
"""

from __future__ import annotations

import ast
import inspect
import re
from collections.abc import Iterator
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any

PAGES = Path(__file__).resolve().parent.parent / "book" / "api"
INDEX = re.compile(r"(?<!\w)([^\W\d_]|‖)_(?:\{([^}]*)\}|([A-Za-z0-9]+|∞))")
POWER = re.compile(r"\^(?:\(([^)]*)\)|\{([^}]*)\}|(\w))")


@cache
def modules() -> list[str]:
    """The modules that the API pages describe, in the order of the pages' names."""
    return [name for page in sorted(PAGES.glob("*.md")) for name in re.findall(r"automodule:: (\S+)", page.read_text())]


def public(module: str) -> dict[str, Any]:
    """Functions and classes defined in a module whose names do not begin with an underscore, in the order of the code.

    >>> list(public("lapbook.metrics"))[:2]
    ['cosines', 'sim_gt']
    """
    inside = vars(import_module(module)).items()
    kinds = {name: thing for name, thing in inside if inspect.isfunction(thing) or inspect.isclass(thing)}
    return {name: thing for name, thing in kinds.items() if name[0] != "_" and thing.__module__ == module}


@cache
def described() -> set[str]:
    """The full names of all functions, classes and methods on the API pages."""
    things = {f"{module}.{name}": thing for module in modules() for name, thing in public(module).items()}
    methods = {
        f"{name}.{method}"
        for name, thing in things.items()
        for method, function in vars(thing).items()
        if inspect.isclass(thing) and method[0] != "_" and getattr(function, "__doc__", None)
    }
    return things.keys() | methods


def target(code: str, module: str, parameters: set[str]) -> str | None:
    """The full name of what `code` calls by name in a docstring of `module`, if an API page describes it."""
    code = code.removeprefix("lapbook.").removeprefix("lb.")
    names = () if code in parameters else (f"{module}.{code}", f"lapbook.{code}")
    return next((name for name in names if name in described()), None)


def inline(text: str, module: str, parameters: set[str]) -> str:
    """One paragraph: code in backticks, mathematics set a little, all else as it stands.

    >>> inline("the |cos| of `u`, λ_{k+1} or R^d", "lapbook.metrics", set()).replace(chr(92), "!")
    'the !|cos!| of ``u``, λ! :sub:`k+1`!  or R! :sup:`d`! '
    """
    pieces = re.split(r"`([^`]+)`", text)
    for i, piece in enumerate(pieces):
        if i % 2:
            name = target(piece, module, parameters)
            pieces[i] = f":py:obj:`{piece} <{name}>`" if name else f"``{piece}``"
        else:
            piece = re.sub(r"([\\*|])", r"\\\1", piece)
            piece = re.sub(r"(?<!\w)(\w)'(?!\w)", r"\1′", piece)
            piece = INDEX.sub(lambda m: rf"{m[1]}\ :sub:`{m[2] or m[3]}`\ ", piece)
            piece = POWER.sub(lambda m: rf"\ :sup:`{m[1] or m[2] or m[3]}`\ ", piece)
            pieces[i] = re.sub(r"(?<=\w)_", r"\\_", piece)
    return "".join(pieces)


def table(lines: list[str], module: str) -> Iterator[str]:
    """A table of Markdown as a list-table."""
    yield from (".. list-table::", "   :header-rows: 1", "")
    for line in lines:
        cells = [cell.strip() for cell in line.strip().strip("|").split("|")]
        if set("".join(cells)) - set("-: "):
            yield from (f"   {'*' if i == 0 else ' '} - {inline(cell, module, set())}" for i, cell in enumerate(cells))


def markup(lines: list[str], module: str, parameters: set[str]) -> Iterator[str]:
    """The lines of a docstring, paragraph by paragraph."""
    for paragraph in re.split(r"\n\s*\n", "\n".join(lines).strip("\n")):
        block = paragraph.split("\n")
        if block[0].lstrip().startswith(">>>"):
            yield from block
        elif block[0].startswith("    "):
            yield from ("::", "", *block)
        elif block[0].startswith("|") and block[0].endswith("|"):
            yield from table(block, module)
        else:
            yield from inline(paragraph, module, parameters).split("\n")
        yield ""


def rewrite(app: Any, what: str, name: str, thing: Any, options: Any, lines: list[str]) -> None:
    """Called by autodoc with each docstring, whose lines are to be changed in place."""
    module = max((m for m in modules() if name == m or name.startswith(f"{m}.")), key=len)
    try:
        parameters = set(inspect.signature(thing).parameters)
    except (TypeError, ValueError):
        parameters = set()
    lines[:] = markup(lines, module, parameters)


def import_types(module: str) -> None:
    """Do the imports that a module keeps for type checkers, so that its signatures can be linked."""
    code = import_module(module)
    for statement in ast.parse(inspect.getsource(code)).body:
        if isinstance(statement, ast.If) and ast.unparse(statement.test) == "TYPE_CHECKING":
            exec(compile(ast.Module(statement.body, []), module, "exec"), vars(code))


def setup(app: Any) -> dict[str, bool]:
    """Called by Sphinx."""
    for module in modules():
        import_types(module)
    app.connect("autodoc-process-docstring", rewrite)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
