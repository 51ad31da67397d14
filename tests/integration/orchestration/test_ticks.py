"""Ticks of schedules and sensors, and the runs that they ask for, as Dagster's daemon has them made."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import dagster as dg
import pytest

from hakiri_dagster.engine.process_identity import ProcessIdentity, is_dead
from hakiri_dagster.planning.phases import slas_of
from tests.integration.orchestration.conftest import ShopProject
from tests.integration.orchestration.daemon import NOW, ORDERS, Daemon

YEAR = [f"2024-{month:02d}" for month in range(1, 13)]
LATELY = [
    f"{(NOW.year * 12 + NOW.month - 1 - ago) // 12}-{(NOW.month - 1 - ago) % 12 + 1:02d}" for ago in range(6, -1, -1)
]
THIS_MONTH = LATELY[-1]


@pytest.fixture
def shop(shop: ShopProject) -> Iterator[ShopProject]:
    """With a storage that is opened anew by each tick, as Dagster's daemon has it."""
    with dg.instance_for_test() as instance:
        yield replace(shop, instance=instance)


def rows(*months: str) -> str:
    return "order_id,placed_at\n" + "".join(f"{m},{m}-03\n" if m else "nobody knows,\n" for m in months)


def declare(
    shop: ShopProject,
    *tables: dict[str, Any],
    at_most: int = 3,
    window: str | None = "1mo",
    path: str = "data/orders.csv",
    bad_rows: str = "quarantine",
) -> None:
    shop.manifest(
        {
            "id": "shop",
            "schedule": "every 15m",
            "source": {"connector": "files", "config": {"path": "data", "format": "csv"}},
            "tables": [{"name": "orders", "incremental": "placed_at", "path": path}, *tables],
            "backfill": {"max_chunks_per_tick": at_most} | ({"window": window} if window else {}),
            "load": {"mode": "append", "bad_rows": bad_rows},
        }
    )


def loaded(shop: ShopProject) -> list[str]:
    if shop.rows("SELECT to_regclass('hakiri.ledger')") == [(None,)]:
        return []
    return [str(key) for (key,) in shop.rows("SELECT chunk_key FROM hakiri.ledger ORDER BY load_id")]


