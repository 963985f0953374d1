"""The built site in a real browser: every page, from a server and from disk, offline and without an error."""

from __future__ import annotations

import os
import shutil
import threading
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

SITE = Path(__file__).resolve().parent.parent / "_build" / "html"
PAGES = sorted(path.relative_to(SITE).as_posix() for path in SITE.rglob("*.html") if "_static" not in path.parts)
BROWSERS = ("chromium", "chromium-browser", "google-chrome")
ARGUMENTS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--no-first-run",
    "--disable-quic",
    "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1",  # what leaves fails at once instead of hanging
]
TYPESET = "async () => { if (window.MathJax?.startup?.promise) await MathJax.startup.promise }"
TOO_WIDE = """() => document.documentElement.scrollWidth <= innerWidth + 1 ? [] :
    [...document.body.querySelectorAll('*')].filter(e => e.getBoundingClientRect().right > innerWidth + 1)
        .slice(0, 5).map(e => e.outerHTML.slice(0, 120))"""


def give_up(reason: str) -> None:
    """Where a browser and a built book are promised, their absence is an error; elsewhere it is a skipped test."""
    if os.environ.get("CI") == "true":
        pytest.fail(reason)
    pytest.skip(reason)


@pytest.fixture(scope="module")
def browser():
    if not PAGES:
        give_up(f"no built book in {SITE}: run `make book` first")
    path = next(filter(None, map(shutil.which, BROWSERS)), None)
    if path is None:
        give_up(f"no browser found, looked for {', '.join(BROWSERS)}: the built pages were not tested")
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=ARGUMENTS)
        yield browser
        browser.close()


class QuietHandler(SimpleHTTPRequestHandler):
    def log_message(self, *arguments):
        pass


@pytest.fixture(scope="module")
def origins():
    """Where the site is found: over HTTP and on disk."""
    with ThreadingHTTPServer(("127.0.0.1", 0), partial(QuietHandler, directory=SITE)) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield {"http": f"http://127.0.0.1:{server.server_port}/", "file": f"{SITE.as_uri()}/"}
        server.shutdown()
        thread.join()


@pytest.mark.parametrize("scheme", ["http", "file"])
@pytest.mark.parametrize("name", PAGES or ["(no built book)"])
def test_page_works_offline_and_fits_a_phone(browser, origins, name, scheme):
    origin, problems = origins[scheme], []
    inside = (origin, "data:", "blob:")
    page = browser.new_page(viewport={"width": 1280, "height": 900})
    page.on("request", lambda r: r.url.startswith(inside) or problems.append(f"request leaves the site: {r.url}"))
    page.on("requestfailed", lambda r: problems.append(f"request failed: {r.url} ({r.failure})"))
    page.on("response", lambda r: r.status >= 400 and problems.append(f"status {r.status}: {r.url}"))
    page.on("pageerror", lambda e: problems.append(f"page error: {e}"))
    page.on("console", lambda m: m.type == "error" and problems.append(f"console error: {m.text}"))
    try:
        page.goto(origin + name)
        page.wait_for_selector("h1:visible")  # the front page sends the reader on, so this may be one page later
        page.wait_for_load_state("networkidle")
        page.evaluate(TYPESET)

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
