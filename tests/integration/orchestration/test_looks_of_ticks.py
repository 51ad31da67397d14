"""Looks that ticks make end soon: Dagster gives a tick a minute, and the thread of one that waits longer is lost."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import timedelta
from typing import Any

import dagster as dg
import psycopg
import pytest

from hakiri_dagster.cli.explain import document, explain
from hakiri_dagster.connectors import tick_time
from hakiri_dagster.connectors.permits import SharedPermits
from hakiri_dagster.connectors.postgres import config as postgres_config
from hakiri_dagster.connectors.tick_time import TickTime
from hakiri_dagster.definitions import project_definitions
from hakiri_dagster.errors import HakiriError, HeldBack, SourceUnavailable
from hakiri_dagster.manifest.project import load_project
from hakiri_dagster.orchestration.names import PLANNER
from hakiri_dagster.orchestration.resources import OpenProject, project_resource
from hakiri_dagster.pipeline import only_look
from hakiri_dagster.pipeline.runtime import Runtime
from hakiri_dagster.pipeline.survey import Survey
from tests.integration.connectors.rest.api_server import Asked, Said, said
from tests.integration.orchestration.conftest import ShopProject
from tests.integration.orchestration.daemon import Daemon
from tests.integration.orchestration.test_rest import CURSOR, ENV, Tracker, ago, tracked


def look(shop: ShopProject, tick: TickTime) -> Survey:
    """As a tick makes it."""
    with Runtime(load_project(shop.root, env=shop.env), shop.settings, tick=tick) as runtime:
        (table,) = runtime.project.tables
        return OpenProject(runtime).plan(table)


def busy(_asked: Asked, _number: int) -> Said:
    return said({"message": "not now"}, 503, Retry_After="2")


def test_an_api_that_asks_to_be_left_alone_is_looked_at_again_by_a_later_tick(
    shop: ShopProject, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Dagster's own definitions open the project for the tick."""
    for name, value in ENV.items():
        monkeypatch.setenv(name, value)
    with tracked(shop, Tracker(trouble=busy), **CURSOR) as api, dg.instance_for_test() as instance:
        project = load_project(shop.root, env=shop.env)
        definitions = project_definitions(project, shop.settings)
        with dg.build_sensor_context(
            instance=instance,
            resources={"project": project_resource(project)},
            repository_def=definitions.get_repository_def(),
        ) as context:
            ticked = definitions.resolve_sensor_def(PLANNER).evaluate_tick(context)
        assert "it asks to be left alone for 2 s" in str(ticked.skip_message)
        assert len(api.asked) == 1, "a run would wait, and ask again"


def test_a_run_still_waits_for_it(shop: ShopProject) -> None:
    def trouble(asked: Asked, number: int) -> Said | None:
        return busy(asked, number) if number == 1 else None

    tracker = Tracker(trouble=trouble)
    tracker.put(1, ago(days=1))
    with tracked(shop, tracker, **CURSOR):
        assert shop.apply()["issues"]["error"] is None


def test_an_api_that_fails_is_asked_once_more_and_no_oftener(shop: ShopProject) -> None:
    with tracked(shop, Tracker(trouble=lambda _asked, _number: said({}, 500)), **CURSOR) as api:
        with pytest.raises(SourceUnavailable, match="answered 500"):
            look(shop, TickTime.begun())
        assert len(api.asked) == 2


