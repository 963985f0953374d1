"""A Sphinx extension: the text of every section, for a line of context under the results of the search.

Sphinx would load each page found and cut the line out of it, megabytes at a time, and not at all from disk. Here the
texts are in a script beside the index, which the page of the search alone loads; book.js cuts the line.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

from docutils import nodes
from sphinx import addnodes

NAME = "texts.js"
OWN = (nodes.section, addnodes.desc)  # what results of the search lead to
COMMAND = re.compile(r"\\(?:mathbf|boldsymbol|mathrm|mathcal|mathbb|operatorname|text|tilde|hat|bar|left|right)\b")


def plain(formula: str) -> str:
    r"""A short formula as a line of text.

    >>> plain(r"\mathbf{e}_2, \lambda_{k} \le 1")
    'e_2, lambda_k le 1'
    """
    return " ".join(re.sub(r"[{}\\$]", "", COMMAND.sub("", formula)).split())


def text(node: nodes.Node) -> str:
    """What a part of a page says, without its code, its long formulas and what belongs to sections within it."""
    if isinstance(node, nodes.Text):
        return node.astext()
    if isinstance(node, (*OWN, nodes.FixedTextElement, nodes.math_block, nodes.raw, nodes.Invisible, nodes.title)):
        return ""
    if isinstance(node, nodes.math):
        return plain(node.astext())
    space = " " if isinstance(node, (nodes.Body, nodes.Part, nodes.TextElement)) else ""
    inline = isinstance(node, nodes.Inline)
    return ("" if inline else space) + "".join(map(text, node.children)) + ("" if inline else space)


def sections(doctree: nodes.document) -> dict[str, str]:
    """The text of each section and each documented name, under its anchor; that of the page itself under ''."""
    found = {}
    for node in doctree.findall(lambda node: isinstance(node, OWN)):
        holder = node[0] if isinstance(node, addnodes.desc) else node  # a name's anchor is that of its signature
        own = " ".join("".join(map(text, node.children[1:])).split())
        anchors = holder["ids"] + ([""] if isinstance(node.parent, nodes.document) else [])
        found.update({anchor: own for anchor in anchors if own})
    return found


def collect(app: Any, doctree: nodes.document, docname: str) -> None:
    """Note down a page."""
    if app.builder.format == "html":
        app.builder.lapbook_texts = {**getattr(app.builder, "lapbook_texts", {}), docname: sections(doctree)}


def load(app: Any, pagename: str, templatename: str, context: dict[str, Any], doctree: Any) -> None:
    """The page of the search loads the texts."""
    if pagename == "search":
        context["metatags"] = context.get("metatags", "") + f'\n<script src="_static/{NAME}"></script>'


def finished(app: Any, exception: Exception | None) -> None:
    """Write the texts."""
    static = Path(app.outdir) / "_static"
    if exception is None and app.builder.format == "html" and static.is_dir():
        texts = json.dumps(getattr(app.builder, "lapbook_texts", {}), ensure_ascii=False, sort_keys=True)
        (static / NAME).write_text(f"window.LAPBOOK_TEXTS = {texts};\n", encoding="utf-8")


def setup(app: Any) -> dict[str, bool]:
    """What Sphinx calls."""
    app.connect("doctree-resolved", collect)
    app.connect("html-page-context", load)
    app.connect("build-finished", finished)
    return {"parallel_read_safe": True, "parallel_write_safe": False}
