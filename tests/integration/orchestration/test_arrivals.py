"""Files that arrive start their pipeline once, when they are complete."""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import dagster as dg
import pytest

from hakiri_dagster.engine.process_identity import ProcessIdentity, is_dead
from hakiri_dagster.orchestration.killed_runs import MOST_KILLED
from hakiri_dagster.orchestration.names import FILE_ARRIVALS
from hakiri_dagster.orchestration.resources import OpenProject
from tests.integration.orchestration.conftest import ShopProject
from tests.integration.orchestration.daemon import Daemon

LONG_AGO = 3600


@pytest.fixture
def shop(shop: ShopProject) -> Iterator[ShopProject]:
    with dg.instance_for_test() as instance:
        yield replace(shop, instance=instance)


def declare(shop: ShopProject, **pipeline: Any) -> None:
    shop.manifest(
        {
            "id": "shop",
            "triggers": [{"type": "files", "settle": "60s"}],
            "source": {"connector": "files", "config": {"path": "data", "format": "csv"}},
            "tables": ["orders"],
            "load": {"mode": "append"},
        }
        | pipeline
    )


def arrive(shop: ShopProject, *names: str, text: str = "1", seconds_ago: float = LONG_AGO) -> None:
    for name in names:
        path = shop.file(f"data/orders/{name}.csv", f"order_id\n{name}{text}\n")
        os.utime(path, (time.time() - seconds_ago,) * 2)


class Watcher:
    """The sensor, tick after tick, with what it remembers."""

    def __init__(self, shop: ShopProject) -> None:
        self.daemon = Daemon(shop)
        self._cursor: str | None = None

    def tick(self) -> Any:
        data = self.daemon.sensor(FILE_ARRIVALS, self._cursor)
        self._cursor = data.cursor
        return data

    def started(self) -> list[str]:
        """The first letters of the files of which the runs begin."""
        requests: Sequence[dg.RunRequest] = self.tick().run_requests
        return [
            (request.partition_key or request.tags["dagster/asset_partition_range_start"])[0] for request in requests
        ]


def test_what_arrives_is_started_once(shop: ShopProject) -> None:
    declare(shop)
    arrive(shop, "a")
    watcher = Watcher(shop)
    (request,) = watcher.tick().run_requests
    assert watcher.tick().run_requests == []
    watcher.daemon.run([request])
    assert watcher.tick().skip_message == "no file has arrived"
    arrive(shop, "a", text="2", seconds_ago=LONG_AGO / 2)
    arrive(shop, "b")
    watcher.daemon.run(watcher.tick().run_requests)
    assert watcher.tick().skip_message == "no file has arrived"
    assert shop.column("orders", "order_id") == ["a2", "b1"]


def test_a_file_that_may_still_be_written_waits_and_the_others_do_not(shop: ShopProject) -> None:
    declare(shop)
    arrive(shop, "a")
    arrive(shop, "b", seconds_ago=0)
    watcher = Watcher(shop)
    (request,) = watcher.tick().run_requests
    assert (request.partition_key or "both")[0] == "a"
    assert watcher.started() == []
    arrive(shop, "b")
    (request,) = watcher.tick().run_requests
    assert request.tags["dagster/asset_partition_range_end"][0] == "b"


def test_a_table_that_is_loaded_whole_waits_until_all_of_its_files_are_complete(shop: ShopProject) -> None:
    declare(shop, load={"mode": "truncate"})
    arrive(shop, "a")
    arrive(shop, "b", seconds_ago=0)
    watcher = Watcher(shop)
    assert watcher.tick().skip_message == "shop/orders: 1 file(s) may still be written"
    arrive(shop, "b")
    assert watcher.started() == ["f"]


def test_files_that_arrive_while_a_run_is_queued_are_started_after_it(shop: ShopProject) -> None:
    declare(shop)
    arrive(shop, "a")
    watcher = Watcher(shop)
    (request,) = watcher.tick().run_requests
    queued = watcher.daemon.queue(request)
    arrive(shop, "b")
    assert watcher.tick().skip_message == f"orders: run {queued[:8]} of it is queued or at work"
    shop.instance.delete_run(queued)
    assert watcher.started() == ["a"]


