"""A Sphinx extension: the buttons of a chapter's page open and download its twin, which other readers can show."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

FOLDER = "chapters"  # as in tools/twins.py, which a build does not need


def twin(app: Any, page: str) -> Path | None:
    """The twin of a page of the book, or None."""
    folder, _, name = page.rpartition("/")
    path = Path(app.srcdir) / FOLDER / f"{name}.ipynb"
    return path if folder == "book" and path.exists() else None


def point_to_twin(app: Any, page: str, template: str, context: dict[str, Any], doctree: Any) -> None:
    """Change the address of the launch buttons, whatever their number."""
    if not (path := twin(app, page)):
        return
    for group in context.get("header_buttons", []):
        for button in group.get("buttons", []):
            if "launch" in group.get("label", ""):
                button["url"] = button["url"].replace(f"{page}.ipynb", f"{FOLDER}/{path.name}")


def replace_sources(app: Any, exception: Exception | None) -> None:
    """Behind the download button, put the twin in the place of the chapter."""
    if exception is None and app.builder.format == "html":
        for page in app.env.found_docs:
            if path := twin(app, page):
                shutil.copyfile(path, Path(app.outdir) / "_sources" / f"{page}.ipynb")


def setup(app: Any) -> dict[str, bool]:
    """What Sphinx calls; the theme's own buttons are there before priority 900."""
    app.connect("html-page-context", point_to_twin, priority=900)
    app.connect("build-finished", replace_sources)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
