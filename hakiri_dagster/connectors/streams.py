"""Where a stream of changes will come in. For now a gate: what it lacks is told, and nothing is read."""

from __future__ import annotations

from typing import NoReturn

from hakiri_dagster.errors import StreamRefused
from hakiri_dagster.manifest.tables import Table
from hakiri_dagster.settings import Settings

_DOCS = "https://debezium.io/documentation/reference/stable/connectors/postgresql.html"


def open_stream(table: Table, settings: Settings) -> NoReturn:
    if not settings.streaming_enabled:
        raise StreamRefused(
            "streaming disabled",
            where=table.label,
            hint=f"load mode {table.mode} needs a stream: set FLOW_STREAMING_ENABLED=true where hakiri runs",
        )
    raise StreamRefused(
        f"Debezium connector not configured, see {_DOCS}",
        where=table.label,
        hint="this version has no streaming runtime yet: use upsert with a cursor that every change moves",
    )
