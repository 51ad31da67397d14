"""One tick of every sensor with nothing to do, as Dagster's code server has it, in a process of its own: definitions
that were loaded before, resources opened for each tick. Answers the seconds of each sensor."""

from __future__ import annotations

import json
import sqlite3
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path

import dagster as dg

from hakiri_dagster.definitions import project_definitions
from hakiri_dagster.manifest.project import load_project
from hakiri_dagster.manifest.tables import Project
from hakiri_dagster.orchestration.dagster_home import opened_instance, psycopg2_url
from hakiri_dagster.orchestration.planner import PLANNER
from hakiri_dagster.orchestration.resources import project_resource
from hakiri_dagster.pipeline.runtime import Runtime
from hakiri_dagster.planning.looks import EVERY
from hakiri_dagster.settings import Settings

_MOST_ROUNDS = 50


def main(folder: Path) -> None:
    settings = Settings.from_env()
    project = load_project(folder)
    with Runtime(project, settings) as runtime:
        storage = psycopg2_url(runtime.dagster_url)
    definitions = project_definitions(project, settings)
    repository = definitions.get_repository_def()
    names = [sensor.name for sensor in repository.sensor_defs]
    with opened_instance(folder, storage) as instance:
        told = _until_everything_was_looked_at(definitions, project, instance)
        first = {name: _seconds(definitions, project, instance, name) for name in names}
        _make_looks_due(folder)
        looks_due = _seconds(definitions, project, instance, PLANNER)
    print(json.dumps({"sensors": first, "planner_with_looks_due": looks_due, "rounds": told}))


def _until_everything_was_looked_at(definitions: dg.Definitions, project: Project, instance: dg.DagsterInstance) -> int:
    for number in range(1, _MOST_ROUNDS):
        with _ticking(definitions, project, instance) as context:
            said = definitions.resolve_sensor_def(PLANNER).evaluate_tick(context).skip_message
        if said == "nothing new":
            return number
    raise SystemExit("the planner never came to an end")


def _seconds(definitions: dg.Definitions, project: Project, instance: dg.DagsterInstance, name: str) -> float:
    started = time.perf_counter()
    with _ticking(definitions, project, instance) as context:
        found = definitions.resolve_sensor_def(name).evaluate_tick(context)
    seconds = time.perf_counter() - started
    if found.run_requests:
        raise SystemExit(f"{name} started runs: there was something to do")
    return seconds


@contextmanager
def _ticking(
    definitions: dg.Definitions, project: Project, instance: dg.DagsterInstance
) -> Iterator[dg.SensorEvaluationContext]:
    resources = {"project": project_resource(project)}
    repository = definitions.get_repository_def()
    with dg.build_sensor_context(instance=instance, repository_def=repository, resources=resources) as context:
        yield context


def _make_looks_due(folder: Path) -> None:
    """As if a minute had gone by."""
    before = (datetime.now(UTC) - EVERY - timedelta(seconds=1)).isoformat(timespec="microseconds")
    with sqlite3.connect(folder / ".hakiri" / "audit.sqlite") as audit:
        audit.execute("UPDATE source_look SET looked_at = ?", (before,))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
