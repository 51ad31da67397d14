"""One read-only transaction on the source, from the driver."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import closing, contextmanager

import psycopg
from psycopg import Connection, IsolationLevel, sql
from psycopg.rows import TupleRow

from hakiri_dagster.connectors.postgres.config import SourceConfig
from hakiri_dagster.connectors.postgres.failures import source_errors

# So that text forms are the same whatever role and database say, and short reads wait for no compiler.
_SETTINGS = {
    "timezone": "UTC",
    "datestyle": "ISO, YMD",
    "intervalstyle": "postgres",
    "bytea_output": "hex",
    "extra_float_digits": "1",
    "lc_monetary": "C",
    "jit": "off",
}


def _settings(pairs: Iterable[tuple[str, str]]) -> str:
    """One statement, for the transaction it is run in."""
    calls = (sql.SQL("set_config({}, {}, true)").format(sql.Literal(name), sql.Literal(value)) for name, value in pairs)
    return sql.SQL("SELECT {}").format(sql.SQL(", ").join(calls)).as_string()


def session_settings(config: SourceConfig, *limits: tuple[str, str]) -> str:
    """Return the statement that every reading transaction begins with, in the driver and in Spark's workers."""
    row_security = () if config.row_security else (("row_security", "off"),)
    return _settings([*_SETTINGS.items(), *row_security, *limits])


def connect(config: SourceConfig, where: str) -> Connection[TupleRow]:
    with source_errors(config, where):
        # Server-side prepared statements do not survive a transaction pooler.
        connection = psycopg.connect(config.conninfo, prepare_threshold=None)
        connection.isolation_level = IsolationLevel.REPEATABLE_READ
        connection.read_only = True
        return connection


@contextmanager
def source_transaction(config: SourceConfig, where: str) -> Iterator[Connection[TupleRow]]:
    with source_errors(config, where), closing(connect(config, where)) as connection:
        connection.execute(session_settings(config, *config.limits))
        yield connection
