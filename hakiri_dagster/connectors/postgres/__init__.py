"""Tables of a PostgreSQL database as sources."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from hakiri_dagster.connectors.contract import NO_NETWORK, NOTHING_SAID, Connector, SourceTable
from hakiri_dagster.connectors.network import Network
from hakiri_dagster.connectors.postgres.config import SourceConfig, problems
from hakiri_dagster.connectors.postgres.table import PostgresTable
from hakiri_dagster.manifest.load_spec import SubMicroseconds


class _Postgres:
    def check_config(self, config: Mapping[str, Any], table: str, path: str | None) -> Sequence[str]:
        told = list(problems(config, table))
        return told if path is None else [*told, "`path` has no meaning for a PostgreSQL table"]

    def table(
        self,
        *,
        config: Mapping[str, Any],
        name: str,
        path: str | None,
        columns: Mapping[str, str],
        label: str,
        keeps_misfits: bool = False,
        endpoint: Mapping[str, Any] = NOTHING_SAID,
        key: Sequence[str] = (),
        network: Network = NO_NETWORK,
        sub_microseconds: SubMicroseconds = "warn",
    ) -> SourceTable:
        return PostgresTable(SourceConfig.of(config, hurried=network.hurried), name, label)


POSTGRES: Connector = _Postgres()
