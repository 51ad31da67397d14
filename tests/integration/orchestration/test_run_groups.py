"""Retries in the user interface: runs of one group, of which each spares what an earlier one has published."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import dagster as dg
import pytest

from hakiri_dagster.definitions import project_definitions
from hakiri_dagster.destinations.contract import LedgerEntry
from hakiri_dagster.destinations.postgres.loading import OpenLoad
from hakiri_dagster.errors import DestinationError
from hakiri_dagster.manifest.project import load_project
from hakiri_dagster.orchestration.names import DUE_ONLY_TAG
from hakiri_dagster.pipeline.remembering import remember
from tests.integration.orchestration.conftest import ShopProject

Declare = Callable[..., ShopProject]

MONTHS = ("2024-01", "2024-02", "2024-03")


@pytest.fixture
def shop(csv_shop: Declare) -> ShopProject:
    shop = csv_shop(incremental="placed_at", load={"mode": "append"})
    lines = "".join(f"{number},{month}-05\n" for number, month in enumerate(MONTHS))
    shop.file("data/orders.csv", f"order_id,placed_at\n{lines}")
    with shop.runtime() as runtime:
        (table,) = runtime.project.tables
        survey = runtime.survey(table)
        remember(runtime.audit, survey, survey.due)
    return shop


@pytest.fixture
def refused(monkeypatch: pytest.MonkeyPatch) -> set[str]:
    """Chunks that the target refuses."""
    publish = OpenLoad.publish
    keys: set[str] = set()

    def refuse(load: OpenLoad, *told: Any) -> LedgerEntry:
        if load.load.slice.chunk.key in keys:
            load.undo()
            raise DestinationError("the target refused the rows")
        return publish(load, *told)

    monkeypatch.setattr(OpenLoad, "publish", refuse)
    return keys


def materialize(
    shop: ShopProject, first: str, last: str, root: str | None = None, parent: str | None = None, **more: str
) -> str:
    job = project_definitions(load_project(shop.root, env={}), shop.settings).resolve_implicit_global_asset_job_def()
    tags = {"dagster/asset_partition_range_start": first, "dagster/asset_partition_range_end": last} | more
    if root and parent:
        tags |= {"dagster/root_run_id": root, "dagster/parent_run_id": parent}
    return job.execute_in_process(instance=shop.instance, tags=tags, raise_on_error=False).run_id


def loads(shop: ShopProject) -> dict[str, int]:
    found = shop.rows("SELECT chunk_key, count(*) FROM hakiri.ledger GROUP BY 1")
    return {str(key): int(count) for key, count in found}


def test_a_fourth_try_loads_nothing_that_the_second_has_published(shop: ShopProject, refused: set[str]) -> None:
    refused.update(MONTHS[1:])
    root = materialize(shop, MONTHS[0], MONTHS[-1])
    assert loads(shop) == {"2024-01": 1}
    refused.remove("2024-02")
    second = materialize(shop, MONTHS[0], MONTHS[-1], root, root)
    third = materialize(shop, MONTHS[0], MONTHS[-1], root, second)
    refused.clear()
    materialize(shop, MONTHS[0], MONTHS[-1], root, third)
    assert loads(shop) == dict.fromkeys(MONTHS, 1)
    assert shop.instance.get_materialized_partitions(dg.AssetKey(["shop", "orders"])) == set(MONTHS)


def test_a_new_materialization_loads_again(shop: ShopProject) -> None:
    for _ in range(2):
        materialize(shop, MONTHS[0], MONTHS[-1])
    assert loads(shop) == dict.fromkeys(MONTHS, 2)


def test_a_run_that_went_well_is_loaded_again_and_a_retry_of_that_goes_on_with_it(
    shop: ShopProject, refused: set[str]
) -> None:
    root = materialize(shop, MONTHS[0], MONTHS[-1])
    refused.add(MONTHS[-1])
    second = materialize(shop, MONTHS[0], MONTHS[-1], root, root)
    assert loads(shop) == {"2024-01": 2, "2024-02": 2, "2024-03": 1}
    refused.clear()
    materialize(shop, MONTHS[0], MONTHS[-1], root, second)
    assert loads(shop) == dict.fromkeys(MONTHS, 2)
    assert shop.column("orders", "order_id") == [0, 1, 2]


def test_a_run_of_a_tick_that_went_well_is_loaded_again_by_who_executes_it_again(
    shop: ShopProject, refused: set[str]
) -> None:
    """Dagster gives it the tags of the first, with that of a tick: only what is due."""
    root = materialize(shop, MONTHS[0], MONTHS[-1], **{DUE_ONLY_TAG: "true"})
    refused.add(MONTHS[-1])
    second = materialize(shop, MONTHS[0], MONTHS[-1], root, root, **{DUE_ONLY_TAG: "true"})
    assert loads(shop) == {"2024-01": 2, "2024-02": 2, "2024-03": 1}
    refused.clear()
    materialize(shop, MONTHS[0], MONTHS[-1], root, second, **{DUE_ONLY_TAG: "true"})
    assert loads(shop) == dict.fromkeys(MONTHS, 2)


def test_a_run_of_a_tick_that_was_terminated_loads_the_rest_when_it_is_executed_again(
    shop: ShopProject, refused: set[str]
) -> None:
    refused.update(MONTHS[1:])
    root = materialize(shop, MONTHS[0], MONTHS[-1], **{DUE_ONLY_TAG: "true"})
    (first,) = shop.instance.get_runs()
    shop.instance.report_run_canceled(first)
    assert loads(shop) == {"2024-01": 1}
    refused.clear()
    materialize(shop, MONTHS[0], MONTHS[-1], root, root, **{DUE_ONLY_TAG: "true"})
    assert loads(shop) == dict.fromkeys(MONTHS, 1)
