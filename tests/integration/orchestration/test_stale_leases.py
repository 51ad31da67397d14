"""What a killed process held is given free by a sensor, though nobody comes to claim it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from threading import Event
from typing import Any

import dagster as dg
import psycopg
import pytest

from hakiri_dagster.audit.leases import LeaseStore
from hakiri_dagster.destinations.contract import Fence
from hakiri_dagster.destinations.postgres.destination import PostgresDestination
from hakiri_dagster.destinations.postgres.fence import attempt_name
from hakiri_dagster.engine.process_identity import ProcessIdentity, is_dead
from hakiri_dagster.orchestration.resources import OpenProject
from hakiri_dagster.orchestration.sensors import stale_leases
from hakiri_dagster.pipeline import sweeping
from hakiri_dagster.pipeline.attempt_folders import new_attempt_folder
from hakiri_dagster.pipeline.remembering import remember
from tests.integration.orchestration.conftest import ShopProject

KILLED = str(replace(ProcessIdentity.current(), pid=2**22 + 1))


def tick(shop: ShopProject) -> str:
    with (
        shop.runtime() as runtime,
        dg.build_sensor_context(resources={"project": OpenProject(runtime)}) as context,
    ):
        return str(stale_leases.evaluate_tick(context).skip_message)


@pytest.fixture
def killed_at_work(csv_shop: Callable[..., ShopProject]) -> tuple[ShopProject, psycopg.Connection, Path]:
    """A table of which the second load was killed: its lease, its session and its files are still there."""
    shop = csv_shop()
    shop.file("data/orders.csv", "order_id\n1\n")
    shop.apply()
    shop.file("data/orders.csv", "order_id\n1\n2\n")
    with shop.runtime() as runtime:
        (table,) = runtime.project.tables
        survey = runtime.survey(table)
        remember(runtime.audit, survey, survey.due)
        runtime.audit.runs.start("run-1", "shop", "orders", holder=KILLED, holder_is_dead=lambda _: False)
        (claim,) = runtime.audit.chunks.claim(
            "shop", "orders", survey.due.slices, holder=KILLED, run_id="run-1", ttl_seconds=600, holder_is_dead=is_dead
        ).claimed
        fences = runtime.destination(table).claim(table, [claim.key], KILLED)
        folder = new_attempt_folder(runtime.project.state_dir / "candidates", table, KILLED)
        name = attempt_name(table, claim.key, fences[claim.key].token)
    return shop, psycopg.connect(shop.url, application_name=name), folder


def test_the_chunk_is_free_and_all_that_its_attempt_left_is_gone(
    killed_at_work: tuple[ShopProject, psycopg.Connection, Path],
) -> None:
    shop, session, folder = killed_at_work
    told = tick(shop)
    assert "the process that worked on it was killed" in told
    assert "run run-1: its process died" in told
    with pytest.raises(psycopg.OperationalError):
        session.execute("SELECT 1")
    assert not folder.exists()
    with shop.runtime() as runtime:
        assert runtime.audit.leases.stale(is_dead) == ()
        assert runtime.audit.status("shop")["chunks"]["failed"] == 1
    assert tick(shop) == "no lease without a living holder"
    assert shop.apply()["orders"]["error"] is None
    assert shop.column("orders", "order_id") == [1, 2]


def test_nobody_claims_a_chunk_while_the_destination_takes_its_time(
    killed_at_work: tuple[ShopProject, psycopg.Connection, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else the fence of whoever claims it would be raised."""
    shop, _, _ = killed_at_work
    kept, slow = Event(), PostgresDestination.claim
    keep = LeaseStore.keep

    def kept_once_more(self: LeaseStore, *given: Any, **named: Any) -> None:
        keep(self, *given, **named)
        kept.set()

    def claim(self: PostgresDestination, *given: Any) -> Mapping[str, Fence]:
        assert kept.wait(30)
        return slow(self, *given)

    monkeypatch.setattr(sweeping, "_SECONDS", 1)
    monkeypatch.setattr(LeaseStore, "keep", kept_once_more)
    monkeypatch.setattr(PostgresDestination, "claim", claim)
    assert "the process that worked on it was killed" in tick(shop)


def test_a_destination_that_is_away_is_told_and_swept_later(
    killed_at_work: tuple[ShopProject, psycopg.Connection, Path],
) -> None:
    shop, session, _ = killed_at_work
    session.close()
    away = replace(shop, url="postgresql://nobody@127.0.0.1:1/none")
    away.manifest({"id": "shop", "source": {"connector": "files", "config": {"path": "data"}}, "tables": ["orders"]})
    assert "the next tick tries again" in tick(shop)
    with shop.runtime() as runtime:
        assert runtime.audit.status("shop")["chunks"]["running"] == 1
