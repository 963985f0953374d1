"""The built site in a real browser: every page, from a server and from disk, offline and without an error."""

from __future__ import annotations

import io
import re

import lighten
import numpy as np
import preview
import pytest
from browser import ROOT, SITE, TYPESET
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


CHAPTER = "book/03-the-theorem.html"
DIALOG = "#pst-{}-sidebar-modal"


@pytest.fixture
def reader(browser, origins):
    """Open a page as a reader with a screen of some width does: a finger below 992 px, a mouse above."""
    contexts = []

    def opened(name, width, scheme="http", **settings):
        narrow = width < 992
        context = browser.new_context(
            viewport={"width": width, "height": 844}, has_touch=narrow, is_mobile=narrow, **settings
        )
        contexts.append(context)
        page = context.new_page()
        page.goto(origins[scheme] + name)
        page.wait_for_load_state("networkidle")
        return page

    yield opened
    for context in contexts:
        context.close()


@pytest.mark.parametrize("width", [390, 800])
@pytest.mark.parametrize(("kind", "inside"), [("primary", "text=Graph drawing"), ("secondary", "text=The proof")])
def test_menus_open_and_close_on_narrow_screens(reader, width, kind, inside):
    page = reader(CHAPTER, width)
    button = page.locator(f".{kind}-toggle:visible")
    dialog = page.locator(DIALOG.format(kind))
    entry = dialog.locator(inside).first
    assert button.count() == 1
    assert not dialog.is_visible()

    button.tap()
    assert entry.is_visible()
    assert button.get_attribute("aria-expanded") == "true"
    dialog.get_by_role("button", name="Close").tap()
    assert not dialog.is_visible()
    assert button.get_attribute("aria-expanded") == "false"
    for key in ("Enter", "Space"):
        button.focus()
        page.keyboard.press(key)
        assert entry.is_visible(), key
        page.keyboard.press("Escape")
        assert not dialog.is_visible(), key
        assert button.evaluate("e => e === document.activeElement"), "the focus is where it was"


def test_a_tap_on_a_section_leads_there_and_closes_the_contents(reader):
    page = reader(CHAPTER, 390)
    page.locator(".secondary-toggle:visible").tap()
    page.locator(DIALOG.format("secondary")).locator("a", has_text="The price of a rotation").tap()
    assert not page.locator(DIALOG.format("secondary")).is_visible()
    heading = page.get_by_role("heading", name="The price of a rotation")
    page.wait_for_function("e => Math.abs(e.getBoundingClientRect().top) < 200", arg=heading.element_handle())


def test_the_sidebar_folds_on_a_wide_screen(reader):
    page = reader(CHAPTER, 1440)
    entry = page.locator("#pst-primary-sidebar").get_by_role("link", name="Graph drawing")
    button = page.locator(".primary-toggle:visible")
    states = [entry.is_visible()]
    for _ in range(2):
        button.click()
        page.wait_for_timeout(400)  # it slides
        states.append(entry.is_visible() and entry.bounding_box()["x"] >= 0)
        assert button.get_attribute("aria-expanded") == str(states[-1]).lower()
    button.focus()
    page.keyboard.press("Enter")
    page.wait_for_timeout(400)
    states.append(entry.is_visible() and entry.bounding_box()["x"] >= 0)
    assert states == [True, False, True, False]
    assert page.get_by_role("button", name="Close").count() == 0, "it belongs to the dialogs of narrow screens"


def test_a_figure_is_enlarged_panned_and_closed(reader):
    page = reader(CHAPTER, 390)
    figure = page.locator("figure:has(> .lb-enlarge)").nth(1)
    dialog, pan = page.locator(".lb-enlarged"), page.locator(".lb-pan")
    button = figure.get_by_role("button", name=re.compile(r"Enlarge Fig\. 3\.\d"))
    figure.locator("> img").tap()
    drawn = pan.locator("img").evaluate("e => e.getBoundingClientRect().width")
    assert drawn >= int(figure.locator("> img").get_attribute("width")) > 390
    page.keyboard.press("ArrowRight")
    page.wait_for_function("document.querySelector('.lb-pan').scrollLeft > 0")
    dialog.get_by_role("button", name="Close").tap()
    assert not dialog.is_visible()
    for key in ("Enter", "Space"):
        button.focus()
        page.keyboard.press(key)
        assert dialog.is_visible(), key
        page.keyboard.press("Escape")
        assert not dialog.is_visible(), key
    assert button.evaluate("e => e === document.activeElement")


def test_no_type_in_a_figure_is_too_small_when_enlarged():
    sources = [*ROOT.glob("book/*.ipynb"), *ROOT.glob("lapbook/**/*.py")]
    sizes = {float(n) for path in sources for n in re.findall(r"(?:fontsize|labelsize)=([\d.]+)", path.read_text())}
    assert sizes
    assert min(sizes) / 72 * lighten.DOTS_AN_INCH >= 9


def test_a_picture_is_shown_in_its_own_size_however_finely_it_is_drawn():
    def drawn(dots):
        size = (round(7.5 * dots), 3 * dots)
        Image.new("RGB", size, "white").save(file := io.BytesIO(), "PNG", dpi=(dots, dots))
        return lighten.shown_size(file.getvalue())

    assert drawn(110) == drawn(220) == (825, 330)


