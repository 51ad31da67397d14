"""Ledger and fence: which slices are published, and who may publish next."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from psycopg import errors
from psycopg.types.json import Jsonb

from hakiri_dagster.destinations.contract import Fence, LedgerEntry, Load
from hakiri_dagster.destinations.postgres.connection import Connection
from hakiri_dagster.destinations.postgres.replacement import (
    Earlier,
    Replacement,
    bounds_from_json,
    bounds_to_json,
    replacement,
)
from hakiri_dagster.errors import LeaseLost
from hakiri_dagster.manifest.tables import Table

_BUMP = """
INSERT INTO hakiri.fence AS f (pipeline_id, table_name, chunk_key, token, holder, load_id)
SELECT %(pipeline)s, %(table)s, key, 1, %(holder)s, nextval(pg_get_serial_sequence('hakiri.ledger', 'load_id'))
FROM unnest(%(keys)s::text[]) AS key ORDER BY key
ON CONFLICT (pipeline_id, table_name, chunk_key) DO UPDATE
SET token = f.token + 1, holder = excluded.holder, load_id = excluded.load_id, claimed_at = clock_timestamp()
RETURNING chunk_key, token, load_id
"""

# Only this role's backends in this database: others can neither be ours nor may be ended by us.
# The mark is `connection.chunk_mark`.
_END_BACKENDS = """
SELECT pg_terminate_backend(a.pid, 5000)
FROM hakiri.fence f
JOIN pg_stat_activity a
  ON split_part(a.application_name, ':', 1) = 'hakiri'
 AND split_part(a.application_name, ':', 2)
     = left(md5(f.pipeline_id || chr(31) || f.table_name || chr(31) || f.chunk_key), 16)
 AND CASE WHEN split_part(a.application_name, ':', 3) ~ '^[0-9]{1,18}$'
          THEN split_part(a.application_name, ':', 3)::bigint <= f.token - %(newer)s END
WHERE f.pipeline_id = %(pipeline)s AND f.table_name = %(table)s AND f.chunk_key = ANY(%(keys)s)
  AND a.datname = current_database() AND a.usename = current_user AND a.pid <> pg_backend_pid()
"""

_ENTRIES = """
SELECT DISTINCT ON (chunk_key)
       load_id, chunk_key, bounds, rows, bytes, cursor_committed, run_id, attempt, published_at
FROM hakiri.ledger
WHERE pipeline_id = %s AND table_name = %s AND superseded_by IS NULL
ORDER BY chunk_key, load_id DESC
"""

_ROWS_OF = """
SELECT 1 FROM hakiri.ledger
WHERE pipeline_id = %s AND table_name = %s AND target = %s AND superseded_by IS NULL AND rows > 0
LIMIT 1
"""

_ENTRY = """
SELECT load_id, chunk_key, bounds, rows, bytes, cursor_committed, run_id, attempt, published_at
FROM hakiri.ledger WHERE load_id = %s
"""

_EARLIER = """
SELECT load_id, chunk_key, bounds, cursor_max
FROM hakiri.ledger
WHERE pipeline_id = %s AND table_name = %s AND target = %s AND superseded_by IS NULL AND load_id <> %s
"""

_TOKEN = "SELECT token FROM hakiri.fence WHERE pipeline_id = %s AND table_name = %s AND chunk_key = %s"

_TABLE_LOCK = "SELECT pg_advisory_xact_lock(hashtextextended('hakiri ledger ' || %s || '/' || %s, 0))"

_INSERT = """
INSERT INTO hakiri.ledger (load_id, pipeline_id, table_name, target, chunk_key, bounds, rows, bytes,
                           cursor_committed, cursor_max, run_id, attempt, mode)
