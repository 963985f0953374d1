"""The built pages for readers with other eyes and hands: axe-core, headings, pictures, tables, and the keyboard."""

from __future__ import annotations

from functools import cache
from importlib.resources import files

import pytest

from conftest import PAGES

AXE = files("axe_playwright_python").joinpath("axe.min.js").read_text(encoding="utf-8")
NAMES = [name for name in PAGES if name != "index.html"]  # which only sends the reader on
each_page = pytest.mark.parametrize("name", NAMES or ["(no built book)"])

# All that can be unfolded is. axe looks at each element, so what is alike is thinned out: formulas become a letter of
# the sentence, whose colour they share, and each kind of word in code stands for all others of its kind.
PREPARE = """() => {
    const still = "* { transition: none !important; animation: none !important }";
    document.head.insertAdjacentHTML("beforeend", `<style>${still}</style>`);
    const hidden = document.querySelectorAll("details:not([open]) > summary, .toggle-hidden button");
    for (const button of hidden) button.click();
    for (const formula of document.querySelectorAll(".math")) formula.replaceWith("x");
    const seen = new Set();
    for (const word of document.querySelectorAll(".highlight pre span")) {
        if (seen.has(word.className)) word.replaceWith(...word.childNodes);
        else seen.add(word.className);
    }
    document.body.normalize();
}"""

# Contrast is measured once for each look: text of the same colour, size and weight on the same grounds. The rules
# that are not about colours see the same page in dark mode as in light mode, and are asked in light mode alone; on a
# wide screen they are asked about what surrounds the text, since the text itself is the same as on a phone.
AUDIT = """async ([theme, width]) => {
    Object.assign(document.documentElement.dataset, { mode: theme, theme });
    const grounds = new Map();
    const ground = (element) => {
        if (!element) return "";
        if (!grounds.has(element)) {
            const { backgroundColor, backgroundImage, opacity } = getComputedStyle(element);
            const own = backgroundColor + backgroundImage + opacity;
            grounds.set(element, ground(element.parentElement) + (own === "rgba(0, 0, 0, 0)none1" ? "" : own));
        }
        return grounds.get(element);
    };
    const looks = new Map();
    for (const element of document.body.querySelectorAll("*")) {
        const hasText = [...element.childNodes].some((node) => node.nodeType === 3 && node.data.trim());
        if (!hasText || !element.checkVisibility()) continue;
        const { color, fontSize, fontWeight } = getComputedStyle(element);
        const look = [color, fontSize, fontWeight, ground(element)].join();
        if (!looks.has(look)) looks.set(look, element);
    }
    const colours = ["color-contrast", "link-in-text-block"];
    const settings = { resultTypes: ["violations"], preload: false };
    const found = [await axe.run({ include: [...looks.values()] }, { ...settings, runOnly: colours })];
    if (theme === "light") {
        const rules = Object.fromEntries(colours.map((rule) => [rule, { enabled: false }]));
        const scope = width < 500 ? document : { exclude: ["article"] };
        found.push(await axe.run(scope, { ...settings, rules }));
    }
    return found.flatMap(({ violations }) => violations.flatMap(({ id, impact, nodes }) => nodes.map((node) => {
        const [check] = [...node.any, ...node.all, ...node.none];
        return [impact, `${theme}, ${width} px: ${id} at ${node.target.join(" ")}: ${check.message}`];
    })));
}"""

# The theme makes wide code a stop of the Tab key a moment after the window, or what is unfolded, has changed.
REACHABLE = (
    "() => [...document.querySelectorAll('pre')].every((e) => e.scrollWidth <= e.clientWidth || e.tabIndex === 0)"
)

STRUCTURE = """() => {
    const article = document.querySelector("main");
    const all = (selector) => [...article.querySelectorAll(selector)];
    const outer = all("figure").filter((figure) => !figure.closest(".lb-explorer"));
    const number = (figure) => figure.querySelector(":scope > figcaption .caption-number")?.textContent.trim();
    const text = (element) => element.outerHTML.slice(0, 100);
    return {
        lang: document.documentElement.lang,
        headings: [...document.querySelectorAll("h1, h2, h3, h4, h5, h6")]
            .filter((heading) => heading.checkVisibility())
            .map((heading) => [Number(heading.tagName[1]), heading.textContent]),
        figures: outer.length,
        explorers: all(".lb-explorer").length,
        images: all("img").length,
        faults: [
            ...all("img").filter((image) => !image.alt.trim()).map((e) => `no alt text: ${text(e)}`),
            ...outer.filter((figure) => !number(figure)).map((e) => `no numbered caption: ${text(e)}`),
            ...all(".cell_output img").filter((e) => !e.closest("figure")).map((e) => `not in a figure: ${text(e)}`),
            ...all(".lb-explorer").filter((e) => !e.ariaLabel || !e.closest("figure:not(.lb-explorer *)"))
                .map((e) => `an explorer without name or figure: ${text(e)}`),
            ...all("table:not([role=presentation])").filter((table) => !table.querySelector("th"))
                .map((e) => `a table without headers: ${text(e)}`),
        ],
    };
}"""


