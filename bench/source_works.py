"""What it costs that loads lose no late commits."""

from __future__ import annotations

import statistics
import time
from collections.abc import Iterator
from contextlib import ExitStack
from typing import Final

import psycopg
from drive import Engine
from measuring import Bench, Row, limited
from pipelines import BUSY_SOURCE
from psycopg import sql

from hakiri_dagster.connectors.postgres.catalog import describe
from hakiri_dagster.connectors.postgres.config import SourceConfig
from hakiri_dagster.connectors.postgres.connection import source_transaction
from hakiri_dagster.connectors.postgres.cursors import cursor_of, extent
from hakiri_dagster.connectors.postgres.transactions import list_transactions

_SESSIONS: Final = 20
_ROUNDS: Final = 100
_TABLE: Final = sql.Identifier("origin", "events")
_ROWS: Final = 1_000_000
_CHANGES: Final = 2_000
_OPEN_SECONDS: Final = 3


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
                listed = list_transactions(connection, config, cursor, _TABLE.as_string(connection))
                seconds.append(time.perf_counter() - began)
                if len(listed.open) != _SESSIONS:
                    raise SystemExit(f"{len(listed.open)} transactions are listed, {_SESSIONS} are open")
    bench.warehouse.forget("origin")
    yield limited("list the open transactions of a source", statistics.median(seconds) * 1000, "ms", 5)


def busy_source(bench: Bench) -> Iterator[Row]:
    """What loads read again of a source in which a transaction is open for three seconds, while others commit."""
    bench.warehouse.forget("origin")
    bench.warehouse.run(sql.SQL("CREATE SCHEMA origin"))
    columns = sql.SQL("id bigserial PRIMARY KEY, created_at timestamptz NOT NULL DEFAULT now(), body text")
    bench.warehouse.run(sql.SQL("CREATE TABLE {} ({})").format(_TABLE, columns))
    history = "INSERT INTO {} (created_at, body) SELECT now() - n * interval '1 minute', 'old' FROM"
    bench.warehouse.run(sql.SQL(history + " generate_series({}, 1, -1) n").format(_TABLE, _ROWS))
    bench.warehouse.run(sql.SQL("CREATE INDEX ON {} (created_at)").format(_TABLE))
    bench.warehouse.run(sql.SQL("VACUUM ANALYZE {}").format(_TABLE))
    with bench.project(BUSY_SOURCE) as project, Engine(project.folder, project.env) as engine:
        engine.apply("work")
        idle = engine.apply("work")
        before = _rows_scanned(bench)
        with psycopg.connect(bench.warehouse.url) as late, psycopg.connect(bench.warehouse.url) as prompt:
            began = time.monotonic()
            _insert(late, 1)
            for left in range(_CHANGES, 0, -1):
                _insert(prompt, 1)
                prompt.commit()
                time.sleep(max(0.0, began + _OPEN_SECONDS - time.monotonic()) / left)
            busy = engine.apply("work")
            late.commit()
        again = engine.apply("work")
        scanned = _rows_scanned(bench) - before
        stored = bench.warehouse.count("measured", "events")
    bench.warehouse.forget("origin")
    if (idle.rows, stored) != (0, _ROWS + _CHANGES + 1):
        raise SystemExit(f"an idle source sent {idle.rows} rows; {stored} rows are stored")
    bench.told(f"loaded beside the open transaction: {busy.rows} rows, after it: {again.rows}")
    title = f"read again after a transaction of {_OPEN_SECONDS} s, of rows that changed meanwhile"
    yield limited(title, again.rows / (_CHANGES + 1), "x", 1.01)
    yield limited(f"read of a table of {_ROWS:,} rows by scanning it", scanned, "rows", 0)


def _insert(connection: psycopg.Connection, rows: int) -> None:
    statement = sql.SQL("INSERT INTO {} (body) SELECT 'new' FROM generate_series(1, {})")
    connection.execute(statement.format(_TABLE, rows))


def _rows_scanned(bench: Bench) -> int:
    with psycopg.connect(bench.warehouse.url, autocommit=True) as connection:
        connection.execute("SELECT pg_stat_force_next_flush()")
        found = connection.execute(
            "SELECT seq_tup_read FROM pg_stat_user_tables WHERE schemaname = 'origin'"
        ).fetchone()
    return int(found[0]) if found else 0
