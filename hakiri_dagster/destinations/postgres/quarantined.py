"""Looks into a quarantine table, and clears it."""

from __future__ import annotations

from typing import Any, LiteralString

from psycopg import sql

from hakiri_dagster.destinations.postgres.catalog import target_of
from hakiri_dagster.destinations.postgres.connection import Connection, relation
from hakiri_dagster.destinations.postgres.quarantine import columns_of
from hakiri_dagster.destinations.quarantine_contract import Kept, KeptChoice, KeptCount, KeptRow
from hakiri_dagster.manifest.tables import Table

# A table in the seed's own shape, made by another tool, lacks some columns until the first row of ours comes.
_OPTIONAL = ("onFail", "message", "chunkKey", "loadId", "sourceFile", "sourceLine", "target")

_CHOSEN = """
"pipelineId" = %(pipeline)s AND "nodeId" = %(table)s AND ({target} IS NULL OR {target} = %(target)s)
AND (%(rules)s::text[] IS NULL OR "ruleId" = ANY(%(rules)s)) AND (%(run)s::text IS NULL OR "runId" = %(run)s)
AND (%(chunk)s::text IS NULL OR {chunkKey} = %(chunk)s)
"""
_COUNTS = 'SELECT "ruleId", {onFail}, count(*) FROM {place} WHERE {chosen} GROUP BY 1, 2 ORDER BY 3 DESC, 1, 2'
_SAMPLE = """
SELECT "ruleId", {onFail}, {message}, "row"::text, "runId", {chunkKey}, {loadId}::bigint, {sourceFile},
       {sourceLine}::bigint, "createdAt"
FROM {place} WHERE {chosen} ORDER BY id DESC LIMIT %(limit)s
"""
_PURGE = "DELETE FROM {place} WHERE {chosen}"


def look(connection: Connection, table: Table, choice: KeptChoice, limit: int) -> Kept:
    known = columns_of(connection, *table.quarantine_table)
    if not known:
        return Kept((), ())
    asked = parameters(table, choice) | {"limit": limit}
    counts = connection.execute(statement(_COUNTS, table, known), asked)
    sample = connection.execute(statement(_SAMPLE, table, known), asked)
    return Kept(tuple(KeptCount(*row) for row in counts), tuple(KeptRow(*row) for row in sample))


def purge(connection: Connection, table: Table, choice: KeptChoice) -> int:
    known = columns_of(connection, *table.quarantine_table)
    if not known:
        return 0
    return connection.execute(statement(_PURGE, table, known), parameters(table, choice)).rowcount


def parameters(table: Table, choice: KeptChoice) -> dict[str, Any]:
    return {
        "pipeline": table.pipeline_id,
        "table": table.name,
        "target": target_of(table),
        "rules": None if choice.rules is None else list(choice.rules),
        "run": choice.run_id,
        "chunk": choice.chunk_key,
    }


def statement(template: LiteralString, table: Table, known: set[str], **parts: sql.Composable) -> sql.Composed:
    columns = {name: sql.Identifier(name) if name in known else sql.SQL("NULL::text") for name in _OPTIONAL}
    chosen = sql.SQL(_CHOSEN).format(target=columns["target"], chunkKey=columns["chunkKey"])
    return sql.SQL(template).format(place=relation(*table.quarantine_table), chosen=chosen, **columns, **parts)
