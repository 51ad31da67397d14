"""What of a quarantine table may be loaded after all, as it and the ledger tell."""

from __future__ import annotations

from collections.abc import Collection, Generator, Sequence
from typing import LiteralString

from psycopg import sql

from hakiri_dagster.destinations.postgres.connection import Connection
from hakiri_dagster.destinations.postgres.quarantine import columns_of
from hakiri_dagster.destinations.postgres.quarantined import parameters, statement
from hakiri_dagster.destinations.postgres.replacement import bounds_from_json
from hakiri_dagster.destinations.quarantine_contract import KeptChoice, KeptLine
from hakiri_dagster.manifest.tables import Table
from hakiri_dagster.planning.replays import KeptOfLoad

_ROWS_A_FETCH = 2000

# A line that could not be parsed. A rule of the manifest may be called so, too.
_IS_LINE = sql.SQL("""
coalesce("ruleId" = 'malformed' AND CASE WHEN jsonb_typeof("row") = 'object'
         THEN "row" - 'line'::text = '{{}}'::jsonb AND "row" <> '{{}}'::jsonb END, false)
""").format()

_BY_LOAD: LiteralString = """
WITH kept AS (
    SELECT {chunkKey} AS chunk_key, {loadId}::bigint AS load_id, {onFail} AS on_fail, {is_line} AS is_line,
           count(*) AS rows
    FROM {place} WHERE {chosen} GROUP BY 1, 2, 3, 4)
SELECT kept.chunk_key, kept.load_id, on_fail, is_line, kept.rows,
       CASE WHEN ledger.load_id IS NULL THEN 'unknown' WHEN superseded_by IS NULL THEN 'stands'
            WHEN superseded_by = 0 THEN 'gone' ELSE 'replaced' END,
       bounds
FROM kept LEFT JOIN hakiri.ledger AS ledger
  ON ledger.load_id = kept.load_id AND ledger.chunk_key = kept.chunk_key AND pipeline_id = %(pipeline)s
     AND table_name = %(table)s AND ledger.target = %(target)s
ORDER BY 1, 2
"""

_LINES: LiteralString = """
SELECT id, {chunkKey}, {loadId}::bigint, {sourceFile}, "row"::text
FROM {place}
WHERE {chosen} AND {loadId}::bigint = ANY(%(loads)s) AND coalesce({onFail}, 'skip') = 'skip' AND NOT {is_line}
ORDER BY {chunkKey}, id
"""


def by_load(connection: Connection, table: Table, choice: KeptChoice) -> Sequence[KeptOfLoad]:
    known = columns_of(connection, *table.quarantine_table)
    if not known:
        return ()
    found = connection.execute(statement(_BY_LOAD, table, known, is_line=_IS_LINE), parameters(table, choice))
    return tuple(
        KeptOfLoad(key, load_id, on_fail, is_line, rows, standing, None if bounds is None else bounds_from_json(bounds))
        for key, load_id, on_fail, is_line, rows, standing, bounds in found
    )


def lines(connection: Connection, table: Table, choice: KeptChoice, loads: Collection[int]) -> Generator[KeptLine]:
    """Through a cursor of the server's: there may be millions."""
    known = columns_of(connection, *table.quarantine_table)
    if not known:
        return
    asked = parameters(table, choice) | {"loads": list(loads)}
    with connection.cursor(name="hakiri_kept") as cursor:
        cursor.itersize = _ROWS_A_FETCH
        cursor.execute(statement(_LINES, table, known, is_line=_IS_LINE), asked)
        for row in cursor:
            yield KeptLine(*row)
