"""What a wider type costs: whether PostgreSQL rewrites the table, or reads all of it, while nobody else can."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from hakiri_dagster.destinations.contract import TargetColumn
from hakiri_dagster.destinations.postgres.catalog import Found
from hakiri_dagster.destinations.postgres.connection import Connection
from hakiri_dagster.planning.source_types import SourceType, postgres_type

_BY_PRECISION: Final = frozenset(
    {
        "timestamp without time zone", "timestamp with time zone", "time without time zone", "time with time zone",
        "interval", "bit varying",
    }
)  # fmt: skip

# What PostgreSQL reads rows for that can stay as they are: it checks them again, and builds indexes on the column again
# that have a predicate or an expression, be it of other columns, or that have partitions.
_READS_ROWS = """
WITH RECURSIVE place (relid) AS (
    SELECT %(oid)s::oid UNION SELECT inhrelid FROM pg_inherits JOIN place ON inhparent = relid
), altered (relid, attnum) AS (
    SELECT attrelid, attnum FROM pg_attribute JOIN place ON attrelid = relid WHERE attname = %(name)s
)
SELECT pg_catalog.format('the check %%s', quote_ident(conname))
FROM pg_constraint JOIN altered ON conrelid = relid AND attnum = ANY (conkey)
WHERE contype = 'c' AND convalidated
UNION
SELECT pg_catalog.format('the index %%s', i.indexrelid::regclass)
FROM pg_index i JOIN altered ON i.indrelid = relid JOIN pg_class c ON c.oid = i.indexrelid AND NOT c.relispartition
WHERE (i.indpred IS NOT NULL OR i.indexprs IS NOT NULL OR c.relkind = 'I')
  AND (attnum = ANY (i.indkey::int2[])
       OR EXISTS (SELECT FROM pg_depend
                  WHERE (classid, objid) = ('pg_class'::regclass, i.indexrelid)
                    AND (refclassid, refobjid, refobjsubid) = ('pg_class'::regclass, relid, attnum)))
ORDER BY 1
"""

_SIZE = """
WITH RECURSIVE place (relid) AS (
    SELECT %(oid)s::oid UNION SELECT inhrelid FROM pg_inherits JOIN place ON inhparent = relid)
SELECT sum(pg_catalog.pg_table_size(relid))::bigint FROM place
"""


@dataclass(frozen=True, slots=True)
class Cost:
    """`way_out`: how it can be had for less."""

    description: str
    bytes: int
    way_out: str


def cost_of(connection: Connection, found: Found, column: TargetColumn, then: SourceType) -> Cost | None:
    """None if nothing but the catalog changes."""
    if not is_catalog_only(postgres_type(column.type), then):
        return _cost(connection, found, "rewritten", "load it with mode blue_green or truncate")
    altered = {"oid": found.oid, "name": found.names_now.get(column.name, column.name)}
    readers = [row[0] for row in connection.execute(_READS_ROWS, altered)]
    if not readers:
        return None
    way_out = "drop what it is read for and make it again after the next load, load it with mode blue_green or truncate"
    return _cost(connection, found, f"read through for {' and '.join(readers)}", way_out)


def _cost(connection: Connection, found: Found, is_done: str, way_out: str) -> Cost:
    size = _size(connection, found)
    rows = "" if found.target.row_estimate is None else f" of about {found.target.row_estimate:,} rows"
    shown = f"the table{rows} ({size / 2**20:,.0f} MiB) is {is_done}, and nobody can read it meanwhile"
    return Cost(shown, size, way_out)


def _size(connection: Connection, found: Found) -> int:
    sized = connection.execute(_SIZE, {"oid": found.oid}).fetchone()
    assert sized is not None
    return int(sized[0])


def is_catalog_only(now: SourceType, then: SourceType) -> bool:
    """PostgreSQL knows that the rows can stay as they are."""
    if now.is_array or then.is_array:
        return False
    if now.name == then.name == "numeric":
        return then.size is None or (now.size is not None and now.scale == then.scale and then.size >= now.size)
    if now.name == "character varying":
        return then.name in ("character varying", "text")
    return (now.name, then.name) == ("cidr", "inet") or (now.name == then.name and now.name in _BY_PRECISION)