def test_a_budget_that_is_used_up_is_told_instead_of_waited_for(
    shop: ShopProject, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(SharedPermits, "_sleep", _not_at_all)
    with budgeted(shop, "1/h") as asked:
        with shop.runtime() as runtime:
            (table,) = runtime.project.tables
            _ = runtime.audit  # made, for it is where permits are noted
            with runtime.permits(table, "requests").permit():
                pass
        with pytest.raises(HeldBack, match=r"issues: the budget of 1/h requests is used up until about \d\d:\d\d:"):
            look(shop, TickTime.begun())
        assert asked == []


def _not_at_all(_permits: SharedPermits, seconds: float) -> int:
    raise AssertionError(f"it waits for {seconds} s")


@contextmanager
def budgeted(shop: ShopProject, budget: str, **table: Any) -> Iterator[list[Asked]]:
    tracker = Tracker()
    tracker.put(1, ago(days=1))
    with tracked(shop, tracker, **CURSOR | table) as api:
        path = shop.root / "manifests" / "pipelines" / "tracker.json"
        path.write_text(path.read_text().replace('"id"', f'"backfill": {{"rate_budget": "{budget}"}}, "id"', 1))
        yield api.asked


def test_the_planner_looks_as_seldom_as_the_budget_bears_it(shop: ShopProject) -> None:
    newest = {"cursor_params": CURSOR["cursor_params"] | {"newest": {"direction": "desc"}}}
    with dg.instance_for_test() as instance, budgeted(shop, "60/h", **newest) as asked:
        with shop.runtime() as runtime:
            (table,) = runtime.project.tables
            plan = runtime.plan([table]).plan
            requests = runtime.source(table).hint.requests_a_look
        assert len(asked) == requests == 2
        told = "tracker: looked at every 8 min instead of every 5 min: a look sends 2 requests"
        assert told in explain(plan)
        assert document(plan)["pipelines"][0]["limits"]["looks_every_seconds"] == 480
        daemon = Daemon(replace(shop, instance=instance))
        daemon.sensor(PLANNER)
        asked.clear()
        daemon.sensor(PLANNER, after=timedelta(minutes=7))
        assert asked == []
        daemon.sensor(PLANNER, after=timedelta(minutes=9))
        assert len(asked) == 2


def test_no_request_begins_when_the_time_of_the_tick_is_over(
    shop: ShopProject, monkeypatch: pytest.MonkeyPatch
) -> None:
    """However many a look sends: of each part, and of each end of the cursor."""
    clock = [0.0]
    monkeypatch.setattr(tick_time.time, "monotonic", lambda: clock[0])

    def slow(_asked: Asked, _number: int) -> None:
        clock[0] += tick_time.SECONDS

    tracker = Tracker(trouble=slow)
    tracker.put(1, ago(days=1))
    newest: dict[str, Any] = {"cursor_params": CURSOR["cursor_params"] | {"newest": {"direction": "desc"}}}
    with tracked(shop, tracker, **CURSOR | newest) as api:
        with pytest.raises(HeldBack, match="the tick has looked at sources for 40 s"):
            look(shop, TickTime.begun())
        assert len(api.asked) == 1


class TestPostgres:
    @pytest.fixture
    def orders(self, shop: ShopProject, monkeypatch: pytest.MonkeyPatch) -> ShopProject:
        limits = (("lock_timeout", "20ms"), ("statement_timeout", "200ms"))
        monkeypatch.setattr(postgres_config, "_LIMITS_IN_A_HURRY", limits)
        shop.execute("CREATE TABLE orders AS SELECT n AS id FROM generate_series(1, 3) AS n")
        source = {"connector": "postgres", "config": {"url": shop.url}}
        shop.manifest({"id": "shop", "source": source, "tables": ["orders"], "incremental": "id"})
        return shop

    def test_a_table_that_somebody_has_locked_is_looked_at_again_later(self, orders: ShopProject) -> None:
        orders.execute(
            "DO $$ BEGIN EXECUTE format('ALTER DATABASE %I SET statement_timeout = 2000', current_database()); END $$"
        )
        with psycopg.connect(orders.url) as other:
            other.execute("LOCK TABLE orders")
            with pytest.raises(SourceUnavailable, match="lock timeout"):
                look(orders, TickTime.begun())
        assert len(look(orders, TickTime.begun()).due_keys) == 1

    def test_one_that_takes_too_long_is_looked_at_again_later(self, orders: ShopProject) -> None:
        orders.execute("DROP TABLE orders; CREATE VIEW orders AS SELECT 1 AS id FROM pg_sleep(1)")
        with pytest.raises(SourceUnavailable, match="statement timeout"):
            look(orders, TickTime.begun())


class Hangs(Tracker):
    """At its first request, and at no other."""

    def __init__(self) -> None:
        super().__init__()
        self.hangs, self.go_on = threading.Event(), threading.Event()

    def answer(self, asked: Asked) -> Said:
        if not self.hangs.is_set():
            self.hangs.set()
            self.go_on.wait()
        return super().answer(asked)


def test_a_table_that_is_being_looked_at_is_not_looked_at_a_second_time(
    shop: ShopProject, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(only_look, "SECONDS", 0.01)
    tracker = Hangs()
    tracker.put(1, ago(days=1))
    with tracked(shop, tracker, **CURSOR):
        found: list[Survey | HakiriError] = []
        first = threading.Thread(target=lambda: found.append(look(shop, TickTime.begun())))
        first.start()
        tracker.hangs.wait()
        try:
            with pytest.raises(HeldBack, match="tracker/issues: it is still being looked at by another tick"):
                look(shop, TickTime.begun())
        finally:
            tracker.go_on.set()
            first.join()
        assert len(found) == 1
        assert look(shop, TickTime.begun()).due_keys
