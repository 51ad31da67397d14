"""The three knobs of cost control, as a load meets them."""

from __future__ import annotations

import json
from types import SimpleNamespace
from typing import Any

import dagster as dg
import pytest

from hakiri_dagster.audit.pass_places import PassOf
from hakiri_dagster.cli.explain import document, explain
from hakiri_dagster.engine.process_identity import ProcessIdentity
from hakiri_dagster.pipeline import pass_place
from tests.integration.orchestration.conftest import ShopProject

SOURCE = {"connector": "files", "config": {"path": "data", "format": "csv"}}


def declare(shop: ShopProject, **backfill: Any) -> None:
    shop.file("manifests/hakiri.toml", "[project]\nmax_parallel_chunks = 1\n")
    for name in ("a", "b"):
        shop.file(f"data/orders/{name}.csv", f"id,name\n1,{name}\n")
    shop.manifest(
        {"id": "shop", "source": SOURCE, "tables": [{"name": "orders", "path": "data/orders/"}], "backfill": backfill}
    )


def test_what_is_limited_is_told_before_rows_move(shop: ShopProject) -> None:
    declare(shop, destination_writes_per_sec=50, parallelism=3, rate_budget="60/min")
    with shop.runtime() as runtime:
        plan = runtime.plan(runtime.project.tables).plan
    assert explain(plan).splitlines()[:2] == [
        "at most 1 pass(es) at once, over all pipelines (max_parallel_chunks)",
        "shop: at most 50/s blocks of rows to the destination, of all workers together (destination_writes_per_sec)",
    ]
    told = json.loads(json.dumps(document(plan)))
    assert told["max_parallel_chunks"] == 1
    # files are read without requests
    assert told["pipelines"][0]["limits"] == {
        "rate_budget": None,
        "destination_writes_per_sec": 50,
        "parallelism": 3,
        "looks_every_seconds": None,
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


@pytest.mark.parametrize("parallelism", [1, 2])
def test_as_many_passes_of_a_pipeline_are_at_work_as_it_says(
    shop: ShopProject, monkeypatch: pytest.MonkeyPatch, parallelism: int
) -> None:
    declare(shop, parallelism=parallelism)
    shop.file("manifests/hakiri.toml", "[project]\nmax_parallel_chunks = 9\n")
    with shop.runtime() as runtime:
        places = runtime.audit.pass_places
        sibling = PassOf("shop", "customers", str(ProcessIdentity.current()), parallelism, 9)
        held = places.ask(sibling, lambda _: False, number=None, ttl_seconds=600)
        waited: list[float] = []

        def end_it(seconds: float) -> None:
            waited.append(seconds)
            places.give_back(held.number)

        monkeypatch.setattr(pass_place, "time", SimpleNamespace(sleep=end_it))
        assert shop.apply()["orders"]["rows"] == 2
    assert bool(waited) is (parallelism == 1)


def test_a_pass_waits_until_another_one_has_ended(shop: ShopProject, monkeypatch: pytest.MonkeyPatch) -> None:
    declare(shop)
    with shop.runtime() as runtime:
        places = runtime.audit.pass_places
        other = PassOf("other", "orders", str(ProcessIdentity.current()), 1, 1)
        held = places.ask(other, lambda _: False, number=None, ttl_seconds=600)
        slept: list[float] = []

        def end_it(seconds: float) -> None:
            slept.append(seconds)
            if len(slept) == 2:
                places.give_back(held.number)

        monkeypatch.setattr(pass_place, "time", SimpleNamespace(sleep=end_it))
        assert shop.apply()["orders"]["rows"] == 2
        assert len(slept) == 2
        assert places.ask(other, lambda _: False, number=None, ttl_seconds=600).begins  # it left its place
