"""What `hakiri status` tells is on each materialization, as the publish has left it."""

from __future__ import annotations

from typing import Any

import dagster as dg
import pytest

from hakiri_dagster.audit.progress import ProgressReader, TableProgress
from hakiri_dagster.errors import AuditUnavailable
from tests.integration.orchestration.conftest import ShopProject

MONTHS = 5


@pytest.fixture
def orders(shop: ShopProject) -> ShopProject:
    rows = "".join(f"{month},2024-{month:02}-05\n" for month in range(1, MONTHS + 1))
    shop.file("data/orders.csv", f"order_id,placed_at\n{rows}")
    shop.manifest(
        {
            "id": "shop",
            "source": {"connector": "files", "config": {"path": "data", "format": "csv"}},
            "tables": [{"name": "orders", "incremental": "placed_at", "load": {"mode": "append"}}],
        }
    )
    return shop


def told(orders: ShopProject) -> list[dict[str, Any]]:
    """Without the numbers that are times, in the order of the publishes."""
    records = orders.instance.fetch_materializations(dg.AssetKey(["shop", "orders"]), limit=10).records
    metadata = [one.asset_materialization.metadata for one in reversed(records) if one.asset_materialization]
    return [
        {name.removeprefix("status/"): value.value for name, value in one.items() if name.startswith("status/")}
        for one in metadata
    ]


def test_each_publish_tells_what_is_done_and_left(orders: ShopProject, monkeypatch: pytest.MonkeyPatch) -> None:
    counted: list[TableProgress] = []
    count = ProgressReader.__call__

    def counts(reader: ProgressReader, pipeline_id: str, table: str) -> TableProgress:
        counted.append(count(reader, pipeline_id, table))
        return counted[-1]

    monkeypatch.setattr(ProgressReader, "__call__", counts)
    assert orders.apply()["orders"]["error"] is None
    found = told(orders)
    assert [one["chunks_done"] for one in found] == list(range(1, MONTHS + 1))
    assert [one["chunks_running"] for one in found] == list(reversed(range(MONTHS)))
    assert {(one["chunks_pending"], one["chunks_failed"]) for one in found} == {(0, 0)}
    assert found[-1]["eta_seconds"] == 0
    assert all(one["rows_per_sec"] >= 0 and one["bytes_per_sec"] > 0 for one in found)
    assert len(counted) < MONTHS, "in between it is added up"


def test_an_audit_db_that_does_not_tell_spoils_no_load(orders: ShopProject, monkeypatch: pytest.MonkeyPatch) -> None:
    def gone(*_: object) -> TableProgress:
        raise AuditUnavailable("the audit DB does not answer")

    monkeypatch.setattr(ProgressReader, "__call__", gone)
    assert orders.apply()["orders"]["error"] is None
    assert told(orders) == [{}] * MONTHS
