"""`make pdf`: a page on paper is complete, light, and without what cannot be pressed there."""

from __future__ import annotations

import pdf
import pytest
from pypdf import PdfReader, PdfWriter

from conftest import SITE

PAGE = "book/02-graph-drawing"


@pytest.fixture(scope="module")
def printed(browser, origins, tmp_path_factory):
    """A chapter with an explorer and hidden solutions, printed by a reader who sees it in dark mode."""
    path = tmp_path_factory.mktemp("pdf") / "page.pdf"
    page = browser.new_page(color_scheme="dark")
    pdf.print_page(page, f"{origins['http']}{PAGE}.html", path)
    assert page.evaluate("document.documentElement.dataset.theme") == "dark"  # as before
    page.close()
    return path


@pytest.fixture(scope="module")
def text(printed):
    return " ".join(" ".join(sheet.extract_text() for sheet in PdfReader(printed).pages).split())


def test_the_page_is_there_from_its_title_to_its_end(browser, origins, printed, text):
    page = browser.new_page()
    page.goto(f"{origins['http']}{PAGE}.html")
    headings = page.locator("article :is(h1, h2)").evaluate_all("es => es.map(e => e.textContent.replace('#', ''))")
    page.close()
    assert len(headings) > 4
    squeezed = text.replace(" ", "")
    assert [name for name in headings if name.replace(" ", "") not in squeezed] == []
    sheets = PdfReader(printed).pages
    assert 5 < len(sheets) < 40
    assert {(round(sheet.mediabox.width), round(sheet.mediabox.height)) for sheet in sheets} == {(595, 842)}  # A4
    assert all(len(sheet.extract_text()) > 60 or sheet.images for sheet in sheets), "a sheet is empty"


def test_an_explorer_prints_its_pictures_and_values_without_its_sliders(printed, text):
    assert "Angle 30°" in text
    assert "above its minimum" in text
    # Its two maps, drawn by the page one pixel a cell, are pictures like the ones from matplotlib.
    own = (SITE / f"{PAGE}.html").read_text(encoding="utf-8").count('src="../_images/')
    assert own > 2
    assert sum(len(sheet.images) for sheet in PdfReader(printed).pages) == own + 2


def test_nothing_to_press_is_printed_and_solutions_are_open(text):
    assert "Solution to Exercise" in text
    for label in ("Back to top", "Skip to main content", "code cell source", "Search", "Contents", "previous"):
        assert label not in text, label


def test_links_into_the_site_lead_to_other_files(origins, printed):
    names = pdf.contents()
    assert names[0] == "book/index"
    assert len(names) == len(set(names))
    writer = PdfWriter(clone_from=PdfReader(printed))
    pdf.mend_links(writer, origins["http"], pdf.to_file(names))
    annotations = [link.get_object() for sheet in writer.pages for link in sheet.get("/Annots", ())]
    links = [annotation["/A"] for annotation in annotations if "/A" in annotation]
    assert not [link for link in links if "127.0.0.1" in str(link.get("/URI", ""))]
    assert "01-states-as-a-graph.pdf" in {link.get("/F") for link in links}
