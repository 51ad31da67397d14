"""Gives the loads of a table another name: `hakiri pipeline rename`, and `load.adopt`.

Everything that the destination keeps by pipeline and table follows in one transaction: fences, the ledger, pending
post-hooks, backups, the watermark, the project that publishes, quarantined rows. What it keeps by target (the marks of
deleted keys, shadow tables, keys to be checked) stays as it is.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import LiteralString

from psycopg import sql

from hakiri_dagster.destinations.postgres import publishers, quarantine
from hakiri_dagster.destinations.postgres.catalog import stored_name, target_of
from hakiri_dagster.destinations.postgres.connection import Connection, relation
from hakiri_dagster.errors import DestinationError
from hakiri_dagster.manifest.tables import Table
from hakiri_dagster.planning.publishers import Move, Moved, ProjectClaim, Publisher

# A publish holds the row of its fence: this waits for it, and an attempt that publishes later finds no fence.
_FENCES: LiteralString = """
WITH moved AS (
    DELETE FROM hakiri.fence
    WHERE pipeline_id = %(old_pipeline)s AND table_name = %(old_table)s AND target = %(target)s
    RETURNING *)
INSERT INTO hakiri.fence AS f (pipeline_id, table_name, target, chunk_key, token, holder, load_id, claimed_at)
SELECT %(pipeline)s, %(table)s, target, chunk_key, token + 1, holder, load_id, claimed_at FROM moved
ON CONFLICT (pipeline_id, table_name, target, chunk_key) DO UPDATE
SET token = greatest(f.token, excluded.token) + 1
"""

_LEDGER: LiteralString = """
UPDATE hakiri.ledger SET pipeline_id = %(pipeline)s, table_name = %(table)s
WHERE pipeline_id = %(old_pipeline)s AND table_name = %(old_table)s AND target = %(target)s
"""

_HOOKS: LiteralString = """
WITH moved AS (
    DELETE FROM hakiri.owed_hook
    WHERE pipeline_id = %(old_pipeline)s AND table_name = %(old_table)s AND target = %(target)s
    RETURNING *)
INSERT INTO hakiri.owed_hook AS owed (pipeline_id, table_name, target, hook, described, load_ids, owed_at)
SELECT %(pipeline)s, %(table)s, target, hook, described, load_ids, owed_at FROM moved
ON CONFLICT (pipeline_id, table_name, target, hook) DO UPDATE SET load_ids = owed.load_ids || excluded.load_ids
"""

_BACKUPS: LiteralString = """
UPDATE hakiri.backup SET pipeline_id = %(pipeline)s, table_name = %(table)s
WHERE pipeline_id = %(old_pipeline)s AND table_name = %(old_table)s AND target = %(target)s
"""

# The mark of a target belongs to the loads that made it: it replaces one of the new name.
_WATERMARKS: tuple[LiteralString, ...] = (
    """
    DELETE FROM hakiri.pipeline_watermarks AS new USING hakiri.pipeline_watermarks AS old
    WHERE new.pipeline_id = %(pipeline)s AND old.pipeline_id = %(old_pipeline)s
      AND (old.target_schema, old.target_table) = (%(schema)s, %(name)s)
      AND (new.tenant, new.target_schema, new.target_table) = (old.tenant, old.target_schema, old.target_table)
    """,
    """
    UPDATE hakiri.pipeline_watermarks SET pipeline_id = %(pipeline)s
    WHERE pipeline_id = %(old_pipeline)s AND (target_schema, target_table) = (%(schema)s, %(name)s)
    """,
)

_PUBLISHER: tuple[LiteralString, ...] = (
    """
    DELETE FROM hakiri.publisher AS new USING hakiri.publisher AS old
    WHERE (new.pipeline_id, new.table_name, new.target) = (%(pipeline)s, %(table)s, %(target)s)
      AND (old.pipeline_id, old.table_name, old.target) = (%(old_pipeline)s, %(old_table)s, %(target)s)
    """,
    """
    UPDATE hakiri.publisher SET pipeline_id = %(pipeline)s, table_name = %(table)s
    WHERE pipeline_id = %(old_pipeline)s AND table_name = %(old_table)s AND target = %(target)s
    """,
)

_PROJECT: LiteralString = """
SELECT project_id, project_name FROM hakiri.publisher
WHERE pipeline_id = %(old_pipeline)s AND table_name = %(old_table)s AND target = %(target)s
"""

_ELSEWHERE: LiteralString = """
SELECT DISTINCT target FROM hakiri.ledger
WHERE pipeline_id = %(old_pipeline)s AND table_name = %(old_table)s AND target <> %(target)s
  AND superseded_by IS NULL AND rows > 0
ORDER BY target
"""

# Those of the same names with another target stay: another project may keep its rows here too.
_HAS_OTHERS: LiteralString = """
SELECT EXISTS (SELECT FROM {table}
               WHERE "pipelineId" <> %(old_pipeline)s OR "nodeId" <> %(old_table)s OR target <> %(target)s)
