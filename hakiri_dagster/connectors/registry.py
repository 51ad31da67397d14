"""Connectors by the name that manifests use. Each is imported when it is first asked for."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from hakiri_dagster.connectors.contract import NO_NETWORK, Connector, SourceTable
from hakiri_dagster.connectors.network import Network
from hakiri_dagster.errors import UsageError
from hakiri_dagster.manifest.tables import Table


def connector(name: str) -> Connector:
    match name:
        case "files":
            from hakiri_dagster.connectors.files.connector import FILES

            return FILES
        case "postgres":
            from hakiri_dagster.connectors.postgres import POSTGRES

            return POSTGRES
        case "rest":
            from hakiri_dagster.connectors.rest.connector import REST

            return REST
        case _:
            hint = "`files`, `postgres` and `rest` are the connectors"
            raise UsageError(f"there is no connector `{name}`", hint=hint)


def source_table(table: Table, config: Mapping[str, Any] | None = None, network: Network = NO_NETWORK) -> SourceTable:
    """`config`: the source's own with what only a run knows, such as the embedded server's URL."""
    return connector(table.source.connector).table(
        config=table.source.config if config is None else config,
        name=table.name,
        path=table.path,
        columns=table.columns,
        label=table.label,
        keeps_misfits=table.contract == "discard_value",
        endpoint=table.endpoint,
        key=table.upsert_key,
        network=network,
        sub_microseconds=table.load.sub_microseconds,
    )
