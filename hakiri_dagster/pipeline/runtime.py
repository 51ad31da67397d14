"""A project, opened: its audit DB, embedded PostgreSQL, sources and destinations, each when it is first needed."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import ExitStack
from functools import cached_property
from typing import Any

from hakiri_dagster.audit.database import AuditDb, open_audit
from hakiri_dagster.connectors.contract import SourceTable, SparkProvider
from hakiri_dagster.connectors.registry import source_table
from hakiri_dagster.destinations.contract import Destination
from hakiri_dagster.destinations.registry import open_destination
from hakiri_dagster.engine.embedded_postgres import Server, hold
from hakiri_dagster.engine.process_identity import ProcessIdentity
from hakiri_dagster.manifest.tables import Endpoint, Project, Table
from hakiri_dagster.pipeline.way import Observer, SilentObserver, Way
from hakiri_dagster.settings import Settings

WAREHOUSE = "warehouse"
DAGSTER = "dagster"
_EMBEDDED_CONNECTORS = ("postgres", "context")


class Runtime:
    def __init__(self, project: Project, settings: Settings, observer: Observer | None = None) -> None:
        self.project = project
        self.settings = settings
        self.observer = observer or SilentObserver()
        self._opened = ExitStack()
        self._destinations: dict[str, Destination] = {}

    def __enter__(self) -> Runtime:
        return self

    def __exit__(self, *_exc: object) -> None:
        self.close()

    def close(self) -> None:
        self._opened.close()

    @cached_property
    def server(self) -> Server:
        return self._opened.enter_context(hold(self.project.state_dir / "postgres"))

    @cached_property
    def audit(self) -> AuditDb:
        return self._opened.enter_context(open_audit(self.project.audit_url, self.project.state_dir))

    @cached_property
    def dagster_url(self) -> str:
        return self.settings.dagster_url or self._embedded_url(DAGSTER)

    def source(self, table: Table) -> SourceTable:
        return source_table(table, self._with_url(table.source))

    def destination(self, table: Table) -> Destination:
        config = self._with_url(table.destination)
        key = f"{table.destination.connector} {sorted(config.items())}"
        if key not in self._destinations:
            opened = open_destination(table.destination.connector, config, label=table.label)
            self._opened.callback(opened.close)
            self._destinations[key] = opened
        return self._destinations[key]

    def way(self, table: Table, spark: SparkProvider, *, run_id: str, log: Callable[[str], None]) -> Way:
        return Way(
            table=table,
            source=self.source(table),
            destination=self.destination(table),
            audit=self.audit,
            spark=spark,
            settings=self.settings,
            candidates=self._candidates,
            run_id=run_id,
            holder=str(ProcessIdentity.current()),
            log=log,
            observer=self.observer,
            revive=self._revive,
        )

    @property
    def _candidates(self) -> Any:
        from pathlib import Path

        chosen = self.settings.candidates_dir
        return Path(chosen) if chosen else self.project.state_dir / "candidates"

    def _revive(self) -> None:
        """After a lost connection: the embedded server may have been killed."""
        if "server" in self.__dict__:
            self.server.ensure_running()

    def _with_url(self, endpoint: Endpoint) -> Mapping[str, Any]:
        if endpoint.connector not in _EMBEDDED_CONNECTORS or endpoint.config.get("url"):
            return endpoint.config
        return {**endpoint.config, "url": self._embedded_url(WAREHOUSE)}

    def _embedded_url(self, database: str) -> str:
        self.server.ensure_database(database)
        return self.server.url(database)
