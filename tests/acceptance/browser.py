"""Debian's Chromium, driven by playwright; nothing is downloaded."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from playwright.sync_api import Page, sync_playwright

CHROMIUM = Path("/usr/bin/chromium")
SCREENSHOTS = Path(__file__).parent / "screenshots"
_QUIET = (
    "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
    "--disable-component-update", "--disable-sync",
)  # fmt: skip
_PATIENCE_MS = 30_000


@contextmanager
def opened_page(address: str) -> Iterator[Page]:
    if not CHROMIUM.is_file():
        raise AssertionError(f"{CHROMIUM} is missing, so the UI cannot be looked at: apt-get install chromium")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=list(_QUIET))
        page = browser.new_page(base_url=address, viewport={"width": 1400, "height": 850})
        page.set_default_timeout(_PATIENCE_MS)
        try:
            yield page
        finally:
            browser.close()


def visit(page: Page, path: str, *texts: str) -> None:
    """Waits for what is to be seen, never for time."""
    page.goto(path, wait_until="domcontentloaded")
    see(page, *texts)


def see(page: Page, *texts: str) -> None:
    for text in texts:
        page.get_by_text(text).first.wait_for()


def keep_screenshot(page: Page, name: str) -> None:
    SCREENSHOTS.mkdir(exist_ok=True)
    page.wait_for_load_state("networkidle")  # icons come last
    page.screenshot(path=SCREENSHOTS / f"{name}.png")
