"""A process that is killed cannot tell Dagster that its run has ended."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta

import dagster as dg
import pytest

from hakiri_dagster.audit.pass_places import PassOf
from hakiri_dagster.definitions import project_definitions
from hakiri_dagster.engine.process_identity import ProcessIdentity, is_dead
from hakiri_dagster.manifest.project import load_project
from hakiri_dagster.orchestration.apply import opened_applier
from hakiri_dagster.orchestration.dagster_home import opened_instance, psycopg2_url
from hakiri_dagster.orchestration.killed_runs import PROCESS_TAG, OtherHosts, end_killed_runs
from hakiri_dagster.orchestration.names import KILLED_RUNS
from hakiri_dagster.orchestration.resources import OpenProject
from hakiri_dagster.pipeline.remembering import remember
from hakiri_dagster.settings import Settings
from tests.integration.orchestration.conftest import ShopProject

Declare = Callable[..., ShopProject]

_WAITS = """
from hakiri_dagster.engine.process_identity import ProcessIdentity, is_dead
print(ProcessIdentity.current(), flush=True)
input()
"""

_DIES_IN_A_RUN = """
import os, signal, sys
import dagster as dg
from hakiri_dagster.orchestration.dagster_home import opened_instance
from hakiri_dagster.orchestration.killed_runs import signature
from pathlib import Path
from uuid import uuid4

@dg.asset(pool="shop/orders")
def orders():
    os.kill(os.getpid(), signal.SIGKILL)

run_id = str(uuid4())
with opened_instance(Path(sys.argv[1]), sys.argv[2]) as instance:
    job = dg.Definitions([orders]).resolve_implicit_global_asset_job_def()
    job.execute_in_process(run_id=run_id, instance=instance, tags=signature(run_id))
