"""The three knobs of cost control, as a load meets them."""

from __future__ import annotations

import json
from typing import Any

import dagster as dg

from hakiri_dagster.cli.explain import document, explain
from tests.integration.orchestration.conftest import ShopProject

SOURCE = {"connector": "files", "config": {"path": "data", "format": "csv"}}


def declare(shop: ShopProject, **backfill: Any) -> None:
    for name in ("a", "b"):
        shop.file(f"data/orders/{name}.csv", f"id,name\n1,{name}\n")
    shop.manifest(
        {"id": "shop", "source": SOURCE, "tables": [{"name": "orders", "path": "data/orders/"}], "backfill": backfill}
    )


def test_what_is_limited_is_told_before_rows_move(shop: ShopProject) -> None:
    declare(shop, destination_writes_per_sec=50, parallelism=3, rate_budget="60/min")
    with shop.runtime() as runtime:
        plan = runtime.plan(runtime.project.tables).plan
    assert explain(plan).splitlines()[:1] == [
        "shop: at most 50/s blocks of rows to the destination, of all workers together (destination_writes_per_sec)",
    ]
    told = json.loads(json.dumps(document(plan)))
    # files are read without requests
    assert told["pipelines"][0]["limits"] == {
        "rate_budget": None,
        "destination_writes_per_sec": 50,
    }


def test_every_block_that_is_written_is_counted(shop: ShopProject) -> None:
    declare(shop, destination_writes_per_sec=50)
    assert shop.apply()["orders"]["rows"] == 2
    records = shop.instance.fetch_materializations(dg.AssetKey(["shop", "orders"]), limit=10).records
    told = [record.asset_materialization for record in records]
    assert [one is not None and "wait_ms" in one.metadata for one in told] == [True, True]
    with shop.runtime() as runtime:
        (run,) = runtime.audit.runs.recent("shop", "orders")
        uses = runtime.audit.rate_budgets.uses(run.run_id, "shop", "orders")
    assert [use.writes for use in uses.values()] == [1, 1]