class TestSchedule:
    def test_a_tick_asks_for_as_many_chunks_as_the_manifest_says_and_the_next_goes_on(self, shop: ShopProject) -> None:
        declare(shop)
        shop.file("data/orders.csv", rows(*YEAR[:5]))
        Daemon(shop).look()
        daemon = Daemon(shop)
        (first,) = daemon.tick().run_requests
        assert first.tags["dagster/asset_partition_range_start"] == "2024-01"
        assert first.tags["dagster/asset_partition_range_end"] == "2024-03"
        daemon.run([first])
        assert loaded(shop) == YEAR[:3]
        daemon.run(daemon.tick().run_requests)
        assert loaded(shop) == YEAR[:5]
        told = daemon.tick()
        assert (told.run_requests, told.skip_message) == ([], "nothing is due")

    def test_once_it_streams_a_tick_pulls_the_new_slice_of_the_open_window(self, shop: ShopProject) -> None:
        shop.execute(
            "CREATE TABLE public.orders AS"
            " SELECT n AS order_id, now() - n * interval '20 days' AS placed_at FROM generate_series(0, 3) n"
        )
        shop.manifest(
            {
                "id": "shop",
                "schedule": "every 15m",
                "source": {"connector": "postgres", "config": {"url": shop.url, "schema": "public"}},
                "tables": [{"name": "orders", "incremental": "placed_at"}],
                "load": {"mode": "append"},
            }
        )
        shop.apply()
        daemon = Daemon(shop)
        assert daemon.tick().skip_message == "nothing is due"
        shop.execute("INSERT INTO public.orders VALUES (4, now())")
        (request,) = daemon.tick().run_requests
        assert (request.partition_key, request.tags["hakiri/phase"]) == (THIS_MONTH, "streaming")
        with shop.runtime() as runtime:
            slas = slas_of(runtime.project.pipelines[0])
            told = runtime.audit.status("shop", slas=slas)
        assert (told["phase"], told["chunks"]["pending"]) == ("streaming", 1)

    def test_ticks_never_pile_up_behind_a_run_that_is_queued(self, shop: ShopProject) -> None:
        """A daemon that was down for hours makes up for several ticks, one after the other."""
        declare(shop, {"name": "visits", "incremental": "placed_at"})
        shop.file("data/orders.csv", rows(*YEAR[:5]))
        shop.file("data/visits.csv", rows("2024-01"))
        Daemon(shop).look()
        daemon = Daemon(shop)
        orders, visits = daemon.tick().run_requests
        assert orders.tags["hakiri/phase"] == "backfilling"
        queued = daemon.queue(orders)
        for _ in range(3):
            told = daemon.tick()
            assert [r.asset_selection[0].path[-1] for r in told.run_requests] == ["visits"]
        daemon.run([visits])
        told = daemon.tick()
        assert told.run_requests == []
        assert told.skip_message == f"orders: run {queued[:8]} of it is queued or at work"
        shop.instance.delete_run(queued)
        (again,) = daemon.tick().run_requests
        assert again.tags == orders.tags | {"hakiri/occasion": again.tags["hakiri/occasion"]}

    def test_chunks_that_somebody_elsewhere_works_on_are_left_to_him(self, shop: ShopProject) -> None:
        declare(shop, at_most=2)
        shop.file("data/orders.csv", rows(*YEAR[:4]))
        Daemon(shop).look()
        with shop.runtime() as runtime:
            (table,) = runtime.project.tables
            held = runtime.survey(table).due.slices[:3]
            elsewhere = str(replace(ProcessIdentity.current(), host="elsewhere"))
            runtime.audit.chunks.claim(
                "shop", "orders", held, holder=elsewhere, run_id="r", ttl_seconds=60, holder_is_dead=is_dead
            )
        (request,) = Daemon(shop).tick().run_requests
        assert request.partition_key == "2024-04"

    def test_a_tick_asks_for_chunks_that_lie_apart_and_for_several_tables_at_once(self, shop: ShopProject) -> None:
        declare(shop, {"name": "visits", "incremental": "placed_at"}, path="data/orders/")
        shop.file("data/orders/a.csv", rows("2024-01", "2024-03"))
        shop.file("data/visits.csv", rows("2024-01"))
        shop.apply()
        for month in ("2024-01", "2024-03"):
            shop.file(f"data/orders/{month}.csv", rows(month))
        shop.file("data/visits.csv", rows("2024-01", "2024-01"))
        requests = Daemon(shop).tick().run_requests
        assert [(r.asset_selection[0].path[-1], r.partition_key) for r in requests] == [
            ("orders", "2024-01"),
            ("orders", "2024-03"),
            ("visits", "2024-01"),
        ]

    def test_windows_that_always_fail_hold_up_nothing_and_are_tried_in_turn(self, shop: ShopProject) -> None:
        declare(shop, at_most=2, bad_rows="abort")
        shop.execute(
            "CREATE SCHEMA raw;"
            "CREATE TABLE raw.orders (order_id text UNIQUE DEFERRABLE INITIALLY DEFERRED, placed_at timestamp)"
        )
        broken, sound = YEAR[:3], YEAR[3:6]
        shop.file("data/orders.csv", rows(*broken, *broken, *sound))
        Daemon(shop).look()
        daemon = Daemon(shop)
        for _ in range(4):
            daemon.run(daemon.tick().run_requests)
        assert loaded(shop) == sound
        for _ in range(2):
            daemon.run(daemon.tick().run_requests)
        with shop.runtime() as runtime:
            tries = {s.key: s.attempts for s in runtime.audit.chunks.states("shop", "orders") if s.status == "failed"}
        assert set(tries) == set(broken)
        assert max(tries.values()) - min(tries.values()) <= 1

    def test_a_project_that_was_never_planned_is_loaded_in_as_small_steps(self, shop: ShopProject) -> None:
        """Under a plain `dagster dev`, which knows of the open window only, until somebody reloads the project."""
        declare(shop, at_most=3)
        shop.file("data/orders.csv", rows(*LATELY, ""))
        daemon = Daemon(shop)
        most = []
        for _ in range(3):
            before = loaded(shop)
            daemon.run(daemon.tick().run_requests)
            most.append(len([key for key in loaded(shop)[len(before) :] if key != "null"]))
        assert max(most) == 3
        assert sorted(loaded(shop)) == [*LATELY, "null"]
        assert daemon.tick().skip_message == "nothing is due"
        assert shop.instance.get_materialized_partitions(ORDERS) == set(LATELY)

    def test_somebody_who_materializes_the_open_window_gets_no_other(self, shop: ShopProject) -> None:
        declare(shop)
        shop.file("data/orders.csv", rows(*YEAR, THIS_MONTH, ""))
        Daemon(shop).run([dg.RunRequest(asset_selection=[ORDERS], partition_key=THIS_MONTH)])
        assert sorted(loaded(shop)) == [THIS_MONTH, "null"]

    def test_a_table_that_cannot_be_asked_does_not_stop_the_others(self, shop: ShopProject) -> None:
        declare(shop, {"name": "missing", "incremental": "placed_at"})
        shop.file("data/orders.csv", rows(THIS_MONTH))
        daemon = Daemon(shop)
        (request,) = daemon.tick().run_requests
        assert request.asset_selection == [ORDERS]
        daemon.run([request])
        with pytest.raises(dg.DagsterUserCodeExecutionError) as told:
            daemon.tick()
        assert "shop/missing" in str(told.value.user_exception)

    def test_a_cursor_that_was_taken_for_another_kind_is_told_with_the_cure(self, shop: ShopProject) -> None:
        declare(shop, window=None)
        shop.file("data/orders.csv", "order_id,placed_at\na,1\nb,2\n")
        daemon = Daemon(shop)
        with pytest.raises(dg.DagsterUserCodeExecutionError) as told:
            daemon.tick()
        assert "took its cursor for another kind" in str(told.value.user_exception)
        assert "`hakiri serve` does so by itself" in str(told.value.user_exception)
        reloaded = Daemon(shop)
        reloaded.run(reloaded.tick().run_requests)
        assert shop.column("orders", "order_id") == ["a", "b"]


