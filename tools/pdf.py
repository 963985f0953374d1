"""Print the built book: every page of the table of contents into _build/pdf, and all of them as one book.

The pages bring their own print style (book/static/book.css); what is left to do here is to number the sheets and to
mend links between pages, which would point at the server that they were printed from.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import yaml
from browser import ROOT, SITE, TYPESET, chromium, executable, served
from pypdf import PdfReader, PdfWriter
from pypdf.generic import ArrayObject, DictionaryObject, NameObject, NumberObject, TextStringObject

FOLDER = SITE.parent / "pdf"
FOOTER = """<div style="width: 100%; padding: 0 18mm; font: 8px sans-serif; color: #4b5563; display: flex">
<span class="title" style="flex: 1"></span><span class="pageNumber"></span></div>"""


def contents() -> list[str]:
    """The pages of the table of contents in its order, without an ending: book/index, book/01-…"""

    def files(entry: dict[str, Any]) -> Iterator[str]:
        if "file" in entry:
            yield entry["file"]
        for key in ("parts", "chapters", "sections"):
            for inner in entry.get(key, ()):
                yield from files(inner)

    toc = yaml.safe_load((ROOT / "_toc.yml").read_text(encoding="utf-8"))
    return [toc["root"], *files(toc)]


def print_page(page: Any, url: str, path: Path) -> None:
    """One page of the site as a tagged PDF with an outline, in A4."""
    page.goto(url)
    page.wait_for_load_state("networkidle")
    page.evaluate(TYPESET)
    # Pictures far below are loaded when they are scrolled to, and paper does not scroll.
    page.evaluate("() => Promise.all([...document.images].map((e) => (e.loading = 'eager', e.decode())))")
    page.pdf(
        path=path,
        prefer_css_page_size=True,
        print_background=True,
        display_header_footer=True,
        header_template="<span></span>",
        footer_template=FOOTER,
        tagged=True,
        outline=True,
    )


def mend_links(writer: PdfWriter, origin: str, target: Callable[[str], DictionaryObject | None]) -> None:
    """Give links into the site the action that `target` has for the page, such as book/03-the-theorem; else none."""
    for page in writer.pages:
        kept = ArrayObject()
        for reference in page.get("/Annots", ()):
            link = reference.get_object()
            uri = str(link.get("/A", {}).get("/URI", ""))
            if uri.startswith(origin):
                mended = target(uri.removeprefix(origin).partition("#")[0].removesuffix(".html"))
                if mended is None:
                    continue
                link[NameObject("/A")] = mended
            kept.append(reference)
        if "/Annots" in page:
            page[NameObject("/Annots")] = kept


def action(kind: str, entries: dict[str, Any]) -> DictionaryObject:
    """What a link does."""
    return DictionaryObject({NameObject(key): value for key, value in {"/S": NameObject(kind), **entries}.items()})


def to_file(names: list[str]) -> Callable[[str], DictionaryObject | None]:
    """Links to the file that a page was printed into, beside this one."""

    def target(name: str) -> DictionaryObject | None:
        if name not in names:
            return None
        start = ArrayObject([NumberObject(0), NameObject("/Fit")])
        file = TextStringObject(f"{Path(name).name}.pdf")
        return action("/GoToR", {"/F": file, "/D": start})

    return target


def to_sheet(writer: PdfWriter, first: dict[str, int]) -> Callable[[str], DictionaryObject | None]:
    """Links to the sheet of the joined book on which a page begins."""

    def target(name: str) -> DictionaryObject | None:
        if name not in first:
            return None
        start = ArrayObject([writer.pages[first[name]].indirect_reference, NameObject("/Fit")])
        return action("/GoTo", {"/D": start})

    return target


def main() -> int:
    path, names = executable(), contents()
    if path is None or not (SITE / f"{names[0]}.html").is_file():
        print("make pdf needs a built book (make book) and Chromium: one of them is missing", file=sys.stderr)
        return 1
    FOLDER.mkdir(parents=True, exist_ok=True)
    book, first = PdfWriter(), {}
    with served() as origin, chromium(path) as browser:
        page = browser.new_page()
        for name in names:
            file = FOLDER / f"{Path(name).name}.pdf"
            print_page(page, f"{origin}{name}.html", file)
            first[name] = len(book.pages)
            book.append(file, outline_item=page.title().partition(" — ")[0])
            alone = PdfWriter(clone_from=PdfReader(file))
            mend_links(alone, origin, to_file(names))
            alone.write(file)
        mend_links(book, origin, to_sheet(book, first))
        book.add_metadata({"/Title": "The Laplacian Representation, Executable"})
        book.write(FOLDER / "lapbook.pdf")
    print(f"{len(names)} pages and the whole book, {len(book.pages)} sheets, are in {FOLDER}.")
    return 0


if __name__ == "__main__":
    sys.exit(main())
