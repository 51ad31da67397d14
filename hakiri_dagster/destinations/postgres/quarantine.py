"""The table of rows that were set aside, with the reason; written in a transaction of its own, so that it outlives
a load that a gate stopped."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from itertools import chain
from typing import LiteralString

from psycopg import sql

from hakiri_dagster.destinations.contract import BadRow, Load
from hakiri_dagster.destinations.postgres import fence
from hakiri_dagster.destinations.postgres.catalog import schema_exists, stored_name, target_of
from hakiri_dagster.destinations.postgres.connection import Connection, relation
from hakiri_dagster.destinations.postgres.conversion import kind_of
from hakiri_dagster.destinations.postgres.cursor_bounds import within_intervals
from hakiri_dagster.destinations.postgres.cursor_order import cursor_type
from hakiri_dagster.destinations.postgres.earlier_loads import replaced_by
from hakiri_dagster.destinations.postgres.types import parse_type
from hakiri_dagster.planning.chunks import CursorRange

_TABLE = """
CREATE TABLE IF NOT EXISTS {table} (
    id bigserial PRIMARY KEY,
    "pipelineId" text NOT NULL,
    "runId" text NOT NULL,
    "nodeId" text NOT NULL,
    "ruleId" text NOT NULL,
    "row" jsonb NOT NULL,
    "createdAt" timestamptz NOT NULL DEFAULT now(),
    message text,
    "sourceFile" text,
    "chunkKey" text,
    "loadId" bigint,
    attempt integer,
    target text,
    "onFail" text,
    "sourceLine" bigint)
"""

_LOCK = "SELECT pg_advisory_xact_lock(pg_catalog.hashtextextended('hakiri quarantine ' || %s::text, 0::bigint))"
_COLUMNS = """
SELECT a.attname
FROM pg_attribute a JOIN pg_class c ON c.oid = a.attrelid JOIN pg_namespace n ON n.oid = c.relnamespace
WHERE n.nspname = %s AND c.relname = %s AND c.relkind IN ('r', 'p') AND a.attnum > 0 AND NOT a.attisdropped
"""

# A table in the seed's own shape, made by another tool, gets what it lacks.
ADDED: Mapping[str, str] = {
    "message": "text", "sourceFile": "text", "chunkKey": "text", "loadId": "bigint", "attempt": "integer",
    "target": "text", "onFail": "text", "sourceLine": "bigint",
}  # fmt: skip

# Those of a table of the same name with another target stay: another project may keep its rows here too.
_OF_TABLE: LiteralString = """
DELETE FROM {table}
WHERE "pipelineId" = %(pipeline)s AND "nodeId" = %(table)s AND (target IS NULL OR target = %(target)s)
"""

# What earlier tries of this slice set aside, and what the loads of its chunk had that this one replaces; of loads that
# it replaces in part, the rows that it reads again. Rows of other published slices of the chunk stay.
_FORGET: LiteralString = f"""{_OF_TABLE}
  AND ("chunkKey" = %(chunk)s
       AND ("loadId" = ANY(%(replaced)s) OR NOT EXISTS (SELECT FROM hakiri.ledger WHERE load_id = "loadId"))
       OR "loadId" = ANY(%(partly)s) AND {{read_again}})
"""

_FORGET_REPLACED: LiteralString = f"""{_OF_TABLE}
  AND "loadId" = ANY(%(replaced)s)
"""

_COPY = """
COPY {table} ("pipelineId", "runId", "nodeId", "chunkKey", "loadId", attempt, target, "ruleId", message, "sourceFile",
              "onFail", "sourceLine", "row")
