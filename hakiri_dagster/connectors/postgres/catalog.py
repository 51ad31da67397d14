"""What the source's catalog says about one table, in one query."""

from __future__ import annotations

import difflib
from dataclasses import dataclass
from typing import Any, Literal

from psycopg import Connection
from psycopg.rows import TupleRow, dict_row

from hakiri_dagster.connectors.postgres.column_types import SourceColumn
from hakiri_dagster.errors import SourceError

RelationKind = Literal["r", "p", "v", "m", "f"]

_QUALIFIED_TYPES = "SET LOCAL search_path = ''"
_OWN_SEARCH_PATH = "SET LOCAL search_path TO DEFAULT"

_RELATION = """
WITH RECURSIVE relation AS (
    SELECT c.oid, c.relkind, c.relacl, n.oid AS namespace
    FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
    WHERE n.nspname = %(schema)s AND c.relname = %(table)s AND c.relkind IN ('r', 'p', 'v', 'm', 'f')
),
-- a table, or the leaves of a partitioned or inherited one
member(oid) AS (
    SELECT oid FROM relation
    UNION ALL
    SELECT i.inhrelid FROM pg_inherits i JOIN member m ON m.oid = i.inhparent
),
storage AS (
    SELECT
        CASE
            WHEN c.relkind = 'f' THEN c.reltuples
            WHEN c.reltuples >= 0 AND c.relpages > 0 -- as the planner does: as dense as when it was last analyzed
                THEN c.reltuples / c.relpages * (pg_relation_size(c.oid) / current_setting('block_size')::int8)
            ELSE pg_stat_get_live_tuples(c.oid)
        END AS rows,
        pg_relation_size(c.oid) / current_setting('block_size')::int8 AS blocks,
        c.relkind IN ('r', 'm') AND am.amname = 'heap' AS is_heap
    FROM member JOIN pg_class c ON c.oid = member.oid LEFT JOIN pg_am am ON am.oid = c.relam
    WHERE c.relkind IN ('r', 'm', 'f')
),
-- domains, down to what they are made of
base(attnum, type, typmod) AS (
    SELECT a.attnum, a.atttypid, a.atttypmod
    FROM pg_attribute a JOIN relation r ON r.oid = a.attrelid
    WHERE a.attnum > 0 AND NOT a.attisdropped
    UNION ALL
    SELECT b.attnum, t.typbasetype, t.typtypmod
    FROM base b JOIN pg_type t ON t.oid = b.type
    WHERE t.typtype = 'd'
)
SELECT
    r.relkind::text AS kind,
    has_schema_privilege(r.namespace, 'USAGE') AS schema_usable,
    (SELECT sum(rows)::int8 FROM storage WHERE rows >= 0) AS rows_estimate,
    (SELECT coalesce(array_agg(blocks), '{}') FROM storage) AS blocks,
    (SELECT coalesce(bool_and(is_heap), false) FROM storage) AND current_setting('server_version_num')::int >= 140000
        AS block_readable,
    ARRAY(
        SELECT a.attname::text
        FROM pg_index i
        CROSS JOIN LATERAL unnest(i.indkey::int2[]) WITH ORDINALITY AS k(attnum, place)
        JOIN pg_attribute a ON a.attrelid = i.indrelid AND a.attnum = k.attnum
        WHERE i.indrelid = r.oid AND i.indisprimary AND k.place <= i.indnkeyatts
        ORDER BY k.place
    ) AS primary_key,
    ARRAY(
        SELECT a.attname::text
        FROM pg_index i
        JOIN pg_class ic ON ic.oid = i.indexrelid
        JOIN pg_am am ON am.oid = ic.relam AND am.amname = 'btree'
        JOIN pg_attribute a ON a.attrelid = i.indrelid AND a.attnum = i.indkey[0]
        WHERE i.indrelid = r.oid AND i.indisvalid AND i.indpred IS NULL
    ) AS indexed,
    ARRAY(
        SELECT a.attname::text FROM pg_attribute a
        WHERE a.attrelid = r.oid AND a.attnum > 0 AND NOT a.attisdropped
            AND NOT has_column_privilege(r.oid, a.attnum, 'SELECT')
    ) AS forbidden,
    (
        SELECT json_agg(json_build_object(
            'name', a.attname, 'type', t.typname, 'builtin', n.nspname = 'pg_catalog',
            'native', format_type(b.type, b.typmod), 'typmod', b.typmod, 'nullable', NOT a.attnotnull
        ) ORDER BY a.attnum)
        FROM base b
        JOIN pg_attribute a ON a.attrelid = r.oid AND a.attnum = b.attnum
        JOIN pg_type t ON t.oid = b.type AND t.typtype <> 'd'
        JOIN pg_namespace n ON n.oid = t.typnamespace
    ) AS columns
FROM relation r
"""

