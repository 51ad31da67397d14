"""The planner finds what is new in all sources, at the price of a glance, and starts what has a trigger for it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import dagster as dg
import pytest

from hakiri_dagster.orchestration.names import PLANNER
from hakiri_dagster.pipeline.runtime import Runtime
from tests.integration.orchestration.conftest import ShopProject
from tests.integration.orchestration.daemon import ORDERS, Daemon


@pytest.fixture
def shop(shop: ShopProject) -> Iterator[ShopProject]:
    with dg.instance_for_test() as instance:
        yield replace(shop, instance=instance)


def declare(shop: ShopProject, *triggers: dict[str, Any], at_most: int = 2) -> None:
    shop.manifest(
        {
            "id": "shop",
            "triggers": list(triggers),
            "source": {"connector": "files", "config": {"path": "data", "format": "csv"}},
            "tables": ["orders"],
            "backfill": {"max_chunks_per_tick": at_most},
            "load": {"mode": "append", "bad_rows": "abort"},
        }
    )


def arrive(shop: ShopProject, *names: str, text: str = "{name}") -> None:
    for name in names:
        shop.file(f"data/orders/{name}.csv", "order_id\n" + text.format(name=name) + "\n")


def asked_for(requests: Sequence[dg.RunRequest]) -> list[str]:
    """The files of which it asks for the first and the last."""
    ends = ("dagster/asset_partition_range_start", "dagster/asset_partition_range_end")
    return [(request.partition_key or request.tags[end])[0] for request in requests for end in ends]


def test_a_source_that_says_nothing_new_is_not_planned_again(
    shop: ShopProject, monkeypatch: pytest.MonkeyPatch
) -> None:
    declare(shop)
    arrive(shop, "a")
    daemon = Daemon(shop)
    assert daemon.look() == "shop/orders: 1 due, backfilling"
    surveys: list[str] = []
    survey = Runtime.survey
    monkeypatch.setattr(Runtime, "survey", lambda self, table: surveys.append(table.name) or survey(self, table))
    assert daemon.look() == "nothing new"
    assert surveys == []
    arrive(shop, "b")
    assert daemon.look() == "shop/orders: 2 due, backfilling"
    assert len(daemon.partitions()) == 2


def test_a_source_that_cannot_be_asked_is_told_and_asked_less_often(shop: ShopProject) -> None:
    declare(shop)
    daemon = Daemon(shop)
    assert "data/orders does not exist" in daemon.look()
    assert "data/orders does not exist" in daemon.look()
    with shop.runtime() as runtime:
        assert runtime.audit.looks.all().known["shop", "orders"].failures == 2
    arrive(shop, "a")
    daemon.look()
    with shop.runtime() as runtime:
        assert runtime.audit.looks.all().known["shop", "orders"].failures == 0


def test_what_somebody_wiped_is_shown_again_though_the_source_says_nothing_new(shop: ShopProject) -> None:
    declare(shop)
    arrive(shop, "a")
    shop.apply()
    daemon = Daemon(shop)
    daemon.look()
    assert len(shop.instance.get_materialized_partitions(ORDERS)) == 1
    shop.instance.wipe_assets([ORDERS])
    assert shop.instance.get_materialized_partitions(ORDERS) == set()
    daemon.look()
    assert len(shop.instance.get_materialized_partitions(ORDERS)) == 1


def test_it_starts_no_run_where_nobody_asked_for_that(shop: ShopProject) -> None:
    declare(shop)
    arrive(shop, "a")
    assert Daemon(shop).sensor(PLANNER).run_requests == []


class TestTrigger:
    def test_it_starts_what_is_due_tick_after_tick_until_all_is_loaded(self, shop: ShopProject) -> None:
        declare(shop, {"type": "source"})
        arrive(shop, "a", "b", "c")
        daemon = Daemon(shop)
        first = daemon.sensor(PLANNER).run_requests
        assert asked_for(first) == ["a", "b"]
        assert first[0].run_key is None  # Dagster would take it only once, for ever
        daemon.run(first)
        daemon.run(daemon.sensor(PLANNER).run_requests)
        assert shop.column("orders", "order_id") == ["a", "b", "c"]
        assert daemon.look() == "nothing new"
        arrive(shop, "d")
        assert asked_for(daemon.sensor(PLANNER).run_requests) == ["d", "d"]

    def test_it_starts_nothing_while_a_run_is_queued_and_goes_on_after_it(self, shop: ShopProject) -> None:
        declare(shop, {"type": "source"})
        arrive(shop, "a", "b", "c")
        daemon = Daemon(shop)
        (request,) = daemon.sensor(PLANNER).run_requests
        queued = daemon.queue(request)
        assert daemon.look() == daemon.look() == "shop/orders: 3 due, backfilling"
        shop.instance.delete_run(queued)
        assert asked_for(daemon.sensor(PLANNER).run_requests) == ["a", "b"]

    def test_what_a_killed_run_was_to_load_is_started_again(self, shop: ShopProject) -> None:
        declare(shop, {"type": "source"})
        arrive(shop, "a")
        daemon = Daemon(shop)
        first = daemon.sensor(PLANNER)
        run = shop.instance.get_run_by_id(daemon.queue(first.run_requests[0]))
        assert run is not None
        shop.instance.report_run_failed(run, "its process was killed")
        assert asked_for(daemon.sensor(PLANNER, first.cursor).run_requests) == ["a", "a"]

    def test_what_failed_is_tried_again_when_something_has_changed_and_not_before(self, shop: ShopProject) -> None:
        declare(shop, {"type": "source"})
        shop.execute("CREATE SCHEMA raw; CREATE TABLE raw.orders (order_id integer)")
        arrive(shop, "a", text="no number")
        daemon = Daemon(shop)
        daemon.run(daemon.sensor(PLANNER).run_requests)
        with shop.runtime() as runtime:
            assert [state.status for state in runtime.audit.chunks.states("shop", "orders")] == ["failed"]
        assert daemon.look() in ("nothing new", "shop/orders: 1 due, backfilling")
        assert daemon.look() == "nothing new"
        arrive(shop, "b", text="2")
        assert asked_for(daemon.sensor(PLANNER).run_requests) == ["a", "b"]