FROM STDIN
"""
_CHARACTERS_AT_ONCE = 256 * 1024


def keep(connection: Connection, load: Load, rows: Iterator[BadRow]) -> int:
    """Replaces what earlier tries of the slice kept. The table is made when the first row comes."""
    fence.name_attempt(connection, load)  # a later claim ends it, should it hang while it holds the fence
    fence.check_fence(connection, load, lock=True)
    schema, name = load.table.quarantine_table
    first = next(rows, None)
    present = columns_of(connection, schema, name)
    if first is not None and not present:
        _ensure(connection, schema, name, exists=False)
    complete(connection, schema, name, present)
    if present:
        _forget(connection, load)
    return _copy(connection, load, chain([first], rows), schema, name) if first is not None else 0


def complete(connection: Connection, schema: str, name: str, present: set[str]) -> None:
    """A table that another tool has made, or an earlier version, gets the columns that it lacks."""
    if present and not present >= ADDED.keys():
        _ensure(connection, schema, name, exists=True)


def columns_of(connection: Connection, schema: str, name: str) -> set[str]:
    """None of a table that is not there."""
    return {column for (column,) in connection.execute(_COLUMNS, (stored_name(schema), stored_name(name)))}


def _ensure(connection: Connection, schema: str, name: str, *, exists: bool) -> None:
    table = relation(schema, name)
    connection.execute(_LOCK, (schema,))
    if not schema_exists(connection, schema):
        connection.execute(sql.SQL("CREATE SCHEMA {}").format(sql.Identifier(schema)))
    if exists:
        added = [
            sql.SQL("ADD COLUMN IF NOT EXISTS {} {}").format(sql.Identifier(column), sql.SQL(kind))
            for column, kind in ADDED.items()
        ]
        connection.execute(sql.SQL("ALTER TABLE {} {}").format(table, sql.SQL(", ").join(added)))
        return
    connection.execute(sql.SQL(_TABLE).format(table=table))
    connection.execute(
        sql.SQL('CREATE INDEX IF NOT EXISTS {} ON {} ("pipelineId", "runId")').format(
            sql.Identifier(_index_name(name)), table
        )
    )


def make(connection: Connection, schema: str, name: str) -> None:
    _ensure(connection, schema, name, exists=False)


def rename(connection: Connection, old: tuple[str, str], new: tuple[str, str]) -> None:
    """Rename a quarantine table together with its index, in its schema."""
    (schema, name), (_, new_name) = old, new
    connection.execute(sql.SQL("ALTER TABLE {} RENAME TO {}").format(relation(schema, name), sql.Identifier(new_name)))
    connection.execute(
        sql.SQL("ALTER INDEX IF EXISTS {} RENAME TO {}").format(
            relation(schema, _index_name(name)), sql.Identifier(_index_name(new_name))
        )
    )


def _index_name(name: str) -> str:
    suffix = "_pipeline_idx"
    return name.encode()[: 63 - len(suffix)].decode(errors="ignore") + suffix


def forget_replaced(connection: Connection, load: Load, replaced: Collection[int]) -> None:
    """In the publish transaction: until then the loads of other chunks that this one replaces stand, and where a gate
    refuses this one, what they set aside is not read again."""
    schema, name = load.table.quarantine_table
    if replaced and load.table.validation.quarantine.enabled and columns_of(connection, schema, name) >= ADDED.keys():
        _delete(connection, load, _FORGET_REPLACED, replaced)


def _forget(connection: Connection, load: Load) -> None:
    replaced = replaced_by(connection, load)
    _delete(connection, load, _FORGET, replaced.superseded, replaced.partly)


def _is_read_again(load: Load) -> sql.Composable:
    """The condition that the cursor of a quarantined row lies within the slice, by the row's JSON."""
    bounds, cursor = load.slice.bounds, load.table.cursor
    kind = None if cursor is None else cursor_type(load.target, cursor)
    if not isinstance(bounds, CursorRange) or cursor is None or kind is None:
        return sql.SQL("false")
    column = sql.SQL('("row" ->> {})::{}').format(sql.Literal(cursor), sql.SQL("numeric" if _is_number(kind) else kind))
    return within_intervals(column, kind, [bounds.interval])


def _is_number(column_type: str) -> bool:
    kept = parse_type(column_type)
    return kept is not None and kind_of(kept) in ("integer", "numeric", "float")


def _delete(
    connection: Connection,
    load: Load,
    statement: LiteralString,
    replaced: Collection[int],
    partly: Collection[int] = (),
) -> None:
    connection.execute(
        sql.SQL(statement).format(table=relation(*load.table.quarantine_table), read_again=_is_read_again(load)),
        {
            "pipeline": load.table.pipeline_id,
            "table": load.table.name,
            "target": target_of(load.table),
            "chunk": load.slice.chunk.key,
            "replaced": list(replaced),
            "partly": list(partly),
        },
    )


def _copy(connection: Connection, load: Load, rows: Iterable[BadRow], schema: str, name: str) -> int:
    lines = _lines(load, rows)
    with connection.cursor() as cursor:
        with cursor.copy(sql.SQL(_COPY).format(table=relation(schema, name))) as copy:
            for some in _some_at_once(lines):
                copy.write(some)
        return cursor.rowcount


def _lines(load: Load, rows: Iterable[BadRow]) -> Iterator[str]:
    """As COPY reads them. Every row of a load may be here: what many have in common is written out once."""
    table, fence = load.table, load.fence
    ours = (table.pipeline_id, load.run_id, table.name, load.slice.chunk.key, fence.load_id, load.attempt)
    about: tuple[str | None, ...] = ()
    before = ""
    for row in rows:
        reason = (row.rule, row.message, row.source_file, row.on_fail)
        if reason != about:
            before = "\t".join(map(_field, (*ours, target_of(table), *reason)))
            about = reason
        yield f"{before}\t{_field(row.source_line)}\t{_field(row.row)}\n"


def _some_at_once(lines: Iterable[str]) -> Iterator[str]:
    some: list[str] = []
    size = 0
    for line in lines:
        some.append(line)
        size += len(line)
        if size >= _CHARACTERS_AT_ONCE:
            yield "".join(some)
            some, size = [], 0
    yield "".join(some)


def _field(value: str | int | None) -> str:
    """Messages quote what was read, which may hold what PostgreSQL cannot store."""
    if value is None:
        return "\\N"
    if isinstance(value, int):
        return str(value)
    value = value.replace("\\", "\\\\").replace("\n", "\\n").replace("\r", "\\r").replace("\t", "\\t")
    return value.replace("\0", "\\\\u0000")
