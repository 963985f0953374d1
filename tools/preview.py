"""A Sphinx extension: the title, description and picture that a link to a page shows elsewhere (Open Graph).

Pages are published at OWNER.github.io/NAME (.github/workflows/book.yml), which follows from the repository's address
in pyproject.toml. The picture is drawn by tools/picture.py.
"""

from __future__ import annotations

import re
import tomllib
from html import escape, unescape
from pathlib import Path
from typing import Any

from context import text
from docutils import nodes

ROOT = Path(__file__).resolve().parent.parent
PICTURE = "preview.png"
PICTURE_SAYS = "Two rows of maps of sixteen rooms: eigenvectors in order, and mixtures of them in none"
LONGEST = 200
GENERATED = {  # pages without a text of their own
    "genindex": ("Index", "Every name and term of the book, in alphabetical order."),
    "prf-prf": ("Theorems", "The theorems, lemmas and definitions of the book."),
    "py-modindex": ("Modules", "The modules of the package lapbook."),
    "search": ("Search", "Search the book."),
}


def site(root: Path = ROOT) -> str:
    """Where the pages are published, from the address in pyproject.toml."""
    project = tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    owner, name = project["urls"]["Source"].rstrip("/").split("/")[-2:]
    return f"https://{owner.lower()}.github.io/{name}/"


def shorten(words: str, longest: int = LONGEST) -> str:
    """A text cut at the end of a sentence, or of a word, if it is too long.

    >>> shorten("One sentence. Another one.", 20), shorten("One long sentence.", 12)
    ('One sentence.', 'One long …')
    """
    words = " ".join(words.split())
    if len(words) <= longest:
        return words
    start = words[: longest - 1]
    ends = [match.end() for match in re.finditer(r"[.?!](?= )", start)]
    return start[: ends[-1]] if ends else f"{start[: start.rindex(' ')]} …"


def description(doctree: nodes.document) -> str:
    """The first paragraph that is more than a label; a chapter begins with its question."""
    paragraphs = (" ".join(text(node).split()) for node in doctree.findall(nodes.paragraph))
    return shorten(next((words for words in paragraphs if len(words) > 30), ""))


def tags(pagename: str, book: str, title: str, words: str, root: Path = ROOT) -> str:
    """The tags of one page."""
    where = site(root)
    properties = {
        "og:type": "article",
        "og:site_name": book,
        "og:title": title,
        "og:description": words,
        "og:url": f"{where}{pagename}.html",
        "og:image": f"{where}_static/{PICTURE}",
        "og:image:alt": PICTURE_SAYS,
    }
    names = {"description": words, "twitter:card": "summary_large_image"}
    lines = [f'<meta property="{key}" content="{escape(value)}" />' for key, value in properties.items()]
    return "\n".join(lines + [f'<meta name="{key}" content="{escape(value)}" />' for key, value in names.items()])


def add(app: Any, pagename: str, templatename: str, context: dict[str, Any], doctree: Any) -> None:
    """Give a page its tags."""
    title, words = GENERATED.get(pagename, (context.get("title", ""), ""))
    title = " ".join(unescape(re.sub(r"<[^>]+>|\\[()]", "", title)).split()) or app.config.html_title
    words = words or (doctree is not None and description(doctree)) or f"{title}: a page of {app.config.html_title}."
    context["metatags"] = f"{context.get('metatags', '')}\n{tags(pagename, app.config.html_title, title, words)}"


def setup(app: Any) -> dict[str, bool]:
    """What Sphinx calls."""
    app.connect("html-page-context", add)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
