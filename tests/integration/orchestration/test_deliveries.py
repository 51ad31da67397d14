"""What has reached a pipeline's triggers, and the runs that the sensor asks for, as Dagster's daemon has them made."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import replace
from datetime import timedelta
from threading import Event
from typing import Any

import boto3
import dagster as dg
import pytest
from moto.server import ThreadedMotoServer
from sqlalchemy import update

from hakiri_dagster.audit.claims import Claim
from hakiri_dagster.audit.database import open_audit
from hakiri_dagster.audit.deliveries import Arrival, Delivery, DeliveryStore, OpenWork
from hakiri_dagster.audit.schema import DELIVERIES
from hakiri_dagster.definitions import project_definitions
from hakiri_dagster.engine.process_identity import ProcessIdentity
from hakiri_dagster.manifest.project import load_project
from hakiri_dagster.manifest.tables import Table
from hakiri_dagster.orchestration import delivery_sensor, dispatching
from hakiri_dagster.orchestration.killed_runs import MOST_KILLED, was_stopped
from hakiri_dagster.orchestration.names import DELIVERIES_TAG
from hakiri_dagster.pipeline.remembering import remember
from tests.integration.connectors.rest.api_server import Asked, Said, said
from tests.integration.connectors.rest.api_server import serving as serving_api
from tests.integration.orchestration.conftest import ShopProject
from tests.integration.orchestration.test_rest import ago
from tests.integration.orchestration.test_rest_parts import LINUX, PYTHON, Forge

ENV = {"HOOK_SECRET": "a-secret-of-some-length"}
RETURNS = {"name": "returns", "path": "data/orders/"}
YEAR = [f"2024-{month:02d}" for month in range(1, 13)]


@pytest.fixture
def shop(shop: ShopProject, monkeypatch: pytest.MonkeyPatch) -> Iterator[ShopProject]:
    monkeypatch.setenv("HOOK_SECRET", ENV["HOOK_SECRET"])  # runs load the project anew
    with dg.instance_for_test() as instance:
        yield replace(shop, instance=instance, env=ENV)


def declare(shop: ShopProject, *tables: dict[str, Any], pipeline_id: str = "shop", **more: Any) -> None:
    shop.manifest(
        {
            "id": pipeline_id,
            "source": {"connector": "files", "config": {"path": "data", "format": "csv"}},
            "tables": list(tables) or [{"name": "orders", "path": "data/orders/"}],
            "triggers": [{"type": "webhook", "secret": "${HOOK_SECRET}"}],
            "load": {"mode": "append"},
        }
        | more
    )


def orders(shop: ShopProject, *months: str) -> None:
    """A file each."""
    for month in months:
        shop.file(f"data/orders/{month}.csv", f"order_id,placed_at\n{month},{month}-03\n")


def arrive(shop: ShopProject, *ids: str, pipeline_id: str = "shop") -> None:
    with open_audit(None, shop.root / ".hakiri") as audit:
        audit.deliveries.store([Arrival(pipeline_id, "webhook", one, "0" * 64, 2) for one in ids])


def deliveries(shop: ShopProject, pipeline_id: str = "shop") -> list[Delivery]:
    with open_audit(None, shop.root / ".hakiri") as audit:
        return list(reversed(audit.deliveries.newest([pipeline_id], 100)))


def states(shop: ShopProject, pipeline_id: str = "shop") -> list[tuple[str, str]]:
    return [(found.delivery_id, found.state) for found in deliveries(shop, pipeline_id)]


def hold(shop: ShopProject) -> Claim:
    """As another run that lives."""
    with shop.runtime() as runtime:
        (table,) = runtime.project.tables
        survey = runtime.survey(table)
        remember(runtime.audit, survey, survey.due)
        me = str(ProcessIdentity.current())
        claims = runtime.audit.chunks.claim(
            "shop", table.name, survey.due.slices, holder=me, run_id="r", ttl_seconds=600, holder_is_dead=lambda _: None
        )
        return claims.claimed[0]


def let_go(shop: ShopProject, claim: Claim) -> None:
    with open_audit(None, shop.root / ".hakiri") as audit:
        audit.chunks.release([claim])
    make_due(shop)


def make_due(shop: ShopProject) -> None:
    """What was put off is looked at in the next tick."""
    with open_audit(None, shop.root / ".hakiri") as audit:
        audit._transactions.write(lambda c: c.execute(update(DELIVERIES).values(look_after=DELIVERIES.c.received_at)))


class Daemon:
    def __init__(self, shop: ShopProject) -> None:
        self._shop = shop
        self._loaded = self._load()

    def tick(self, sensor: str = "_deliveries") -> Any:
        with dg.build_sensor_context(
            instance=self._shop.instance,
            instance_ref=self._shop.instance.get_ref(),
            repository_def=self._loaded.get_repository_def(),
        ) as context:
            return self._loaded.resolve_sensor_def(sensor).evaluate_tick(context)

    def asked(self) -> list[dg.RunRequest]:
        return list(self.tick().run_requests)

    def says(self) -> str:
        told = self.tick()
        assert not told.run_requests
        return str(told.skip_message)

    def run(self, requests: Sequence[dg.RunRequest]) -> list[dg.ExecuteInProcessResult]:
        job = self._load().resolve_implicit_global_asset_job_def()
        return [
            job.execute_in_process(
                instance=self._shop.instance,
                asset_selection=list(request.asset_selection or ()),
                partition_key=request.partition_key,
                tags=dict(request.tags),
                raise_on_error=False,
            )
            for request in requests
        ]

    def pretend(
        self, requests: Sequence[dg.RunRequest], status: dg.DagsterRunStatus = dg.DagsterRunStatus.SUCCESS
    ) -> list[dg.DagsterRun]:
        """Runs as Dagster has them, without anything loaded."""
        return [
            self._shop.instance.add_run(
                dg.DagsterRun(
                    "__ASSET_JOB",
                    asset_selection=frozenset(request.asset_selection or ()),
                    tags={**request.tags, "dagster/partition": request.partition_key or ""},
                    status=status,
                )
            )
            for request in requests
        ]

    def _load(self) -> dg.Definitions:
        return project_definitions(load_project(self._shop.root, env=ENV), self._shop.settings)


@pytest.fixture
def daemon(shop: ShopProject) -> Daemon:
    declare(shop)
    orders(shop, YEAR[0])
    return Daemon(shop)


def test_a_project_without_triggers_has_no_such_sensor(shop: ShopProject) -> None:
    declare(shop, triggers=[])
    names = {sensor.name for sensor in Daemon(shop)._loaded.sensors or ()}
    assert "_deliveries" not in names


def test_what_waits_for_a_pipeline_is_served_by_one_run_and_recorded_with_it(shop: ShopProject, daemon: Daemon) -> None:
    arrive(shop, "a", "b")
    (request,) = daemon.asked()
    assert request.tags[DELIVERIES_TAG] == deliveries(shop)[0].batch
    (result,) = daemon.run([request])
    assert daemon.says() == "shop: served"
    assert states(shop) == [("a", "done"), ("b", "done")]
    assert {found.run_ids for found in deliveries(shop)} == {(result.run_id,)}
    assert shop.column("orders", "order_id") == [YEAR[0]]
    assert daemon.says() == "no delivery waits"
    arrive(shop, "c")
    assert daemon.says() == "shop: nothing was due"
    assert states(shop)[-1] == ("c", "done")


def test_what_comes_while_a_run_is_under_way_is_served_by_the_next(shop: ShopProject, daemon: Daemon) -> None:
    """That run may have read before it came."""
    arrive(shop, "a")
    requests = daemon.asked()
    arrive(shop, "b")
    (run,) = daemon.pretend(requests, dg.DagsterRunStatus.STARTED)
    assert daemon.says() == "shop: 1 run(s) under way"
    assert states(shop) == [("a", "started"), ("b", "pending")]
    shop.instance.report_run_canceled(run)
    assert "did not succeed" in daemon.says()
    (request,) = daemon.asked()
    assert states(shop) == [("a", "failed"), ("b", "started")]
    assert request.run_key != requests[0].run_key


def test_a_request_that_was_lost_is_made_again_as_the_same(shop: ShopProject, daemon: Daemon) -> None:
    """Dagster was killed between the tick and the run; with the same key it would start no second one either."""
    arrive(shop, "a")
    (lost,) = daemon.asked()
    (again,) = Daemon(shop).asked()
    assert (again.run_key, again.tags) == (lost.run_key, lost.tags)
    daemon.pretend([again])
    assert daemon.says() == "shop: served"


def test_a_tick_that_is_killed_before_it_asks_loses_nothing(
    shop: ShopProject, daemon: Daemon, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Killed(BaseException): ...

    def killed(*_args: object, **_named: object) -> None:
        raise Killed

    arrive(shop, "a")
    with monkeypatch.context() as patched:
        patched.setattr(dispatching, "tick_ranges", killed)
        with pytest.raises(Killed):
            daemon.tick()
    assert states(shop) == [("a", "started")]
    make_due(shop)
    daemon.pretend(daemon.asked())
    assert daemon.says() == "shop: served"


def test_history_is_worked_off_step_by_step_for_one_delivery(shop: ShopProject) -> None:
    declare(shop, backfill={"max_chunks_per_tick": 2})
    orders(shop, *YEAR[:3])
    daemon = Daemon(shop)
    arrive(shop, "a")
    rounds = []
    while requests := daemon.asked():
        rounds.append(daemon.run(requests))
    assert [len(results) for results in rounds] == [1, 1]
    assert shop.column("orders", "order_id") == YEAR[:3]
    assert states(shop) == [("a", "done")]
    assert len(deliveries(shop)[0].run_ids) == 2


def test_what_fails_is_tried_once_a_delivery_and_told(shop: ShopProject) -> None:
    declare(shop, row_level=[{"type": "not_null", "field": "placed_at", "on_fail": "abort"}])
    shop.file("data/orders/bad.csv", "order_id,placed_at\n1,\n")
    daemon = Daemon(shop)
    arrive(shop, "a")
    (result,) = daemon.run(daemon.asked())
    assert not result.success
    assert "1 of 1 run(s) did not succeed" in daemon.says()
    assert states(shop) == [("a", "failed")]
    assert daemon.says() == "no delivery waits"


def test_what_a_killed_run_was_to_load_is_asked_for_again_after_a_while(shop: ShopProject, daemon: Daemon) -> None:
    arrive(shop, "a")
    first = daemon.asked()
    daemon.pretend(first, dg.DagsterRunStatus.FAILURE)
    assert "looked at again in 30 s: 1 run(s) were stopped" in daemon.says()
    assert daemon.says() == "no delivery waits"
    make_due(shop)
    again = daemon.asked()
    assert [one.run_key for one in again] != [one.run_key for one in first]
    daemon.pretend(again)
    assert daemon.says() == "shop: served"
    assert states(shop) == [("a", "done")]


def test_a_run_that_was_interrupted_has_not_failed_by_itself(shop: ShopProject) -> None:
    @dg.asset
    def interrupted() -> None:
        raise dg.DagsterExecutionInterruptedError

    @dg.asset
    def broken() -> None:
        raise dg.Failure("by itself")

    for asset, expected in ((interrupted, True), (broken, False)):
        with suppress(dg.DagsterExecutionInterruptedError):
            dg.materialize([asset], instance=shop.instance, raise_on_error=False)
        (run,) = shop.instance.get_runs(limit=1)
        assert (run.status, was_stopped(shop.instance, run)) == (dg.DagsterRunStatus.FAILURE, expected)


def test_runs_that_are_killed_again_and_again_are_given_up(shop: ShopProject, daemon: Daemon) -> None:
    arrive(shop, "a")
    for _ in range(MOST_KILLED):
        daemon.pretend(daemon.asked(), dg.DagsterRunStatus.FAILURE)
        told = daemon.says()
        make_due(shop)
    assert told == "shop: 5 of 5 run(s) did not succeed"
    assert states(shop) == [("a", "failed")]


def test_what_another_run_holds_is_waited_for_and_asked_for_then(shop: ShopProject, daemon: Daemon) -> None:
    claim = hold(shop)
    arrive(shop, "a")
    assert "looked at again in 30 s: 1 chunk(s) are held by somebody else" in daemon.says()
    assert states(shop) == [("a", "started")]
    let_go(shop, claim)
    daemon.pretend(daemon.asked())
    assert daemon.says() == "shop: served"


def test_what_a_replay_holds_is_waited_for_as_well(shop: ShopProject, daemon: Daemon) -> None:
    let_go(shop, hold(shop))  # so that the chunk is in the audit DB
    with shop.runtime() as runtime:
        keys = [state.key for state in runtime.audit.chunks.states("shop", "orders")]
        me = str(ProcessIdentity.current())
        runtime.audit.holds.take("shop", "orders", keys, holder=me, ttl_seconds=600, holder_is_dead=lambda _: None)
    arrive(shop, "a")
    assert "1 chunk(s) are held by somebody else" in daemon.says()


def test_what_a_run_found_held_is_asked_for_again(shop: ShopProject, daemon: Daemon) -> None:
    arrive(shop, "a")
    requests = daemon.asked()
    claim = hold(shop)
    (skipped,) = daemon.run(requests)
    assert skipped.success
    assert "1 chunk(s) are held by somebody else" in daemon.says()
    let_go(shop, claim)
    daemon.run(daemon.asked())
    assert daemon.says() == "shop: served"
    assert shop.column("orders", "order_id") == [YEAR[0]]


@contextmanager
def forging(shop: ShopProject, monkeypatch: pytest.MonkeyPatch, forge: Forge) -> Iterator[None]:
    monkeypatch.setitem(ENV, "HAKIRI_WEBHOOKS_TO_LOOPBACK", "true")
    shop.settings = replace(shop.settings, webhooks_to_loopback=True)
    with serving_api(forge.answer) as api:
        table = {"name": "issues", "path": "repos/{repo}/issues", "partition_keys": {"repo": [LINUX, PYTHON]}}
        table |= {"primary_key": ["repo", "number"], "incremental": "updated_at"}
        table |= {"cursor_params": {"lower": "since", "order": "ascending", "newest": {"direction": "desc"}}}
        config = {"base_url": api.url, "pagination": {"type": "link"}, "retry": {"retries": 0}}
        declare(shop, table, source={"connector": "rest", "config": config}, load={"mode": "upsert"})
        yield


def test_of_a_table_in_parts_each_chunk_is_asked_for_once(shop: ShopProject, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also what has no partition, as rows that are dated after the open window of their part."""
    forge = Forge()
    for number, days in enumerate((1, 40, -400)):
        forge.put(LINUX, number, ago(days=days))
    forge.put(PYTHON, 1, ago(days=1))
    with forging(shop, monkeypatch, forge):
        with shop.runtime() as runtime:
            assert "torvalds~2Flinux|outside" in runtime.survey(runtime.project.tables[0]).due_keys
        daemon = Daemon(shop)
        arrive(shop, "a")
        daemon.pretend(daemon.asked())
        assert daemon.says() == "shop: served"