VALUES (%s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s)
RETURNING load_id, chunk_key, bounds, rows, bytes, cursor_committed, run_id, attempt, published_at
"""


def target_name(schema: str, name: str) -> str:
    return f"{schema}.{name}"


def claim(connection: Connection, table: Table, chunk_keys: Sequence[str], holder: str) -> Mapping[str, Fence]:
    """Commits. Ends the backends of earlier attempts before and after the bump: before, lest one that hangs holds
    the fence row; after, lest one that was on its way goes on."""
    which = {"pipeline": table.pipeline_id, "table": table.name, "keys": sorted(set(chunk_keys))}
    with connection.pipeline():
        connection.execute(_END_BACKENDS, {**which, "newer": 0})
        bumped = connection.execute(_BUMP, {**which, "holder": holder})
        connection.commit()
        connection.execute(_END_BACKENDS, {**which, "newer": 1})
        fences = {key: Fence(token=token, load_id=load_id) for key, token, load_id in bumped.fetchall()}
        connection.commit()
    return fences


def entries(connection: Connection, table: Table) -> Sequence[LedgerEntry]:
    """None in a destination that has no ledger yet."""
    try:
        rows = connection.execute(_ENTRIES, (table.pipeline_id, table.name)).fetchall()
    except (errors.UndefinedTable, errors.InvalidSchemaName):
        return ()
    return tuple(_entry(row) for row in rows)


def has_rows_of(connection: Connection, table: Table) -> bool:
    """Whether earlier loads of the table left rows in its target. Asked within a transaction that goes on."""
    if connection.execute("SELECT to_regclass('hakiri.ledger')").fetchone() == (None,):
        return False
    target = target_name(table.target_schema, table.target_name)
    found = connection.execute(_ROWS_OF, (table.pipeline_id, table.name, target)).fetchone()
    return found is not None


def entry(connection: Connection, load_id: int) -> LedgerEntry | None:
    row = connection.execute(_ENTRY, (load_id,)).fetchone()
    return None if row is None else _entry(row)


def _entry(row: tuple[object, ...]) -> LedgerEntry:
    load_id, chunk_key, bounds, *rest = row
    return LedgerEntry(load_id, chunk_key, bounds_from_json(bounds), *rest)  # type: ignore[arg-type] # rows are untyped


def replaced_by(connection: Connection, load: Load) -> Replacement:
    rows = connection.execute(
        _EARLIER,
        (
            load.table.pipeline_id,
            load.table.name,
            target_name(load.target.schema, load.target.name),
            load.fence.load_id,
        ),
    )
    earlier = [Earlier(load_id, key, bounds_from_json(bounds), highest) for load_id, key, bounds, highest in rows]
    return replacement(load.slice.bounds, earlier, load.supersedes)


def check_fence(connection: Connection, load: Load, *, lock: bool) -> None:
    """With `lock`, no claim can bump the fence before the transaction ends."""
    key = load.slice.chunk.key
    row = connection.execute(
        _TOKEN + (" FOR UPDATE" if lock else ""), (load.table.pipeline_id, load.table.name, key)
    ).fetchone()
    if row is None or row[0] != load.fence.token:
        raise LeaseLost(
            f"chunk {key} was taken over by another worker, so this attempt publishes nothing",
            where=load.table.label,
        )


def wait_for_fence(connection: Connection, load: Load) -> None:
    """Returns when no transaction holds the chunk's fence row."""
    connection.execute(
        _TOKEN + " FOR UPDATE", (load.table.pipeline_id, load.table.name, load.slice.chunk.key)
    ).fetchone()


def lock_table_entries(connection: Connection, table: Table) -> None:
    """Publishes of one table's slices pass here one by one, so that overlapping ones see each other."""
    connection.execute(_TABLE_LOCK, (table.pipeline_id, table.name))


def record(
    connection: Connection,
    load: Load,
    *,
    rows: int,
    bytes_: int,
    cursor_committed: int | None,
    cursor_max: int | None,
    replaced: Replacement,
    clears_target: bool,
) -> LedgerEntry:
    """`clears_target`: what other pipelines had loaded into the target is gone as well."""
    target = target_name(load.target.schema, load.target.name)
    if clears_target:
        connection.execute(
            "UPDATE hakiri.ledger SET superseded_by = %s WHERE target = %s AND superseded_by IS NULL",
            (load.fence.load_id, target),
        )
    elif replaced.superseded:
        connection.execute(
            "UPDATE hakiri.ledger SET superseded_by = %s WHERE load_id = ANY(%s)",
            (load.fence.load_id, list(replaced.superseded)),
        )
    row = connection.execute(
        _INSERT,
        (
            load.fence.load_id,
            load.table.pipeline_id,
            load.table.name,
            target,
            load.slice.chunk.key,
            Jsonb(bounds_to_json(load.slice.bounds)),
            rows,
            bytes_,
            cursor_committed,
            cursor_max,
            load.run_id,
            load.attempt,
            load.table.mode,
        ),
    ).fetchone()
    assert row is not None  # INSERT … RETURNING of one row
    return _entry(row)


def forget_target(connection: Connection, schema: str, name: str) -> None:
    """The target had to be created anew: what the ledger says was loaded into it is gone."""
    connection.execute(
        "UPDATE hakiri.ledger SET superseded_by = 0 WHERE target = %s AND superseded_by IS NULL",
        (target_name(schema, name),),
    )
