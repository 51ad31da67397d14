"""A secret that an error would quote shows up nowhere: not in Dagster's events, the audit DB or what apply answers."""

from __future__ import annotations

import json
import sqlite3

from hakiri_dagster.audit.database import SQLITE_FILE
from tests.integration.orchestration.conftest import ShopProject

SECRET = "tenant-4711-exports"


def test_a_secret_within_a_path_is_masked_wherever_an_error_ends(shop: ShopProject) -> None:
    shop.env["EXPORT_DIR"] = SECRET
    shop.manifest(
        {
            "id": "shop",
            "secrets": ["EXPORT_DIR"],
            "source": {"connector": "files", "config": {"path": "data", "format": "csv"}},
            "tables": [{"name": "orders", "path": "data/${EXPORT_DIR}/"}],
        }
    )
    shop.file(f"data/{SECRET}/a.csv", "id,id\n1,2\n")
    shop.file(f"data/{SECRET}/b.csv", "id\n1\n")
    told = shop.apply()
    assert "a.csv: the header names `id` more than once" in told["orders"]["error"]
    events = [str(e) for run in shop.instance.get_run_records() for e in shop.instance.all_logs(run.dagster_run.run_id)]
    assert any("more than once" in event for event in events)
    with sqlite3.connect(shop.root / ".hakiri" / SQLITE_FILE) as audit:
        errors = [e for (e,) in audit.execute("SELECT error_msg FROM pipeline_chunks WHERE error_msg IS NOT NULL")]
        errors += [e for (e,) in audit.execute("SELECT error_msg FROM pipeline_run")]
    assert len(errors) == 2
    for text in (json.dumps(told), *events, *errors):
        assert SECRET not in text, text
