"""A row that the target refuses, as JSON: read by a table that refuses nothing."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

import psycopg
from psycopg import sql

from hakiri_dagster.destinations.contract import KEPT_ID_COLUMN, SOURCE_FILE_HASH_COLUMN
from hakiri_dagster.destinations.postgres.catalog import BaseType, base_types, stored_name
from hakiri_dagster.destinations.postgres.connection import Connection
from hakiri_dagster.destinations.postgres.copy import copy_blocks
from hakiri_dagster.destinations.postgres.refused_rows import RefusedRow
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
    "SELECT (SELECT pg_catalog.jsonb_object_agg(named, value) FROM (VALUES {pairs}) AS pairs (named, value))::text, "
    "{hash}::text::bytea, {kept_id}::text::bigint FROM {place} AS kept WHERE {which}"
)
_AS_TEXT = sql.SQL(
    "SELECT pg_catalog.jsonb_build_object('row', kept::text)::text, {hash}::text::bytea, {kept_id}::text::bigint "
    "FROM {place} AS kept WHERE {which}"
)
# JSON has no negative zero and nothing infinite; a `real` is what it is as a `double precision`.
_FLOAT = sql.SQL("""
CASE {0}::text WHEN '-0' THEN '"-0.0"' WHEN 'NaN' THEN '"nan"' WHEN 'Infinity' THEN '"inf"' WHEN '-Infinity'
               THEN '"-inf"' ELSE pg_catalog.to_jsonb({0}::double precision) END
""")
_TEXT = sql.SQL("pg_catalog.to_jsonb({0}::text)")
_ANY = sql.SQL("true")
_REFUSED = sql.Identifier("pg_temp", "hakiri_refused")
_RAW = sql.Identifier("pg_temp", "hakiri_refused_raw")


PLACE = "_hakiri_place"
"""Which row of the candidate it is: the name of a column of staged rows."""


class JsonOfRows:
    """For one table. What it makes, and brings there, goes with the transaction that is open."""

    def __init__(
        self,
        connection: Connection,
        relation: sql.Identifier,
        columns: Sequence[str],
        texts: Collection[str],
        *,
        binary: bool,
    ) -> None:
        self._connection = connection
        self._texts = texts
        self._columns = tuple(columns)
        stored = list(map(stored_name, columns))
        made = connection.execute(_LENIENT, (relation.as_string(connection), stored)).fetchone()
        assert made is not None  # an aggregate
        connection.execute(str(made[0]).encode())
        kind = sql.SQL("bytea" if binary else "text")
        raw = sql.SQL(", ").join(sql.SQL("{} {}").format(sql.Identifier(column), kind) for column in stored)
        connection.execute(sql.SQL("CREATE TEMPORARY TABLE hakiri_refused_raw ({}) ON COMMIT DROP").format(raw))

    def of(self, encoded: bytes) -> RefusedRow:
        """A value that is none of its column's type is shown as it travelled."""
        try:
            return self._read(_REFUSED, encoded)
        except psycopg.DataError:
            return self._read(_RAW, encoded)

    def _read(self, place: sql.Identifier, encoded: bytes) -> RefusedRow:
        with self._connection.transaction(force_rollback=True):
            copy_blocks(self._connection, place, self._columns, iter([encoded]))
            return row_of(self._connection, place, self._columns, self._texts)


def row_of(
    connection: Connection,
    place: sql.Identifier,
    columns: Sequence[str],
    texts: Collection[str],
    which: sql.Composable = _ANY,
) -> RefusedRow:
    """The only row of `place`, or the one of which `which` is true. `texts`: columns that are texts at the source."""
    types = _types(connection, place)
    pairs = [
        sql.SQL("({}::text, {})").format(sql.Literal(column), _form(column, types, texts))
        for column in columns
        if not is_ours(column)
    ]
    parts = {
        "hash": _own(SOURCE_FILE_HASH_COLUMN, columns),
        "kept_id": _own(KEPT_ID_COLUMN, columns),
        "place": place,
        "which": which,
    }
    try:
        with connection.transaction():
            row = connection.execute(_AS_JSON.format(pairs=sql.SQL(", ").join(pairs), **parts)).fetchone()
    except psycopg.DataError:  # a column of type json may hold what jsonb does not take
        row = connection.execute(_AS_TEXT.format(**parts)).fetchone()
    assert row is not None  # it was brought there
    return RefusedRow(*row)


def _own(column: str, columns: Sequence[str]) -> sql.Composable:
    return sql.Identifier(column) if column in columns else sql.NULL


def _types(connection: Connection, place: sql.Identifier) -> Mapping[str, BaseType]:
    row = connection.execute("SELECT to_regclass(%s)::oid::bigint", (place.as_string(connection),)).fetchone()
    assert row is not None  # a SELECT without FROM
    return base_types(connection, row[0])


def _form(column: str, types: Mapping[str, BaseType], texts: Collection[str]) -> sql.Composed:
    """As the workers write it of a row that they set aside (`pipeline.row_json`), so that it can be read again."""
    kept = stored_name(column)
    value, type_ = sql.Identifier("kept", kept), types[kept].type
    if column in texts:
        return _TEXT.format(value)
    match type_.name if not type_.dimensions else None:
        case "numeric":
            form = _TEXT
        case "bytea":
            form = sql.SQL("pg_catalog.to_jsonb(pg_catalog.encode({0}, 'hex'))")
        case "real" | "double precision":
            form = _FLOAT
        case _:
            form = sql.SQL("pg_catalog.to_jsonb({0})")
    return form.format(value)