"""

_RENAME_QUARANTINED: LiteralString = """
UPDATE {table} SET "pipelineId" = %(pipeline)s, "nodeId" = %(table)s
WHERE "pipelineId" = %(old_pipeline)s AND "nodeId" = %(old_table)s AND (target IS NULL OR target = %(target)s)
"""

_MOVE_QUARANTINED: LiteralString = """
WITH moved AS (
    DELETE FROM {old}
    WHERE "pipelineId" = %(old_pipeline)s AND "nodeId" = %(old_table)s AND (target IS NULL OR target = %(target)s)
    RETURNING *)
INSERT INTO {table} ("pipelineId", "runId", "nodeId", "ruleId", "row", "createdAt", message, "sourceFile", "chunkKey",
                     "loadId", attempt, target, "onFail", "sourceLine")
SELECT %(pipeline)s, "runId", %(table)s, "ruleId", "row", "createdAt", message, "sourceFile", "chunkKey",
       "loadId", attempt, target, "onFail", "sourceLine"
FROM moved ORDER BY id
"""


def move_all(connection: Connection, moves: Sequence[Move]) -> tuple[Moved, ...]:
    if connection.execute("SELECT to_regclass('hakiri.publisher')").fetchone() == (None,):
        return tuple(Moved(move) for move in moves)  # nothing was ever loaded
    for move in moves:
        _refuse_other_project(connection, move)
    return tuple(_move(connection, move) for move in moves)


def adopt_loads(connection: Connection, table: Table, adopted: Sequence[Publisher], project: ProjectClaim) -> None:
    for publisher in adopted:
        if publisher.label != table.label:
            _move(connection, Move(publisher.pipeline_id, publisher.table, table))
    seen = project
    if any(publisher.label != table.label for publisher in adopted):
        # the record of whose loads these were came along with them
        recorded = publishers.recorded_project(connection, table)
        seen = replace(project, seen=recorded, rows_seen=True)
    publishers.record_project(connection, table, seen)


def _refuse_other_project(connection: Connection, move: Move) -> None:
    key = move.table.project
    found = connection.execute(_PROJECT, _values(move)).fetchone()
    if key is None or found is None or key.id is None or found[0] in (None, key.id):
        return
    raise DestinationError(
        f"{target_of(move.table)} holds rows that the project `{found[1]}` (id {found[0]}) has published as "
        f"{move.old_label}, and this is the project `{key.name}` (id {key.id})",
        where=move.table.label,
        hint=f"set another `target`, or `load.adopt = true` on {move.table.label} if that project publishes no more",
    )


def _move(connection: Connection, move: Move) -> Moved:
    values = _values(move)
    connection.execute(_FENCES, values)
    publishers.lock_target(connection, move.table)
    loads = connection.execute(_LEDGER, values).rowcount
    connection.execute(_HOOKS, values)
    connection.execute(_BACKUPS, values)
    if move.old_pipeline != move.table.pipeline_id:
        for statement in _WATERMARKS:
            connection.execute(statement, values)
    for statement in _PUBLISHER:
        connection.execute(statement, values)
    elsewhere = tuple(target for (target,) in connection.execute(_ELSEWHERE, values))
    return Moved(move, loads, _move_quarantined(connection, move), elsewhere)


def _move_quarantined(connection: Connection, move: Move) -> int:
    """A quarantine table that holds nothing else is renamed, however many rows it has."""
    old = replace(move.table, pipeline_id=move.old_pipeline, name=move.old_table).quarantine_table
    new, values = move.table.quarantine_table, _values(move)
    present = quarantine.columns_of(connection, *old)
    if not present:
        return 0
    quarantine.complete(connection, *old, present)
    if old != new and not quarantine.columns_of(connection, *new):
        has_others = connection.execute(sql.SQL(_HAS_OTHERS).format(table=relation(*old)), values).fetchone()
        if has_others == (False,):
            quarantine.rename(connection, old, new)
            old = new
        else:
            quarantine.make(connection, *new)
    if old == new:
        return connection.execute(sql.SQL(_RENAME_QUARANTINED).format(table=relation(*new)), values).rowcount
    quarantine.complete(connection, *new, quarantine.columns_of(connection, *new))
    statement = sql.SQL(_MOVE_QUARANTINED).format(old=relation(*old), table=relation(*new))
    return connection.execute(statement, values).rowcount


def _values(move: Move) -> dict[str, str]:
    return {
        "old_pipeline": move.old_pipeline,
        "old_table": move.old_table,
        "pipeline": move.table.pipeline_id,
        "table": move.table.name,
        "target": target_of(move.table),
        "schema": stored_name(move.table.target_schema),
        "name": stored_name(move.table.target_name),
    }
