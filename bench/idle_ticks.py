"""One tick of every sensor with nothing to do, as Dagster's code server has it, in a process of its own: definitions
that were loaded before, resources opened for each tick. Answers the seconds of each sensor."""

from __future__ import annotations

import json
import sqlite3
import sys
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path

import dagster as dg

from hakiri_dagster.definitions import project_definitions
from hakiri_dagster.manifest.project import load_project
from hakiri_dagster.manifest.tables import Project
from hakiri_dagster.orchestration.dagster_home import opened_instance, psycopg2_url
from hakiri_dagster.orchestration.names import FILE_ARRIVALS, PLANNER
from hakiri_dagster.orchestration.resources import project_resource
from hakiri_dagster.pipeline.runtime import Runtime
from hakiri_dagster.planning.looks import EVERY
from hakiri_dagster.settings import Settings

_MOST_ROUNDS = 50
_IDLE = {PLANNER: "nothing new", FILE_ARRIVALS: "no file has arrived"}


def main(folder: Path) -> None:
    settings = Settings.from_env()
    project = load_project(folder)
    with Runtime(project, settings) as runtime:
        storage = psycopg2_url(runtime.dagster_url)
    with opened_instance(folder, storage) as instance:
        sensors = Sensors(project, settings, instance)
        rounds = sensors.tick_until_idle()
        seconds = {name: sensors.idle_tick(name) for name in sensors.names}
        _make_looks_due(folder)
        looks_due = sensors.idle_tick(PLANNER)
    print(json.dumps({"sensors": seconds, "planner_with_looks_due": looks_due, "rounds": rounds}))


class Sensors:
    """Ticks as Dagster's daemon asks for them, with the cursors that it keeps. Runs are not executed: what has arrived
    stays pending, and the sensors know that they have started it."""

    def __init__(self, project: Project, settings: Settings, instance: dg.DagsterInstance) -> None:
        self._project = project
        self._instance = instance
        self._repository = project_definitions(project, settings).get_repository_def()
        self._cursors: dict[str, str | None] = {}
        self.names = [sensor.name for sensor in self._repository.sensor_defs]

    def tick(self, name: str) -> float:
        started = time.perf_counter()
        with dg.build_sensor_context(
            instance=self._instance,
            cursor=self._cursors.get(name),
            repository_def=self._repository,
            resources={"project": project_resource(self._project)},
        ) as context:
            found = self._repository.get_sensor_def(name).evaluate_tick(context)
        seconds = time.perf_counter() - started
        self._cursors[name] = found.cursor
        self._said = found.skip_message
        return seconds

    def idle_tick(self, name: str) -> float:
        seconds = self.tick(name)
        if self._said is None:
            raise SystemExit(f"{name} started runs: there was something to do")
        return seconds

    def tick_until_idle(self) -> int:
        for number in range(1, _MOST_ROUNDS):
            busy = [name for name in self.names if not self._is_idle(name)]
            if not busy:
                return number
        raise SystemExit("the sensors never came to an end")

    def _is_idle(self, name: str) -> bool:
        self.tick(name)
        return name not in _IDLE or self._said == _IDLE[name]


def _make_looks_due(folder: Path) -> None:
    """As if a minute had gone by."""
    before = (datetime.now(UTC) - EVERY - timedelta(seconds=1)).isoformat(timespec="microseconds")
    with sqlite3.connect(folder / ".hakiri" / "audit.sqlite") as audit:
        audit.execute("UPDATE source_look SET looked_at = ?", (before,))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