def parts_of(asked: Iterable[dg.RunRequest]) -> set[str]:
    return {str(request.partition_key).split("|")[0] for request in asked}


def test_a_part_that_the_source_refuses_is_not_served(shop: ShopProject, monkeypatch: pytest.MonkeyPatch) -> None:
    forge = Forge(gone={LINUX})
    forge.put(PYTHON, 1, ago(days=1))
    with forging(shop, monkeypatch, forge):
        daemon = Daemon(shop)
        arrive(shop, "a")
        asked = daemon.asked()
        assert parts_of(asked) == {"python~2Fcpython"}
        daemon.pretend(asked)
        assert "answered 404" in daemon.says()
    (found,) = deliveries(shop)
    assert (found.state, "answered 404" in (found.error or "")) == ("failed", True)


def test_a_part_that_the_source_does_not_answer_for_is_waited_for(
    shop: ShopProject, monkeypatch: pytest.MonkeyPatch
) -> None:
    forge = Forge(silent={LINUX})
    forge.put(LINUX, 1, ago(days=1))
    forge.put(PYTHON, 1, ago(days=1))
    with forging(shop, monkeypatch, forge):
        daemon = Daemon(shop)
        arrive(shop, "a")
        asked = daemon.asked()
        assert parts_of(asked) == {"python~2Fcpython"}
        daemon.pretend(asked)
        assert "shop: looked at again in 30 s: " in daemon.says()
        assert states(shop) == [("a", "started")]
        forge.silent.clear()
        make_due(shop)
        asked = daemon.asked()
        assert parts_of(asked) == {"torvalds~2Flinux"}


