"""What it costs that loads lose no late commits."""

from __future__ import annotations

import statistics
import time
from collections.abc import Iterator
from contextlib import ExitStack
from typing import Final

import psycopg
from measuring import Bench, Row, limited
from psycopg import sql

from hakiri_dagster.connectors.postgres.catalog import describe
from hakiri_dagster.connectors.postgres.config import SourceConfig
from hakiri_dagster.connectors.postgres.connection import source_transaction
from hakiri_dagster.connectors.postgres.cursors import cursor_of, extent
from hakiri_dagster.connectors.postgres.transactions import list_transactions

_SESSIONS: Final = 20
_ROUNDS: Final = 100
_TABLE: Final = sql.Identifier("origin", "events")


def horizon(bench: Bench) -> Iterator[Row]:
    """The one query that a survey of an idle source makes more, beside sessions in a transaction."""
    bench.warehouse.forget("origin")
    bench.warehouse.run(sql.SQL("CREATE SCHEMA origin"))
    bench.warehouse.run(sql.SQL("CREATE TABLE {} (id bigserial PRIMARY KEY)").format(_TABLE))
    bench.warehouse.run(sql.SQL("INSERT INTO {} SELECT FROM generate_series(1, 100000)").format(_TABLE))
    config, seconds = SourceConfig.of({"url": bench.warehouse.url}), list[float]()
    with ExitStack() as sessions:
        for _ in range(_SESSIONS):
            sessions.enter_context(psycopg.connect(bench.warehouse.url)).execute("SELECT")
        for _ in range(_ROUNDS):
            with source_transaction(config, "events") as connection:
                relation = describe(connection, "origin", "events", "events")
                cursor = cursor_of(relation, "id", frozenset(), "events")
                extent(connection, _TABLE, cursor, relation, "events")
                began = time.perf_counter()
                listed = list_transactions(connection, config, relation, cursor, _TABLE.as_string(connection))
                seconds.append(time.perf_counter() - began)
                if len(listed.open) != _SESSIONS:
                    raise SystemExit(f"{len(listed.open)} transactions are listed, {_SESSIONS} are open")
    bench.warehouse.forget("origin")
    yield limited("list the open transactions of a source", statistics.median(seconds) * 1000, "ms", 5)