"""


@pytest.fixture
def killed_process() -> str:
    with subprocess.Popen([sys.executable, "-c", _WAITS], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        identity = process.stdout.readline().decode().strip()
        process.kill()
    return identity


@pytest.fixture
def instance() -> dg.DagsterInstance:
    return dg.DagsterInstance.ephemeral()


@dg.job
def some_job() -> None: ...


def a_run(instance: dg.DagsterInstance, status: dg.DagsterRunStatus, process: str, signed_for: str = "") -> str:
    run = instance.create_run_for_job(some_job, status=status)
    instance.add_run_tags(run.run_id, {PROCESS_TAG: f"{signed_for or run.run_id} {process}"})
    return run.run_id


def status(instance: dg.DagsterInstance, run_id: str) -> dg.DagsterRunStatus:
    run = instance.get_run_by_id(run_id)
    assert run is not None
    return run.status


def test_the_run_of_a_killed_process_is_ended_as_failed_and_says_why(
    instance: dg.DagsterInstance, killed_process: str
) -> None:
    run_id = a_run(instance, dg.DagsterRunStatus.STARTED, killed_process)
    assert end_killed_runs(instance) == (run_id,)
    assert status(instance, run_id) == dg.DagsterRunStatus.FAILURE
    (told,) = instance.get_records_for_run(run_id, of_type=dg.DagsterEventType.RUN_FAILURE).records
    assert "was killed" in (told.event_log_entry.get_dagster_event().message or "")
    assert end_killed_runs(instance) == ()


def test_a_run_that_was_being_terminated_when_its_process_was_killed_is_canceled(
    instance: dg.DagsterInstance, killed_process: str
) -> None:
    run_id = a_run(instance, dg.DagsterRunStatus.CANCELING, killed_process)
    end_killed_runs(instance)
    assert status(instance, run_id) == dg.DagsterRunStatus.CANCELED


def test_runs_of_living_processes_and_those_that_nobody_signed_are_left_alone(instance: dg.DagsterInstance) -> None:
    a_run(instance, dg.DagsterRunStatus.STARTED, str(ProcessIdentity.current()))
    instance.create_run_for_job(some_job, status=dg.DagsterRunStatus.STARTED)
    assert end_killed_runs(instance, OtherHosts(frozenset, timedelta(0))) == ()


ELSEWHERE = str(replace(ProcessIdentity.current(), host="elsewhere"))


def test_a_run_of_another_host_is_ended_when_it_is_silent_and_none_of_its_leases_lives(
    instance: dg.DagsterInstance, csv_shop: Declare
) -> None:
    """As when its container is gone, and with it all that could tell."""
    run_id = a_run(instance, dg.DagsterRunStatus.STARTED, ELSEWHERE)
    shop = csv_shop()
    shop.file("data/orders.csv", "order_id\n1\n")
    with shop.runtime() as runtime:
        survey = runtime.survey(runtime.project.tables[0])
        remember(runtime.audit, survey, survey.due)
        whose = PassOf("shop", "orders", ELSEWHERE, 2)
        chunks, places = runtime.audit.chunks, runtime.audit.pass_places
        others = OtherHosts(runtime.audit.leases.living_holders, timedelta(0))
        (claim,) = chunks.claim(
            "shop", "orders", survey.due.slices, holder=ELSEWHERE, run_id=run_id, ttl_seconds=600,
            holder_is_dead=is_dead,
        ).claimed  # fmt: skip
        assert end_killed_runs(instance, others) == ()
        chunks.release([claim])
        turn = places.ask(whose, is_dead, number=None, ttl_seconds=600)
        assert end_killed_runs(instance, others) == ()
        places.heartbeat(whose, turn.number, ttl_seconds=0)
        assert end_killed_runs(instance, others) == (run_id,)
    assert status(instance, run_id) == dg.DagsterRunStatus.FAILURE


def test_a_run_of_another_host_may_hold_nothing_while_it_begins_or_waits_for_a_hook(
    instance: dg.DagsterInstance,
) -> None:
    a_run(instance, dg.DagsterRunStatus.STARTED, ELSEWHERE)
    assert end_killed_runs(instance, OtherHosts.by_leases(frozenset, ttl_seconds=1)) == ()


@pytest.mark.parametrize(("ttl_seconds", "minutes"), [(600, 30), (3600, 120)])
def test_a_lease_that_lives_long_asks_for_a_longer_silence(ttl_seconds: float, minutes: int) -> None:
    assert OtherHosts.by_leases(frozenset, ttl_seconds).silence == timedelta(minutes=minutes)


def test_a_retry_that_inherits_the_tag_of_a_killed_run_may_start(
    instance: dg.DagsterInstance, killed_process: str
) -> None:
    a_run(instance, dg.DagsterRunStatus.STARTING, killed_process, signed_for="another-run")
    assert end_killed_runs(instance) == ()


def test_an_apply_signs_its_runs(csv_shop: Declare) -> None:
    shop = csv_shop()
    shop.file("data/orders.csv", "order_id\n1\n")
    shop.apply()
    (run,) = shop.instance.get_runs()
    assert run.tags[PROCESS_TAG] == f"{run.run_id} {ProcessIdentity.current()}"


def test_a_run_of_the_user_interface_is_signed_by_the_process_that_executes_it(csv_shop: Declare) -> None:
    shop = csv_shop()
    shop.file("data/orders.csv", "order_id\n1\n")
    definitions = project_definitions(load_project(shop.root, env={}), shop.settings)
    job = definitions.resolve_implicit_global_asset_job_def()
    (table,) = load_project(shop.root, env={}).tables
    with shop.runtime() as runtime:
        (chunk,) = runtime.survey(table).chunks
    shop.instance.add_dynamic_partitions("shop/orders", [chunk.key])
    assert job.execute_in_process(instance=shop.instance, partition_key=chunk.key).success
    (run,) = shop.instance.get_runs()
    assert run.tags[PROCESS_TAG] == f"{run.run_id} {ProcessIdentity.current()}"


def test_the_next_apply_ends_the_run_of_one_that_was_killed(
    csv_shop: Declare, database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    shop = csv_shop()
    for name in ("DAGSTER_HOME", "HAKIRI_DAGSTER_URL", "HAKIRI_PROJECT"):
        monkeypatch.setenv(name, "")  # so that what opening it sets is forgotten
    storage = psycopg2_url(database_url)
    died = subprocess.run([sys.executable, "-c", _DIES_IN_A_RUN, str(shop.root), storage], check=False)
    assert died.returncode == -9
    with opened_instance(shop.root, storage) as instance:
        (run,) = instance.get_runs()
        assert run.status == dg.DagsterRunStatus.STARTED
        with replace(shop, settings=Settings(dagster_url=storage)).runtime() as runtime, opened_applier(runtime):
            assert status(instance, run.run_id) == dg.DagsterRunStatus.FAILURE


def test_a_sensor_that_runs_by_itself_ends_them_while_dagster_is_up(
    csv_shop: Declare, instance: dg.DagsterInstance, killed_process: str
) -> None:
    run_id = a_run(instance, dg.DagsterRunStatus.STARTED, killed_process)
    shop = csv_shop(incremental="placed_at")
    sensor = project_definitions(load_project(shop.root, env={}), Settings()).resolve_sensor_def(KILLED_RUNS)
    assert sensor.default_status == dg.DefaultSensorStatus.RUNNING
    with shop.runtime() as runtime:
        resources = {"project": OpenProject(runtime)}
        told = sensor.evaluate_tick(dg.build_sensor_context(instance=instance, resources=resources))
    assert told.skip_message == f"ended {run_id}"
    assert status(instance, run_id) == dg.DagsterRunStatus.FAILURE