def test_a_table_that_is_always_due_is_asked_for_once(shop: ShopProject) -> None:
    """Its schedule has not ticked since it was loaded; the delivery says that there is something new."""
    shop.execute("CREATE SCHEMA src; CREATE TABLE src.stock (id int); INSERT INTO src.stock VALUES (1)")
    declare(
        shop,
        {"name": "stock"},
        schedule="0 0 1 1 *",
        source={"connector": "postgres", "config": {"url": shop.url, "schema": "src"}},
        load={"mode": "truncate"},
    )
    shop.apply()
    daemon = Daemon(shop)
    arrive(shop, "a")
    daemon.pretend(daemon.asked())
    assert daemon.says() == "shop: served"


def test_a_source_that_does_not_answer_is_waited_for(shop: ShopProject) -> None:
    declare(
        shop, {"name": "orders"}, source={"connector": "postgres", "config": {"url": "postgresql://u@127.0.0.1:9/db"}}
    )
    daemon = Daemon(shop)
    arrive(shop, "a")
    assert "looked at again in 30 s" in daemon.says()
    assert daemon.says() == "no delivery waits"
    make_due(shop)
    assert "looked at again in 60 s" in daemon.says()
    assert states(shop) == [("a", "started")]


def test_deliveries_wait_until_dagster_has_loaded_the_kind_of_a_cursor(shop: ShopProject) -> None:
    """The table has its first rows, with ids where moments were guessed, since Dagster loaded the project."""
    declare(shop, {"name": "orders", "path": "data/orders.csv", "incremental": "placed_at"})
    shop.file("data/orders.csv", "order_id,placed_at\na,1\n")
    daemon = Daemon(shop)
    arrive(shop, "a")
    assert "took its cursor for another kind" in daemon.says()
    assert states(shop) == [("a", "started")]
    make_due(shop)
    assert Daemon(shop).asked()


