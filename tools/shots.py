"""Pictures of the built book on a phone, light and dark, with the menu shut and open: `make shots`."""

from __future__ import annotations

import sys
from itertools import product

import browser

PAGES = ("book/index", "book/03-the-theorem", "book/reproduction")
SHOTS = browser.SITE.parent / "shots"


def main() -> None:
    path = browser.executable()
    if path is None:
        sys.exit(f"no browser found, looked for {', '.join(browser.NAMES)}")
    SHOTS.mkdir(parents=True, exist_ok=True)
    with browser.served() as address, browser.chromium(path) as chromium:
        for name, theme in product(PAGES, ("light", "dark")):
            phone = {"width": 390, "height": 844}
            context = chromium.new_context(viewport=phone, device_scale_factor=2, color_scheme=theme, has_touch=True)
            page = context.new_page()
            page.goto(f"{address}{name}.html")
            page.evaluate(browser.TYPESET)
            stem = f"{name.rpartition('/')[2]}-{theme}"
            page.screenshot(path=SHOTS / f"{stem}.png")
            page.locator(".primary-toggle:visible").tap()
            page.get_by_role("button", name="Close").wait_for()
            page.screenshot(path=SHOTS / f"{stem}-menu.png")
            context.close()
    print(f"The pictures are in {SHOTS}.")


if __name__ == "__main__":
    main()
