"""Triggers of a table that may leave out the rows of a COPY: what a count that is too low is asked about."""

from __future__ import annotations

from dataclasses import dataclass

from psycopg import sql

from hakiri_dagster.destinations.postgres.connection import Connection

# For each row, before INSERT, enabled; also those of partitions, but not what these have from the table itself.
_BEFORE_ROWS = """
WITH RECURSIVE place (relid) AS (
    SELECT to_regclass(%s)::oid UNION SELECT inhrelid FROM pg_inherits JOIN place ON inhparent = relid)
SELECT quote_ident(t.tgname), t.tgrelid::regclass::text
FROM pg_trigger t JOIN place ON t.tgrelid = relid
WHERE t.tgtype & 7 = 7 AND t.tgenabled IN ('O', 'A') AND NOT t.tgisinternal
  AND NOT EXISTS (SELECT FROM pg_trigger above JOIN pg_inherits ON inhparent = above.tgrelid
                  WHERE inhrelid = t.tgrelid AND above.tgname = t.tgname AND above.tgfoid = t.tgfoid)
ORDER BY 2, 1
"""


@dataclass(frozen=True, slots=True)
class RowTrigger:
    name: str
    table: str

    def __str__(self) -> str:
        return f"{self.name} on {self.table}"


def triggers_before_rows(connection: Connection, relation: sql.Identifier) -> tuple[RowTrigger, ...]:
    rows = connection.execute(_BEFORE_ROWS, (relation.as_string(connection),))
    return tuple(RowTrigger(name, table) for name, table in rows)