def test_a_pipeline_in_trouble_does_not_hold_up_the_others(shop: ShopProject, daemon: Daemon) -> None:
    declare(
        shop,
        {"name": "missing"},
        pipeline_id="broken",
        source={"connector": "files", "config": {"path": "nowhere", "format": "csv"}},
    )
    arrive(shop, "x", pipeline_id="broken")
    arrive(shop, "a")
    (request,) = Daemon(shop).asked()
    assert request.asset_selection == [dg.AssetKey(["shop", "orders"])]
    ((_, state),) = states(shop, "broken")
    assert state == "failed"
    assert "missing" in str(deliveries(shop, "broken")[0].error)


@contextmanager
def a_source_that_does_not_come_back(shop: ShopProject, monkeypatch: pytest.MonkeyPatch) -> Iterator[Event]:
    """The pipeline `slow`, whose first look takes as long as the test; set when that has begun, and cleared by more."""
    monkeypatch.setitem(ENV, "HAKIRI_WEBHOOKS_TO_LOOPBACK", "true")
    shop.settings = replace(shop.settings, webhooks_to_loopback=True)
    asked, over = Event(), Event()

    def answer(_asked: Asked) -> Said:
        if asked.is_set():
            asked.clear()
        else:
            asked.set()
            over.wait()
        return said([])

    with serving_api(answer) as api:
        config = {"base_url": api.url, "pagination": {"type": "link"}, "retry": {"retries": 0}}
        source = {"connector": "rest", "config": config}
        declare(shop, {"name": "items", "path": "items"}, pipeline_id="slow", source=source)
        try:
            yield asked
        finally:
            over.set()