@pytest.fixture(scope="module")
def visit(browser, origins):
    """Load a page once, at the width of a phone, and say what is found there and then on a desktop."""

    @cache
    def look(name):
        page = browser.new_page(viewport={"width": 390, "height": 844})
        page.route("**/mathjax/**", lambda route: route.abort())  # a formula is hundreds of boxes of one colour
        try:
            page.goto(origins["http"] + name)
            page.wait_for_load_state("networkidle")
            found = page.evaluate(STRUCTURE)
            page.evaluate(AXE)
            page.evaluate(PREPARE)
            page.wait_for_function(REACHABLE)
            found["axe"] = []
            for width in (390, 1280):
                page.set_viewport_size({"width": width, "height": 900})
                for theme in ("light", "dark"):
                    found["axe"] += page.evaluate(AUDIT, [theme, width])
        finally:
            page.close()
        return found

    return look


@each_page
def test_axe_finds_nothing_serious(visit, name):
    serious = [text for impact, text in visit(name)["axe"] if impact in ("serious", "critical")]
    assert not serious, f"{name}:\n  " + "\n  ".join(serious[:20])


@each_page
def test_structure_can_be_read_aloud(visit, name):
    found = visit(name)
    levels = [level for level, _ in found["headings"]]
    assert found["lang"] == "en"
    assert levels.count(1) == 1, found["headings"]
    skipped = [b for a, b in zip(found["headings"], found["headings"][1:], strict=False) if b[0] > a[0] + 1]
    assert skipped == [], f"{name}: headings that skip a level"
    assert found["faults"] == [], f"{name}:\n  " + "\n  ".join(found["faults"])


def test_the_book_has_its_figures(visit):
    chapters = [name for name in NAMES if name.startswith("book/") and name[5].isdigit()]
    counts = {name: visit(name) for name in chapters}
    assert len(chapters) == 11
    assert all(found["figures"] >= 4 and found["images"] >= 4 for found in counts.values())
    assert sum(found["explorers"] for found in counts.values()) == 7


FOCUS = """() => {
    const element = document.activeElement;
    const { outlineStyle, outlineWidth, boxShadow } = getComputedStyle(element);
    const { top, bottom, width } = element.getBoundingClientRect();
    return {
        name: element.outerHTML.slice(0, 120),
        text: element.innerText,
        marked: (outlineStyle !== "none" && parseFloat(outlineWidth) >= 2) || boxShadow !== "none",
        visible: width > 0 && bottom > 0 && top < innerHeight,
        body: element === document.body,
    };
}"""


@pytest.fixture
def chapter(browser, origins):
    """The first chapter with an explorer, formulas, hidden code and hidden solutions, ready to be read."""
    page = browser.new_page(viewport={"width": 1280, "height": 900}, reduced_motion="reduce")
    page.goto(origins["http"] + "book/02-graph-drawing.html")
    page.wait_for_load_state("networkidle")
    page.wait_for_function("!document.querySelector('mjx-container[tabindex]')")
    page.add_style_tag(content="* { transition: none !important }")  # the skip link would slide in
    yield page
    page.close()


def test_a_chapter_is_read_with_the_tab_key_alone(chapter):
    chapter.keyboard.press("Tab")
    first = chapter.evaluate(FOCUS)
    assert first["text"] == "Skip to main content"
    assert first["visible"]
    assert first["marked"]
    chapter.keyboard.press("Enter")
    seen = []
    for _ in range(250):
        chapter.keyboard.press("Tab")
        at = chapter.evaluate(FOCUS)
        if at["body"]:
            break
        assert at["visible"], f"focus is out of sight: {at['name']}"
        assert at["marked"], f"focus cannot be seen: {at['name']}"
        seen.append(at["name"])
    else:
        pytest.fail(f"the end of the page is not reached, last at {seen[-1]}")
    assert not any("navbar-brand" in name for name in seen), "the skip link leads past the table of contents"
    for part in ('type="range"', "toggle-button", "<summary", "right-next"):
        assert any(part in name for name in seen), f"{part} is not reached"


def test_hidden_parts_unfold_by_keyboard(chapter):
    solution = chapter.locator(".solution.dropdown").first
    button = solution.locator("button.toggle-button")
    inside = solution.locator("section, p:not(.admonition-title)").first
    states = []
    for key in ("Enter", "Space"):
        button.focus()
        chapter.keyboard.press(key)
        states.append((button.get_attribute("aria-expanded"), inside.is_visible()))
    assert states == [("true", True), ("false", False)]
    code = chapter.locator("details.hide").first
    for expected in (True, False):
        code.locator("summary").focus()
        chapter.keyboard.press("Enter")
        assert code.evaluate("e => e.open") == expected
