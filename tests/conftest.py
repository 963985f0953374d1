"""What the browser tests share: a headless Chromium, and the built book from a server and from disk."""

from __future__ import annotations

import os
import shutil
import threading
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
SITE = ROOT / "_build" / "html"
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
