"""What the browser tests share: a headless Chromium, and the built book from a server and from disk."""

from __future__ import annotations

import os

import browser as tools
import pytest

SITE = tools.SITE
PAGES = tools.pages()


def give_up(reason: str) -> None:
    """Where a browser and a built book are promised, their absence is an error; elsewhere it is a skipped test."""
    if os.environ.get("CI") == "true":
        pytest.fail(reason)
    pytest.skip(reason)


@pytest.fixture(scope="module")
def browser():
    if not PAGES:
        give_up(f"no built book in {SITE}: run `make book` first")
    path = tools.executable()
    if path is None:
        give_up(f"no browser found, looked for {', '.join(tools.NAMES)}: the built pages were not tested")
    with tools.chromium(path) as browser:
        yield browser


@pytest.fixture(scope="module")
def origins():
    """Where the site is found: over HTTP and on disk."""
    with tools.served() as address:
        yield {"http": address, "file": f"{SITE.as_uri()}/"}
