"""Ticks of schedules and sensors, and the runs that they ask for, as Dagster's daemon has them made."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from datetime import UTC, datetime, timedelta
from typing import Any

import dagster as dg

from hakiri_dagster.audit.database import SQLITE_FILE
from hakiri_dagster.definitions import project_definitions
from hakiri_dagster.manifest.project import load_project
from hakiri_dagster.orchestration.names import PLANNER
from hakiri_dagster.orchestration.resources import OpenProject
from hakiri_dagster.pipeline.runtime import Runtime
from tests.integration.orchestration.conftest import ShopProject
from tests.queued_runs import queued_run

ORDERS = dg.AssetKey(["shop", "orders"])
NOW = datetime.now(UTC)


class Daemon:
    """Dagster loads the project when it starts, and once more in the process of each run."""

    def __init__(self, shop: ShopProject) -> None:
        self._shop = shop
        self._loaded = self._load()

    def tick(self) -> Any:
        """What the schedule asks for."""
        with (
            self._shop.runtime() as runtime,
            dg.build_schedule_context(
                instance=self._shop.instance,
                scheduled_execution_time=NOW,
                resources={"project": OpenProject(runtime)},
                repository_def=self._loaded.get_repository_def(),
            ) as context,
        ):
            return self._loaded.resolve_schedule_def("shop").evaluate_tick(context)

    def look(self) -> str:
        """What the planner says, a minute after its last tick."""
        data = self.sensor(PLANNER)
        assert not data.run_requests
        return str(data.skip_message)

    def sensor(self, name: str, cursor: str | None = None, *, after: timedelta = timedelta(hours=1)) -> Any:
        with self._shop.runtime() as runtime, _audit_file(runtime) as audit:
            then = datetime.now(UTC) - after
            audit.execute("UPDATE source_look SET looked_at = ?", (then.isoformat(),))
        with (
            self._shop.runtime() as runtime,
            dg.build_sensor_context(
                instance=self._shop.instance,
                cursor=cursor,
                resources={"project": OpenProject(runtime)},
                repository_def=self._loaded.get_repository_def(),
            ) as context,
        ):
            return self._loaded.resolve_sensor_def(name).evaluate_tick(context)

    def run(self, requests: Sequence[dg.RunRequest]) -> None:
        for request in requests:
            job = self._load().resolve_implicit_global_asset_job_def()
            job.execute_in_process(
                instance=self._shop.instance,
                asset_selection=list(request.asset_selection or ()),
                partition_key=request.partition_key,
                tags=dict(request.tags),
                raise_on_error=False,
            )

    def queue(self, request: dg.RunRequest) -> str:
        """As the daemon does it, which leaves the start to its queue."""
        return queued_run(self._shop.instance, request.tags, request.asset_selection)

    def partitions(self) -> list[str]:
        """As somebody sees them who reloads the project."""
        definition = self._load().resolve_assets_def(ORDERS).partitions_def
        assert definition is not None
        return list(definition.get_partition_keys(dynamic_partitions_store=self._shop.instance))

    def _load(self) -> dg.Definitions:
        return project_definitions(load_project(self._shop.root, env=self._shop.env), self._shop.settings)


@contextmanager
def _audit_file(runtime: Runtime) -> Iterator[sqlite3.Connection]:
    _ = runtime.audit  # made, if it is not there yet
    with closing(sqlite3.connect(runtime.project.state_dir / SQLITE_FILE)) as connection, connection:
        yield connection
