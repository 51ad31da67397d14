"""What Dagster makes of the settings that a project gives it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import dagster as dg
import pytest

from hakiri_dagster.definitions import project_definitions
from hakiri_dagster.manifest.project import load_project
from hakiri_dagster.orchestration.dagster_home import opened_instance, psycopg2_url
from hakiri_dagster.settings import Settings
from tests.integration.orchestration.conftest import ShopProject
from tests.queued_runs import queued_run_of, taken_from_the_queue


@contextmanager
def opened(shop: ShopProject, monkeypatch: pytest.MonkeyPatch) -> Iterator[dg.DagsterInstance]:
    for name in ("DAGSTER_HOME", "HAKIRI_DAGSTER_URL", "HAKIRI_PROJECT"):
        monkeypatch.setenv(name, "")  # so that what opening it sets is forgotten
    with opened_instance(shop.root, psycopg2_url(shop.url)) as instance:
        yield instance


def test_ticks_of_sensors_and_of_schedules_do_not_wait_for_each_other(
    shop: ShopProject, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As many at once as there are sensors of ours, and one more."""
    with opened(shop, monkeypatch) as instance:
        for kind in ("sensors", "schedules"):
            assert instance.get_settings(kind) == {"use_threads": True, "num_workers": 8}


def test_a_second_run_of_a_table_waits_in_the_queue_and_a_run_of_another_table_does_not(
    shop: ShopProject, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = {"connector": "files", "config": {"path": "data", "format": "csv"}}
    shop.manifest(*({"id": f"of-{name}", "source": source, "tables": [name]} for name in ("orders", "visits")))
    definitions = project_definitions(load_project(shop.root, env={}), Settings())
    orders, visits = (definitions.resolve_job_def(f"of_{name}_pipeline") for name in ("orders", "visits"))
    with opened(shop, monkeypatch) as instance:
        first = queued_run_of(instance, orders)
        assert taken_from_the_queue(instance) == [first], "Dagster knows the pool from now on"
        instance.delete_run(first)
        at_work = instance.create_run_for_job(orders, status=dg.DagsterRunStatus.STARTED)
        waiting, other = queued_run_of(instance, orders), queued_run_of(instance, visits)
        assert taken_from_the_queue(instance) == [other]
        instance.report_run_canceled(at_work)
        assert set(taken_from_the_queue(instance)) == {waiting, other}
