"""Takes the README's pictures again: `python docs/images/take.py PORT` while `hakiri serve` shows the demo."""

from __future__ import annotations

import sys
from pathlib import Path

from playwright.sync_api import sync_playwright

PICTURES = {
    "catalog": ("/assets", "tea-shop / orders"),
    "partitions": ("/assets/tea-shop/orders?view=partitions&partition=2026-03", "dagster/row_count"),
    "check": ("/assets/tea-shop/customers?view=checks", "rows_set_aside"),
}

with sync_playwright() as playwright:
    browser = playwright.chromium.launch(executable_path="/usr/bin/chromium", args=["--no-sandbox", "--disable-gpu"])
    page = browser.new_page(base_url=f"http://127.0.0.1:{sys.argv[1]}", viewport={"width": 1400, "height": 850})
    for name, (path, text) in PICTURES.items():
        page.goto(path, wait_until="networkidle")
        page.get_by_text(text).first.wait_for()
        page.screenshot(path=Path(__file__).with_name(f"{name}.png"))
    browser.close()