class TestSensor:
    def test_it_adds_what_is_new_to_the_plan_and_to_the_partitions(self, shop: ShopProject) -> None:
        declare(shop)
        shop.file("data/orders.csv", rows(*YEAR))
        daemon = Daemon(shop)
        assert daemon.partitions() == [THIS_MONTH]
        assert daemon.look() == "shop/orders: 12 due, backfilling"
        assert daemon.partitions()[:12] == YEAR
        with shop.runtime() as runtime:
            states = {state.key: state.status for state in runtime.audit.chunks.states("shop", "orders")}
        assert states == dict.fromkeys(YEAR, "pending")

    def test_it_adds_keys_that_no_calendar_tells(self, shop: ShopProject) -> None:
        declare(shop, window="30d")
        shop.file("data/orders.csv", rows(*YEAR[:3]))
        daemon = Daemon(shop)
        assert daemon.partitions() == []
        daemon.look()
        assert len(daemon.partitions()) == 3

    def test_a_table_that_cannot_be_asked_is_told_beside_the_others(self, shop: ShopProject) -> None:
        declare(shop, {"name": "missing"})
        shop.file("data/orders.csv", rows(*YEAR))
        told = Daemon(shop).look()
        assert "shop/orders: 12 due, backfilling" in told
        assert "shop/missing: " in told


def test_a_tick_with_nothing_due_starts_a_run_for_the_hooks_that_are_owed(shop: ShopProject) -> None:
    shop.manifest(
        {
            "id": "shop",
            "source": {"connector": "files", "config": {"path": "data"}},
            "schedule": "every 15m",
            "tables": ["orders"],
            "load": {"post_hook": {"type": "refresh_mat_view", "view": "raw.how_many"}},
        }
    )
    shop.file("data/orders.csv", rows("2024-01"))
    daemon = Daemon(shop)
    assert "failed" in shop.apply()["orders"]["error"]
    (request,) = daemon.tick().run_requests
    shop.execute("CREATE MATERIALIZED VIEW raw.how_many AS SELECT count(*) FROM raw.orders")
    daemon.run([request])
    assert shop.rows("SELECT count(*) FROM hakiri.owed_hook") == [(0,)]
    assert shop.rows("SELECT count(*) FROM hakiri.ledger") == [(1,)]
    assert daemon.tick().run_requests == []
