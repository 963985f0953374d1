"""The built book in a headless Chromium: what the browser tests and `make pdf` share."""

from __future__ import annotations

import os
import shutil
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
SITE = Path(os.environ.get("LAPBOOK_SITE", ROOT / "_build" / "html"))  # another build can be named for a look at it
NAMES = ("chromium", "chromium-browser", "google-chrome")
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


def pages() -> list[str]:
    """The pages of the built book, as paths within the site; empty where nothing is built."""
    return sorted(path.relative_to(SITE).as_posix() for path in SITE.rglob("*.html") if "_static" not in path.parts)


def executable() -> str | None:
    """The first browser that this machine has, or None."""
    return next(filter(None, map(shutil.which, NAMES)), None)


@contextmanager
def chromium(path: str) -> Iterator[Any]:
    """A headless browser, closed at the end."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=ARGUMENTS)
        yield browser
        browser.close()


class QuietHandler(SimpleHTTPRequestHandler):
    """A file server that does not report what it serves."""

    def log_message(self, *arguments: Any) -> None:
        """Say nothing."""


@contextmanager
def served() -> Iterator[str]:
    """The address of the built book on a server of this machine, stopped at the end."""
    with ThreadingHTTPServer(("127.0.0.1", 0), partial(QuietHandler, directory=SITE)) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}/"
        finally:
            server.shutdown()
            thread.join()