@pytest.mark.parametrize("enlarged", [False, True])
def test_figures_are_no_white_cards_on_a_dark_page(reader, enlarged):
    page = reader("book/index.html", 390, color_scheme="dark")
    picture = page.locator("figure > img").first
    if enlarged:
        picture.tap()
        picture = page.locator(".lb-pan img")
    picture.scroll_into_view_if_needed()
    seen = np.asarray(Image.open(io.BytesIO(picture.screenshot())).convert("RGB")).astype(int)
    ground = page.evaluate("getComputedStyle(document.body).backgroundColor")
    ground = [int(n) for n in re.findall(r"\d+", ground)[:3]]
    corner = seen[-1, 1]  # white in the file
    assert max(ground) < 60
    assert np.abs(corner - ground).max() <= 3, f"{corner} on {ground}"
    assert seen.max() > 150  # and there is something to see


def test_a_caption_that_speaks_of_dark_and_light_is_true_on_a_dark_page(reader):
    page = reader(CHAPTER, 390, color_scheme="dark")
    figure = page.locator("figure", has_text="Dark is 1, white is 0").first
    assert "invert" not in figure.locator("> img").evaluate("e => getComputedStyle(e).filter")
    others = page.locator("figure:not(.lb-as-drawn) > img")
    assert others.count() >= 2
    assert all("invert" in value for value in others.evaluate_all("es => es.map(e => getComputedStyle(e).filter)"))


WIDE = """() => {
    const auto = (e) => getComputedStyle(e).overflowX === "auto";
    const scrolls = (e) => e.tagName !== "ARTICLE" && (auto(e) || scrolls(e.parentElement));
    return [...document.querySelectorAll("article :is(table, pre)")]
        .filter((e) => e.checkVisibility() && e.getBoundingClientRect().right > innerWidth && !scrolls(e))
        .map((e) => e.outerHTML.slice(0, 120));
}"""
ADD = """() => {
    const wide = "<td>" + "wide&nbsp;".repeat(20) + "</td>";
    const output = `<div class="cell_output"><div class="output text_html"><table>${wide}</table></div></div>`;
    const code = `<div class="cell"><div class="highlight"><pre>${"x".repeat(300)}</pre></div></div>`;
    document.querySelector("article > section").insertAdjacentHTML("beforeend", output + code);
}"""


@pytest.mark.parametrize("name", ["book/notation.html", "book/reproduction.html"])
def test_what_is_wide_scrolls_in_its_own_box(reader, name):
    page = reader(name, 390)
    page.evaluate(ADD)
    assert page.evaluate(WIDE) == []
    assert page.evaluate(TOO_WIDE) == []


@pytest.mark.parametrize("scheme", ["http", "file"])
def test_results_of_the_search_have_a_line_of_context(reader, scheme):
    page = reader("search.html?q=bottleneck", 390, scheme)
    page.wait_for_selector("#search-results ul.search li .context b")
    page.wait_for_function(
        "!document.querySelector('#search-results .search-summary')?.textContent.includes('Searching')"
    )
    items = page.locator("#search-results ul.search > li")
    assert items.count() >= 3
    found = page.locator("#search-results .context").all_inner_texts()
    assert len(found) == items.count()
    assert sum("bottleneck" in text.lower() for text in found) >= len(found) - 1
    assert all(20 < len(text) < 260 for text in found), found


def test_the_icon_of_the_search_does_not_cover_its_text(reader):
    page = reader("search.html", 390)
    icon = page.locator(".bd-search-container .fa-magnifying-glass").bounding_box()
    text = page.locator(".bd-search-container input[type=search]").evaluate(
        "e => e.getBoundingClientRect().left + parseFloat(getComputedStyle(e).paddingLeft)"
    )
    assert icon["width"] > 0
    assert icon["x"] + icon["width"] <= text


@pytest.mark.parametrize("name", [name for name in PAGES if name != "index.html"] or ["(no built book)"])
def test_a_link_to_a_page_shows_title_description_and_picture(name):
    if not PAGES:
        give_up(f"no built book in {SITE}: run `make book` first")
    head = (SITE / name).read_text(encoding="utf-8").split("</head>")[0]
    tags = dict(re.findall(r'<meta (?:property|name)="((?:og|twitter):[\w:]+|description)" content="([^"]*)"', head))
    assert len(tags["og:title"]) > 3
    assert "not set" not in tags["og:title"]
    assert 10 < len(tags["og:description"]) <= preview.LONGEST
    assert not re.search(r"[{}\\$]", tags["og:description"] + tags["og:title"]), "raw source"
    assert tags["description"] == tags["og:description"]
    assert tags["og:url"] == preview.site() + name
    assert tags["twitter:card"] == "summary_large_image"
    picture = SITE / tags["og:image"].removeprefix(preview.site())
    assert picture.stat().st_size <= 100_000
    with Image.open(picture) as opened:
        assert opened.size == (1200, 630)


def test_the_pages_move_with_the_repository(tmp_path):
    (tmp_path / "pyproject.toml").write_text('[project.urls]\nSource = "https://github.com/Some-One/a.book"\n')
    assert preview.site(tmp_path) == "https://some-one.github.io/a.book/"
