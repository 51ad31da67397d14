"""A run that is queued or at work keeps ticks from asking for another one of its table."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from uuid import uuid4

import dagster as dg
import pytest

from hakiri_dagster.engine.process_identity import ProcessIdentity
from hakiri_dagster.manifest.project import load_project
from hakiri_dagster.manifest.tables import Table
from hakiri_dagster.orchestration import under_way
from hakiri_dagster.orchestration.killed_runs import PROCESS_TAG
from hakiri_dagster.orchestration.names import PIPELINE_TAG, TABLE_TAG, asset_key
from hakiri_dagster.orchestration.under_way import reasons, runs_under_way
from tests.queued_runs import queued_run

Status = dg.DagsterRunStatus


@pytest.fixture
def tables(tmp_path: Path) -> tuple[Table, ...]:
    (tmp_path / "manifests").mkdir()
    (tmp_path / "manifests" / "hakiri.toml").write_text(
        '[[pipeline]]\nid = "shop"\nsource = { connector = "files", config = { path = "data" } }\n'
        'tables = ["orders", "visits"]\n'
    )
    return load_project(tmp_path).tables


@pytest.fixture
def instance() -> dg.DagsterInstance:
    return dg.DagsterInstance.ephemeral()


def a_run(instance: dg.DagsterInstance, status: Status, *selected: Table, tags: dict[str, str] | None = None) -> str:
    keys = frozenset(map(asset_key, selected)) if selected else None
    if status == Status.QUEUED:
        return queued_run(instance, tags, keys)
    run = dg.DagsterRun("some_job", run_id=str(uuid4()), status=status, tags=tags, asset_selection=keys)
    return instance.add_run(run).run_id


@pytest.mark.parametrize(
    "status", [Status.NOT_STARTED, Status.QUEUED, Status.STARTING, Status.STARTED, Status.CANCELING]
)
def test_a_run_counts_until_it_has_ended_and_only_for_its_own_table(
    instance: dg.DagsterInstance, tables: tuple[Table, ...], status: Status
) -> None:
    run_id = a_run(instance, status, tables[0])
    found = runs_under_way(instance, tables)
    assert found == {"shop/orders": run_id}
    assert list(reasons(tables, found)) == [f"orders: run {run_id[:8]} of it is queued or at work"]


def test_runs_that_have_ended_count_for_nothing(instance: dg.DagsterInstance, tables: tuple[Table, ...]) -> None:
    for status in (Status.SUCCESS, Status.FAILURE, Status.CANCELED):
        a_run(instance, status, *tables)
    assert runs_under_way(instance, tables) == {}


def test_runs_without_a_selection_are_known_by_their_tags(
    instance: dg.DagsterInstance, tables: tuple[Table, ...]
) -> None:
    a_run(instance, Status.STARTED, tags={TABLE_TAG: "shop/visits"})
    assert set(runs_under_way(instance, tables)) == {"shop/visits"}
    a_run(instance, Status.QUEUED, tags={PIPELINE_TAG: "shop"})
    a_run(instance, Status.QUEUED, tags={PIPELINE_TAG: "another"})
    assert set(runs_under_way(instance, tables)) == {"shop/orders", "shop/visits"}


def test_a_run_whose_process_was_killed_is_ended_and_holds_up_nothing(
    instance: dg.DagsterInstance, tables: tuple[Table, ...]
) -> None:
    run_id = a_run(instance, Status.STARTED, tables[0])
    nobody = replace(ProcessIdentity.current(), pid=2**22 + 1)
    instance.add_run_tags(run_id, {PROCESS_TAG: f"{run_id} {nobody}"})
    assert runs_under_way(instance, tables) == {}
    run = instance.get_run_by_id(run_id)
    assert run is not None
    assert run.status == Status.FAILURE


def test_a_run_that_nobody_started_for_long_never_will_be(
    instance: dg.DagsterInstance, tables: tuple[Table, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    a_run(instance, Status.NOT_STARTED, tables[0])
    queued = a_run(instance, Status.QUEUED, tables[1])
    later = under_way.time.time() + 3600
    monkeypatch.setattr(under_way.time, "time", lambda: later)
    assert runs_under_way(instance, tables) == {"shop/visits": queued}