def test_a_look_that_does_not_come_back_holds_up_no_other_pipeline(
    shop: ShopProject, daemon: Daemon, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Dagster ends its tick, with all that this one has asked for."""
    monkeypatch.setattr(delivery_sensor, "SECONDS_WITH_REQUESTS", 60)
    arrive(shop, "a")
    with ThreadPoolExecutor(1) as threads, a_source_that_does_not_come_back(shop, monkeypatch) as asked:
        arrive(shop, "x", pipeline_id="slow")
        daemon = Daemon(shop)
        lost = threads.submit(daemon.tick)
        asked.wait()
        daemon.pretend(daemon.asked())
        assert daemon.says() == "shop: served"
        assert asked.is_set(), "it is not looked at again"
    assert [one.asset_selection for one in lost.result().run_requests] == [[dg.AssetKey(["shop", "orders"])]]


def test_an_error_of_ours_at_one_pipeline_holds_up_no_other(
    shop: ShopProject, daemon: Daemon, monkeypatch: pytest.MonkeyPatch
) -> None:
    declare(shop, RETURNS, pipeline_id="broken")
    arrive(shop, "x", pipeline_id="broken")
    arrive(shop, "a")
    daemon, tick_ranges = Daemon(shop), dispatching.tick_ranges

    def broken(table: Table, *more: Any) -> Any:
        if table.pipeline_id == "broken":
            raise ZeroDivisionError
        return tick_ranges(table, *more)

    monkeypatch.setattr(dispatching, "tick_ranges", broken)
    with pytest.raises(ZeroDivisionError):
        daemon.tick()
    daemon.pretend(daemon.asked())
    assert daemon.says() == "shop: served"


def test_a_pipeline_in_trouble_is_looked_at_when_nothing_can_be_lost(shop: ShopProject, daemon: Daemon) -> None:
    declare(shop, RETURNS, pipeline_id="troubled")
    arrive(shop, "a")
    arrive(shop, "x", pipeline_id="troubled")
    with open_audit(None, shop.root / ".hakiri") as audit:
        audit.deliveries.put_off(OpenWork("troubled", None, 0), timedelta(), 1)
        audit.deliveries.take("troubled", "batch")
        audit.deliveries.end_look("batch", 1)
    daemon = Daemon(shop)
    (request,) = daemon.asked()
    assert request.asset_selection == [dg.AssetKey(["shop", "orders"])]
    request, _ = daemon.asked()
    assert request.asset_selection == [dg.AssetKey(["troubled", "returns"])]


def test_a_tick_that_has_something_to_ask_for_does_not_go_on_for_long(
    shop: ShopProject, daemon: Daemon, monkeypatch: pytest.MonkeyPatch
) -> None:
    declare(shop, RETURNS, pipeline_id="other")
    arrive(shop, "a")
    arrive(shop, "x", pipeline_id="other")
    monkeypatch.setattr(delivery_sensor, "SECONDS_WITH_REQUESTS", 0)
    daemon = Daemon(shop)
    asked = [[request.asset_selection for request in daemon.asked()] for _ in range(2)]
    assert asked == [[[dg.AssetKey(["shop", "orders"])]], [[dg.AssetKey(["other", "returns"])]]]


def test_what_another_has_taken_meanwhile_is_left_to_it(
    shop: ShopProject, daemon: Daemon, monkeypatch: pytest.MonkeyPatch
) -> None:
    arrive(shop, "a")
    monkeypatch.setattr(DeliveryStore, "take", lambda *_: 0)
    assert daemon.says() == "shop: taken by another"


def test_deliveries_of_a_pipeline_that_is_no_longer_there_wait(shop: ShopProject, daemon: Daemon) -> None:
    arrive(shop, "x", pipeline_id="gone")
    assert daemon.says() == "no delivery waits"
    assert states(shop, "gone") == [("x", "pending")]


def test_a_message_of_a_queue_starts_its_pipeline(shop: ShopProject, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(ENV, "HAKIRI_WEBHOOKS_TO_LOOPBACK", "true")
    shop.settings = replace(shop.settings, webhooks_to_loopback=True)
    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    keys = {"aws_access_key_id": "key", "aws_secret_access_key": ENV["HOOK_SECRET"]}
    client = boto3.client("sqs", region_name="eu-central-1", endpoint_url=f"http://{host}:{port}", **keys)
    url = client.create_queue(QueueName="orders")["QueueUrl"]
    queue = {"type": "sqs", "queue_url": url, "region": "eu-central-1"}
    queue |= {"access_key_id": "${HOOK_SECRET}", "secret_access_key": "${HOOK_SECRET}"}
    declare(shop, triggers=[queue])
    orders(shop, YEAR[0])
    daemon = Daemon(shop)
    client.send_message(QueueUrl=url, MessageBody='{"pipeline_id": "shop"}')
    assert daemon.tick("_queues").skip_message == "orders: 1 stored, 0 known"
    daemon.pretend(daemon.asked())
    assert daemon.says() == "shop: served"
    assert [(found.source, found.state) for found in deliveries(shop)] == [("sqs", "done")]
    server.stop()
