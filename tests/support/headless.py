"""A browser without a window, for the tests of the page and for its picture."""

from __future__ import annotations

import contextlib
import shutil
from collections.abc import Iterator

from playwright.sync_api import Browser, sync_playwright

BROWSERS = "chromium", "chromium-browser", "google-chrome"

#: Without these Chromium would ask its maker for updates; and it has no sandbox for root.
ARGUMENTS = ["--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-sync"]
ARGUMENTS += ["--disable-background-networking", "--disable-component-update"]


def find_browser() -> str | None:
    """The program, if there is one."""
    return next(filter(None, map(shutil.which, BROWSERS)), None)


@contextlib.contextmanager
def browser() -> Iterator[Browser]:
    """Chromium with a new profile."""
    with sync_playwright() as playwright:
        running = playwright.chromium.launch(executable_path=find_browser(), args=ARGUMENTS)
        yield running
        running.close()
