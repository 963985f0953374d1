"""The built site in a real browser: every page, from a server and from disk, offline and without an error."""

from __future__ import annotations

import io
import re

import lighten
import numpy as np
import pytest
from browser import SITE, TYPESET
from fontTools.ttLib import TTFont
from PIL import Image

from conftest import PAGES, give_up

MAX_BYTES = 3_000_000
TOO_WIDE = """() => document.documentElement.scrollWidth <= innerWidth + 1 ? [] :
    [...document.body.querySelectorAll('*')].filter(e => e.getBoundingClientRect().right > innerWidth + 1)
        .slice(0, 5).map(e => e.outerHTML.slice(0, 120))"""


@pytest.mark.parametrize("scheme", ["http", "file"])
@pytest.mark.parametrize("name", PAGES or ["(no built book)"])
def test_page_works_offline_and_fits_a_phone(browser, origins, name, scheme):
    origin, problems, sizes = origins[scheme], [], []
    inside = (origin, "data:", "blob:")
    page = browser.new_page(viewport={"width": 1280, "height": 900})
    page.on("request", lambda r: r.url.startswith(inside) or problems.append(f"request leaves the site: {r.url}"))
    page.on("requestfailed", lambda r: problems.append(f"request failed: {r.url} ({r.failure})"))
    page.on("response", lambda r: r.status >= 400 and problems.append(f"status {r.status}: {r.url}"))
    page.on("response", lambda r: sizes.append(int(r.headers.get("content-length", 0))))
    page.on("pageerror", lambda e: problems.append(f"page error: {e}"))
    page.on("console", lambda m: m.type == "error" and problems.append(f"console error: {m.text}"))
    try:
        page.goto(origin + name)
        page.wait_for_selector("h1:visible")  # the front page sends the reader on, so this may be one page later
        page.wait_for_load_state("networkidle")
        page.evaluate(TYPESET)

        if sum(sizes) > MAX_BYTES:  # from disk there is no length to read, but the files are the same
            problems.append(f"{sum(sizes) / 1e6:.2f} MB to load, the limit is {MAX_BYTES / 1e6:.0f} MB")
        if page.locator(".math").count() and not page.locator("mjx-container").count():
            problems.append("MathJax has set no formula")
        problems += [
            f"MathJax cannot read: {e}" for e in page.locator("mjx-merror").evaluate_all("es => es.map(e => e.title)")
        ]
        icon = page.locator("link[rel~=icon]")
        if not icon.count():
            problems.append("no favicon")
        elif scheme == "http" and not page.request.get(icon.first.evaluate("e => e.href")).ok:
            problems.append("the favicon is missing")
        hints = page.locator("link[rel=preconnect], link[rel=dns-prefetch]").evaluate_all("es => es.map(e => e.href)")
        problems += [f"connection opened ahead of time: {url}" for url in hints]

        page.set_viewport_size({"width": 390, "height": 844})
        problems += [f"wider than a phone: {element}" for element in page.evaluate(TOO_WIDE)]
    finally:
        page.close()
    assert not problems, f"{origin}{name}:\n  " + "\n  ".join(problems)


def test_figures_lose_bytes_and_nothing_else():
    def stored(picture):
        picture.save(file := io.BytesIO(), "PNG", compress_level=1)
        return file.getvalue()

    colours = np.random.default_rng(0).integers(256, size=(40, 50, 3), dtype=np.uint8)
    solid = Image.fromarray(np.dstack([colours, np.full((40, 50), 255, np.uint8)]))
    smaller = lighten.opaque(stored(solid))
    assert len(smaller) < len(stored(solid))
    assert np.array_equal(np.asarray(Image.open(io.BytesIO(smaller))), colours)
    solid.putpixel((3, 4), (0, 0, 0, 0))
    assert lighten.opaque(stored(solid)) == stored(solid)  # a hole is left as it is


def test_the_icons_of_the_pages_are_in_the_fonts():
    if not PAGES:
        give_up(f"no built book in {SITE}: run `make book` first")
    texts = [(SITE / name).read_text(encoding="utf-8") for name in PAGES]
    icons = {icon for text in texts for icon in re.findall(r'class="([^"]*\bfa-[^"]*)"', text)}
    styles = {path: path.read_text(encoding="utf-8") for path in (SITE / "_static").rglob("*.css")}
    drawn = {code for path in SITE.rglob("fa-*.ttf") for code in TTFont(path).getBestCmap()}
    assert len(icons) > 15
    for icon in icons:
        rules = [rf'\.{name}:before[^{{]*{{content:"\\(f[0-9a-f]+)"' for name in re.findall(r"fa-[\w-]+", icon)]
        found = [code for rule in rules for style in styles.values() for code in re.findall(rule, style)]
        assert [code for code in found if int(code, 16) in drawn], f"nothing to draw for {icon}"
    for path, style in styles.items():  # the signs of notes and theorems
        assert lighten.codes(style) <= drawn, path
