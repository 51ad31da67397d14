"""The manifest of docs/rest.md, loaded from an API that is as the page says."""

from __future__ import annotations

import tomllib
from dataclasses import replace
from datetime import UTC, datetime, timedelta

from tests.integration.connectors.rest.api_server import Asked, Said, said, serving
from tests.integration.orchestration.conftest import ShopProject
from tests.unit.docs.pages import ROOT, blocks

SHOWN = next(block.text for block in blocks(ROOT / "docs" / "rest.md") if block.language == "toml")
BASE = "https://api.tracker.example/v1"
_NOW = datetime.now(UTC)
ISSUES = [
    {"id": n, "updated_at": f"{_NOW - timedelta(days=70 - 10 * n):%Y-%m-%dT08:00:00Z}", "user": {"login": f"u{n}"}}
    for n in range(1, 7)
]


def tracker(asked: Asked) -> Said:
    assert asked.headers["Authorization"] == "Bearer token-of-the-page"
    if asked.path == "/v1/labels":
        return said({"data": {"labels": [{"name": "bug"}, {"name": "later"}]}})
    assert asked.path == "/v1/projects/shop/issues"
    assert (asked.params["sort"], asked.params["direction"], asked.params["per_page"]) == ("updated", "asc", "100")
    start = int(asked.params.get("after", 0))
    rows = [row for row in ISSUES if row["updated_at"] >= asked.params.get("since", "")]
    kept = "".join(f"{name}={value}&" for name, value in asked.params.items() if name != "after")
    more = {"Link": f'<{asked.path}?{kept}after={start + 2}>; rel="next"'} if start + 2 < len(rows) else {}
    return said(rows[start : start + 2], **more)


def test_the_manifest_that_is_shown_loads_what_it_says(shop: ShopProject) -> None:
    shop.settings = replace(shop.settings, webhooks_to_loopback=True)
    shop.env = {"TRACKER_TOKEN": "token-of-the-page", "HAKIRI_WEBHOOKS_TO_LOOPBACK": "true"}
    with serving(tracker) as api:
        assert BASE in SHOWN
        shop.manifest(tomllib.loads(SHOWN.replace(BASE, f"{api.url}/v1")))
        result = shop.apply()
    assert {name: (table["error"], table["rows"]) for name, table in result.items()} == {
        "issues": (None, 6),
        "labels": (None, 2),
    }
    assert result["issues"]["chunks"]["done"] >= 3
    assert shop.column("labels", "name") == ["bug", "later"]
    assert shop.column("issues", "user_login") == [f"u{n}" for n in range(1, 7)]