def test_what_fails_is_tried_again_with_the_next_file_and_not_before(shop: ShopProject) -> None:
    declare(
        shop, load={"mode": "append", "bad_rows": "abort"}, tables=[{"name": "orders", "columns": {"order_id": "date"}}]
    )
    arrive(shop, "a")
    watcher = Watcher(shop)
    watcher.daemon.run(watcher.tick().run_requests)
    assert [watcher.started() for _ in range(2)] == [[], []]
    shop.file("data/orders/b.csv", "order_id\n2024-01-01\n")
    os.utime(shop.root / "data/orders/b.csv", (1_700_000_000,) * 2)
    assert watcher.started() == ["a"]


def test_what_a_killed_run_was_to_load_is_started_again_but_not_for_ever(shop: ShopProject) -> None:
    declare(shop)
    arrive(shop, "a")
    watcher = Watcher(shop)
    for _ in range(MOST_KILLED):
        (request,) = watcher.tick().run_requests
        run = shop.instance.get_run_by_id(watcher.daemon.queue(request))
        assert run is not None
        shop.instance.report_run_failed(run, "its process was killed")
    assert [watcher.started() for _ in range(2)] == [[], []]
    arrive(shop, "b")
    assert watcher.started() == ["a"]


def test_a_chunk_that_was_taken_back_from_a_killed_run_is_started_again(shop: ShopProject) -> None:
    declare(shop)
    arrive(shop, "a")
    watcher = Watcher(shop)
    (request,) = watcher.tick().run_requests
    killed = shop.instance.get_run_by_id(watcher.daemon.queue(request))
    assert killed is not None
    with shop.runtime() as runtime:
        survey = runtime.survey(runtime.project.tables[0])
        holder = str(replace(ProcessIdentity.current(), pid=2**22 + 1))
        runtime.audit.chunks.claim(
            "shop", "orders", survey.due.slices, holder=holder, run_id="r", ttl_seconds=600, holder_is_dead=is_dead
        )
        shop.instance.report_run_failed(killed, "its process was killed")
        assert OpenProject(runtime).sweep_leases().failures == ()
        assert [state.status for state in runtime.audit.chunks.states("shop", "orders")] == ["failed"]
    (again,) = watcher.tick().run_requests
    watcher.daemon.run([again])
    assert shop.column("orders", "order_id") == ["a1"]
    assert watcher.started() == []


def test_runs_that_end_without_having_tried_are_not_started_for_ever(shop: ShopProject) -> None:
    """They were canceled, or refused: the chunk is as pending as before."""
    declare(shop)
    arrive(shop, "a")
    watcher = Watcher(shop)
    assert watcher.started() == ["a"]
    told = watcher.tick()
    assert told.run_requests == []
    assert told.skip_message == "shop/orders: 1 chunk(s) were started before, and are still to be loaded"


def test_a_folder_that_has_gone_is_told_and_an_alert_and_does_no_harm_to_others(shop: ShopProject) -> None:
    declare(shop, tables=["orders", {"name": "visits", "path": "data/visits/*.csv"}])
    arrive(shop, "a")
    (shop.root / "data" / "visits").mkdir()
    watcher = Watcher(shop)
    assert watcher.started() == ["a"]
    shutil.rmtree(shop.root / "data" / "visits")
    shop.file("data/orders/b.csv", "order_id\nb\n")
    os.utime(shop.root / "data/orders/b.csv", (1_700_000_000,) * 2)
    (request,) = watcher.tick().run_requests
    assert request.tags["dagster/asset_partition_range_end"][0] == "b"
    for _ in range(2):
        assert "data/visits/*.csv matches no files" in watcher.tick().skip_message
    with shop.runtime() as runtime:
        (alert,) = runtime.audit.alerts.newest()
    assert (alert.kind, alert.table, alert.times) == ("trigger_failed", "visits", 1)
    assert "matches no files" in alert.message


def test_an_empty_folder_is_waited_at(shop: ShopProject) -> None:
    declare(shop)
    (shop.root / "data" / "orders").mkdir(parents=True)
    watcher = Watcher(shop)
    assert watcher.tick().skip_message in (
        "no file has arrived",
        f"shop/orders: {shop.root}/data/orders holds no files",
    )
    arrive(shop, "a")
    assert Watcher(shop).started() == ["a"]
