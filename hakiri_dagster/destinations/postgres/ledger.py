"""Which slices are published: a row each, written in the transaction that makes its rows visible."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from psycopg import errors
from psycopg.types.json import Jsonb

from hakiri_dagster.destinations.contract import LedgerEntry, Load
from hakiri_dagster.destinations.postgres import watermarks
from hakiri_dagster.destinations.postgres.catalog import target_of
from hakiri_dagster.destinations.postgres.connection import Connection
from hakiri_dagster.destinations.postgres.replacement import Replacement, bounds_from_json, bounds_to_json
from hakiri_dagster.manifest.tables import Table
from hakiri_dagster.planning.mode_switch import LastLoad

# A load is superseded by one that replaced all its rows; by 0 if they are gone without a successor of the same table:
# the target was made anew, or another table's load cleared it. A replay says nothing of how far a chunk has come.
_ENTRIES = """
WITH newest AS (
    SELECT DISTINCT ON (chunk_key)
           load_id, chunk_key, bounds, rows, bytes, cursor_committed, run_id, attempt, published_at, token
    FROM hakiri.ledger
    WHERE pipeline_id = %(pipeline)s AND table_name = %(table)s AND target = %(target)s AND superseded_by IS NULL
      AND NOT is_replay
    ORDER BY chunk_key, load_id DESC)
SELECT newest.*, false FROM newest
UNION ALL
SELECT load_id, chunk_key, bounds, rows, bytes, cursor_committed, run_id, attempt, published_at, token,
       superseded_by IS NOT NULL
FROM hakiri.ledger asked
WHERE load_id = ANY(%(loads)s) AND superseded_by IS DISTINCT FROM 0
  AND pipeline_id = %(pipeline)s AND table_name = %(table)s AND target = %(target)s
  AND NOT EXISTS (SELECT FROM newest WHERE newest.load_id = asked.load_id)
"""

_ROWS_OF = """
SELECT 1 FROM hakiri.ledger
WHERE pipeline_id = %s AND table_name = %s AND target = %s AND superseded_by IS NULL AND rows > 0
LIMIT 1
"""

_LAST = """
SELECT mode, upsert_key, primary_key FROM hakiri.ledger
WHERE pipeline_id = %s AND table_name = %s AND target = %s AND superseded_by IS DISTINCT FROM 0
ORDER BY load_id DESC
LIMIT 1
"""

_ENTRY = """
SELECT load_id, chunk_key, bounds, rows, bytes, cursor_committed, run_id, attempt, published_at, token,
       superseded_by IS NOT NULL
FROM hakiri.ledger WHERE load_id = %s
"""

_CLEAR = """
UPDATE hakiri.ledger
SET superseded_by = CASE WHEN pipeline_id = %(pipeline)s AND table_name = %(table)s THEN %(load_id)s ELSE 0 END
WHERE target = %(target)s AND load_id <> %(load_id)s
  AND (superseded_by IS NULL OR superseded_by <> 0 AND (pipeline_id, table_name) <> (%(pipeline)s, %(table)s))
"""

_INSERT = """
INSERT INTO hakiri.ledger (load_id, pipeline_id, table_name, target, chunk_key, bounds, rows, bytes,
                           cursor_committed, cursor_max, run_id, attempt, mode, upsert_key, primary_key,
                           is_replay, token)
VALUES (%s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s)
RETURNING load_id, chunk_key, bounds, rows, bytes, cursor_committed, run_id, attempt, published_at, token, false
"""


def entries(connection: Connection, table: Table, loads: Collection[int]) -> Sequence[LedgerEntry]:
    """None in a destination that has no ledger yet."""
    try:
        rows = connection.execute(_ENTRIES, {**_named(table), "loads": list(loads)}).fetchall()
    except (errors.UndefinedTable, errors.InvalidSchemaName):
        return ()
    return tuple(_entry(row) for row in rows)


def last_load(connection: Connection, table: Table) -> LastLoad | None:
    """None where no rows of the table's own loads are in the target, or nothing was noted of their key."""
    if connection.execute("SELECT to_regclass('hakiri.ledger_mode_idx')").fetchone() == (None,):
        return None
    row = connection.execute(_LAST, _of(table)).fetchone()
    if row is None:
        return None
    mode, upsert_key, primary_key = row
    return LastLoad(mode, _tuple(upsert_key), _tuple(primary_key))


def _tuple(names: list[str] | None) -> tuple[str, ...] | None:
    return None if names is None else tuple(names)


def has_rows_of(connection: Connection, table: Table) -> bool:
    """Whether earlier loads of the table left rows in its target. Asked within a transaction that goes on."""
    if connection.execute("SELECT to_regclass('hakiri.ledger')").fetchone() == (None,):
        return False
    return connection.execute(_ROWS_OF, _of(table)).fetchone() is not None


def entry(connection: Connection, load_id: int) -> LedgerEntry | None:
    row = connection.execute(_ENTRY, (load_id,)).fetchone()
    return None if row is None else _entry(row)


def _entry(row: tuple[object, ...]) -> LedgerEntry:
    load_id, chunk_key, bounds, *rest, token, superseded = row
    return LedgerEntry(load_id, chunk_key, bounds_from_json(bounds), *rest, superseded, token)  # type: ignore[arg-type, call-arg] # rows are untyped


def record(
    connection: Connection,
    load: Load,
    *,
    rows: int,
    bytes_: int,
    cursor_committed: int | None,
    cursor_max: int | None,
    replaced: Replacement,
    token: str | None = None,
) -> LedgerEntry:
    if replaced.superseded:
        connection.execute(
            "UPDATE hakiri.ledger SET superseded_by = %s WHERE load_id = ANY(%s)",
            (load.fence.load_id, list(replaced.superseded)),
        )
    row = connection.execute(
        _INSERT,
        (
            load.fence.load_id,
            *_of(load.table),
            load.slice.chunk.key,
            Jsonb(bounds_to_json(load.slice.bounds)),
            rows,
            bytes_,
            cursor_committed,
            cursor_max,
            load.run_id,
            load.attempt,
            load.table.mode,
            list(load.table.upsert_key),
            list(load.table.primary_key),
            load.replay is not None,
            token,
        ),
    ).fetchone()
    assert row is not None  # INSERT … RETURNING of one row
    return _entry(row)


def clear_target(connection: Connection, load: Load) -> None:
    """What was in the target before this load is gone, other pipelines' rows as well."""
    connection.execute(_CLEAR, {**_named(load.table), "load_id": load.fence.load_id})
    watermarks.forget(connection, load.table)


def forget_target(connection: Connection, table: Table) -> None:
    """The target had to be created anew: what the ledger says was loaded into it is gone."""
    connection.execute(
        "UPDATE hakiri.ledger SET superseded_by = 0 WHERE target = %s AND superseded_by IS DISTINCT FROM 0",
        (target_of(table),),
    )
    watermarks.forget(connection, table)


def _of(table: Table) -> tuple[str, str, str]:
    return table.pipeline_id, table.name, target_of(table)


def _named(table: Table) -> dict[str, object]:
    return {"pipeline": table.pipeline_id, "table": table.name, "target": target_of(table)}
