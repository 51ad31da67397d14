"""A row that the target refuses, as JSON: read by a table that refuses nothing."""

from __future__ import annotations

from collections.abc import Sequence

import psycopg
from psycopg import sql

from hakiri_dagster.destinations.contract import SOURCE_FILE_HASH_COLUMN
from hakiri_dagster.destinations.postgres.catalog import stored_name
from hakiri_dagster.destinations.postgres.connection import Connection
from hakiri_dagster.destinations.postgres.copy import copy_blocks
from hakiri_dagster.planning.columns import is_ours

# A domain as what it is based on, down to what is no domain; a declared length is left out.
_LENIENT = """
WITH RECURSIVE base (attname, typid) AS (
    SELECT attname, atttypid FROM pg_attribute WHERE attrelid = to_regclass(%s) AND attname = ANY(%s)
  UNION ALL
    SELECT b.attname, t.typbasetype FROM base b JOIN pg_type t ON t.oid = b.typid WHERE t.typtype = 'd')
SELECT pg_catalog.format('CREATE TEMPORARY TABLE hakiri_refused (%%s) ON COMMIT DROP',
              string_agg(pg_catalog.format('%%I %%s', b.attname, format_type(b.typid, -1)), ', '))
FROM base b JOIN pg_type t ON t.oid = b.typid WHERE t.typtype <> 'd'
"""
_AS_JSON = sql.SQL(
    "SELECT (pg_catalog.to_jsonb(kept) - {left_out}::text[])::text, {hash}::text::bytea FROM {place} AS kept"
    " WHERE {which}"
)
_AS_TEXT = sql.SQL(
    "SELECT pg_catalog.jsonb_build_object('row', kept::text)::text, {hash}::text::bytea FROM {place} AS kept"
    " WHERE {which}"
)
_ANY = sql.SQL("true")
_REFUSED = sql.Identifier("pg_temp", "hakiri_refused")
_RAW = sql.Identifier("pg_temp", "hakiri_refused_raw")


PLACE = "_hakiri_place"
"""Which row of the candidate it is: the name of a column of staged rows."""


class JsonOfRows:
    """For one table. What it makes, and brings there, goes with the transaction that is open."""

    def __init__(
        self, connection: Connection, relation: sql.Identifier, columns: Sequence[str], *, binary: bool
    ) -> None:
        self._connection = connection
        self._columns = tuple(map(stored_name, columns))
        made = connection.execute(_LENIENT, (relation.as_string(connection), list(self._columns))).fetchone()
        assert made is not None  # an aggregate
        connection.execute(str(made[0]).encode())
        kind = sql.SQL("bytea" if binary else "text")
        raw = sql.SQL(", ").join(sql.SQL("{} {}").format(sql.Identifier(column), kind) for column in self._columns)
        connection.execute(sql.SQL("CREATE TEMPORARY TABLE hakiri_refused_raw ({}) ON COMMIT DROP").format(raw))

    def of(self, encoded: bytes) -> tuple[str, bytes | None]:
        """The row, less our own columns, and the hash of the file that it is from. A value that is none of its column's
        type is shown as it travelled."""
        try:
            return self._read(_REFUSED, encoded)
        except psycopg.DataError:
            return self._read(_RAW, encoded)

    def _read(self, place: sql.Identifier, encoded: bytes) -> tuple[str, bytes | None]:
        with self._connection.transaction(force_rollback=True):
            copy_blocks(self._connection, place, self._columns, iter([encoded]))
            return row_of(self._connection, place, self._columns)


def row_of(
    connection: Connection, place: sql.Composable, columns: Sequence[str], which: sql.Composable = _ANY
) -> tuple[str, bytes | None]:
    """The only row of `place`, or the one of which `which` is true."""
    ours = [column for column in columns if is_ours(column)]
    parts = {
        "left_out": sql.Literal([*ours, PLACE]),
        "hash": sql.Identifier(SOURCE_FILE_HASH_COLUMN) if SOURCE_FILE_HASH_COLUMN in ours else sql.NULL,
        "place": place,
        "which": which,
    }
    try:
        with connection.transaction():
            row = connection.execute(_AS_JSON.format(**parts)).fetchone()
    except psycopg.DataError:  # a column of type json may hold what jsonb does not take
        row = connection.execute(_AS_TEXT.format(**parts)).fetchone()
    assert row is not None  # it was brought there
    return row[0], row[1]