_NEIGHBOURS = """
SELECT c.relname::text FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
WHERE n.nspname = %(schema)s AND c.relkind IN ('r', 'p', 'v', 'm', 'f')
"""
_SCHEMAS = "SELECT nspname::text FROM pg_namespace"


@dataclass(frozen=True, slots=True)
class Relation:
    """`blocks` are those of each heap it is made of. `indexed` are the columns that lead a B-tree of all rows."""

    kind: RelationKind
    schema_usable: bool
    rows_estimate: int | None
    blocks: list[int]
    block_readable: bool
    primary_key: list[str]
    indexed: list[str]
    forbidden: list[str]
    columns: tuple[SourceColumn, ...]

    @classmethod
    def from_row(cls, row: dict[str, Any]) -> Relation:
        columns = tuple(SourceColumn.from_row(column) for column in row.pop("columns") or ())
        return cls(columns=columns, **row)

    def column(self, name: str) -> SourceColumn | None:
        return next((column for column in self.columns if column.name == name), None)


def describe(connection: Connection[TupleRow], schema: str, table: str, where: str) -> Relation:
    connection.execute(_QUALIFIED_TYPES)  # types of other schemas then come qualified
    names = {"schema": schema, "table": table}
    with connection.cursor(row_factory=dict_row) as cursor:
        row = cursor.execute(_RELATION, names).fetchone()
    if row is None:
        raise _not_found(connection, schema, table, where)
    relation = Relation.from_row(row)
    connection.execute(_OWN_SEARCH_PATH)  # functions inside a view may rely on it
    _refuse_unreadable(relation, schema, table, where)
    return relation


def _refuse_unreadable(relation: Relation, schema: str, table: str, where: str) -> None:
    if not relation.schema_usable:
        raise SourceError(
            f"permission denied for schema {schema!r}", where=where, hint="grant the source's user USAGE on the schema"
        )
    if relation.forbidden:
        raise SourceError(
            f"permission denied for {schema}.{table}, columns {', '.join(relation.forbidden)}",
            where=where,
            hint="grant the source's user SELECT on the table",
        )
    if not relation.columns:
        raise SourceError(f"{schema}.{table} has no columns", where=where, hint="remove it from the manifest")


def _not_found(connection: Connection[TupleRow], schema: str, table: str, where: str) -> SourceError:
    tables = [row[0] for row in connection.execute(_NEIGHBOURS, {"schema": schema})]
    if near := did_you_mean(table, tables):
        return SourceError(f"the source has no table or view {schema}.{table}", where=where, hint=near)
    schemas = [row[0] for row in connection.execute(_SCHEMAS)]
    if schema in schemas:
        return SourceError(
            f"the source has no table or view {schema}.{table}",
            where=where,
            hint=f"schema {schema} has {len(tables)} tables",
        )
    near = did_you_mean(schema, schemas) or "check `schema` in the source's config"
    return SourceError(f"the source has no schema {schema!r}", where=where, hint=near)


def did_you_mean(name: str, known: list[str]) -> str | None:
    by_case = {one.lower(): one for one in known}
    near = difflib.get_close_matches(name.lower(), by_case, 1)
    return f"did you mean `{by_case[near[0]]}`?" if near else None
