"""Target columns that need a wider type, as the source's have one: what is done at once, what needs a word first."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Final

from psycopg import sql

from hakiri_dagster.destinations.contract import TargetColumn
from hakiri_dagster.destinations.postgres.catalog import Found, stored_name
from hakiri_dagster.destinations.postgres.connection import Connection
from hakiri_dagster.destinations.postgres.types import type_in_ddl
from hakiri_dagster.destinations.postgres.widening_cost import cost_of
from hakiri_dagster.planning.evolution import Widening
from hakiri_dagster.planning.source_types import SourceType, holds, postgres_type

BIG_BYTES: int = 1024**3
"""A table of this size is rewritten, or read through, for seconds during which nobody else reads it."""

_TEXT: Final = SourceType("text")

# What PostgreSQL would not alter a column's type under, on the table or on a partition.
_IN_THE_WAY = """
WITH RECURSIVE place (relid) AS (
    SELECT %(oid)s::oid UNION SELECT inhrelid FROM pg_inherits JOIN place ON inhparent = relid
), altered (relid, attnum) AS (
    SELECT attrelid, attnum FROM pg_attribute JOIN place ON attrelid = relid WHERE attname = %(name)s
), depends AS (
    SELECT d.classid, d.objid FROM pg_depend d JOIN altered ON (d.refobjid, d.refobjsubid) = (relid, attnum)
)
SELECT DISTINCT CASE c.relkind WHEN 'm' THEN 'the materialized view ' WHEN 'v' THEN 'the view '
                ELSE 'a rule on ' END || c.oid::regclass
FROM depends d JOIN pg_rewrite r ON r.oid = d.objid JOIN pg_class c ON c.oid = r.ev_class
WHERE d.classid = 'pg_rewrite'::regclass
UNION
SELECT pg_catalog.format('the generated column %%s', quote_ident(g.attname))
FROM depends d JOIN pg_attrdef f ON f.oid = d.objid
JOIN pg_attribute g ON g.attrelid = f.adrelid AND g.attnum = f.adnum AND g.attgenerated <> ''
WHERE d.classid = 'pg_attrdef'::regclass
UNION
SELECT pg_catalog.format('the policy %%s', quote_ident(p.polname))
FROM depends d JOIN pg_policy p ON p.oid = d.objid
WHERE d.classid = 'pg_policy'::regclass
UNION
SELECT pg_catalog.format('the trigger %%s', quote_ident(t.tgname))
FROM depends d JOIN pg_trigger t ON t.oid = d.objid AND NOT t.tgisinternal
WHERE d.classid = 'pg_trigger'::regclass
UNION
SELECT pg_catalog.format('the condition of the publication %%s', quote_ident(b.pubname))
FROM depends d JOIN pg_publication_rel r ON r.oid = d.objid JOIN pg_publication b ON b.oid = r.prpubid
WHERE d.classid = 'pg_publication_rel'::regclass
UNION
SELECT 'the partition key' FROM pg_partitioned_table
JOIN altered ON partrelid = relid AND attnum = ANY (partattrs::int2[])
UNION
SELECT pg_catalog.format('the parent table %%s', inhparent::regclass) FROM pg_inherits
WHERE inhrelid = %(oid)s
"""


@dataclass(frozen=True, slots=True)
class Wider:
    """A column and the type it is to have. `refusal`: why not without a word."""

    column: str
    name: str
    type: SourceType
    description: str
    refusal: str | None = None


def wider_columns(
    connection: Connection, found: Found, widened: tuple[Widening, ...], label: str, *, emptied: bool
) -> Iterator[Wider]:
    """`emptied`: the load puts new rows in the place of all, so that nothing is rewritten."""
    present = {column.name: column for column in found.target.columns}
    for widening in widened:
        column = present.get(stored_name(widening.column))
        if column is not None and _needs_room(column, widening):
            yield from _wider(connection, found, column, widening, label, emptied=emptied)


def _needs_room(column: TargetColumn, widening: Widening) -> bool:
    """A type that somebody chose instead of the source's stays as it is."""
    now = postgres_type(column.type)
    if column.generated or holds(now, widening.after) or not holds(now, widening.before):
        return False
    return holds(widening.after, now) or (widening.after == _TEXT and not now.is_array)


def _wider(
    connection: Connection, found: Found, column: TargetColumn, widening: Widening, label: str, *, emptied: bool
) -> Iterator[Wider]:
    what = f"alter column {column.name} of {label} from {column.type} to {widening.after}"
    altered = {"oid": found.oid, "name": found.names_now.get(column.name, column.name)}
    blockers = [row[0] for row in connection.execute(_IN_THE_WAY, altered)]
    if blockers:
        if not widening.accepted:
            yield Wider(widening.column, column.name, widening.after, what, _blocked(what, blockers))
        return
    cost = None if emptied else cost_of(connection, found, column, widening.after)
    if cost is None:
        yield Wider(widening.column, column.name, widening.after, what)
        return
    refusal = None
    if cost.bytes >= BIG_BYTES and not widening.accepted:
        refusal = f"to {what}, {cost.description}; {cost.way_out}, or"
    yield Wider(widening.column, column.name, widening.after, f"{what}: {cost.description}", refusal)


def _blocked(what: str, blockers: list[str]) -> str:
    return (
        f"cannot {what}, because of {', '.join(sorted(blockers))}; drop what is in the way and make it again after the "
        "next load; or keep the column's type, so that values which do not fit it are set aside, and"
    )


def retyping(place: sql.Composable, retyped: Iterable[tuple[str, str]]) -> sql.Composed:
    changes = sql.SQL(", ").join(
        sql.SQL("ALTER COLUMN {} TYPE {}").format(sql.Identifier(name), type_in_ddl(kind)) for name, kind in retyped
    )
    return sql.SQL("ALTER TABLE {} {}").format(place, changes)
