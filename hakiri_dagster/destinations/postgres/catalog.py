"""What the destination holds now: the target's columns, keys and references, read from the system catalogs."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from hakiri_dagster.destinations.contract import LOAD_ID_COLUMN, Target, TargetColumn
from hakiri_dagster.destinations.postgres.connection import Connection
from hakiri_dagster.destinations.postgres.types import PgType, parse_type
from hakiri_dagster.destinations.postgres.unique_indexes import UniqueIndex, unique_indexes
from hakiri_dagster.errors import DestinationError
from hakiri_dagster.manifest.tables import Table

_NAME_BYTES = 63

_TARGET_PARTS = re.compile(r'"((?:[^"]|"")*)"|([^".]+)')

_RELATION = """
SELECT c.oid, c.relkind, CASE WHEN c.reltuples < 0 THEN NULL ELSE c.reltuples::bigint END,
       EXISTS (SELECT FROM pg_trigger WHERE tgdeferrable
               AND tgrelid IN (SELECT c.oid UNION ALL SELECT inhrelid FROM pg_inherits WHERE inhparent = c.oid))
FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
WHERE n.nspname = %s AND c.relname = %s
"""

_COLUMNS = """
SELECT a.attname, format_type(a.atttypid, a.atttypmod), NOT a.attnotnull,
       a.atthasdef OR a.attidentity <> '', a.attgenerated <> '' OR a.attidentity = 'a'
FROM pg_attribute a
WHERE a.attrelid = %s AND a.attnum > 0 AND NOT a.attisdropped
ORDER BY a.attnum
"""

# Those to its partitions as well. (`pg_partition_tree` would lock them until the transaction ends.)
_REFERENCED_BY = """
WITH RECURSIVE place (relid) AS (
    SELECT %(oid)s::oid UNION SELECT inhrelid FROM pg_inherits JOIN place ON inhparent = relid)
SELECT conrelid::regclass::text, conname
FROM pg_constraint
WHERE contype = 'f' AND confrelid IN (SELECT relid FROM place) AND conrelid NOT IN (SELECT relid FROM place)
    AND conparentid = 0
ORDER BY 1, 2
"""

_LOAD_ID_INDEX = """
SELECT EXISTS (
    SELECT FROM pg_index i JOIN pg_attribute a ON a.attrelid = i.indrelid AND a.attnum = i.indkey[0]
    WHERE i.indrelid = %s AND a.attname = %s AND i.indisvalid)
"""

# Whose `=` takes no two different values for one. A declared length pads what is shorter, a declared scale fills up.
_EXACT = (
    "bool", "int2", "int4", "int8", "oid", "money", "text", "varchar", "name", "char", "bytea", "uuid", "date", "time",
    "timetz", "timestamp", "timestamptz", "bit", "varbit", "inet", "cidr", "macaddr", "macaddr8",
)  # fmt: skip
_EXACT_IF_DECLARED = ("bpchar", "numeric")

_BASE_TYPES = """
WITH RECURSIVE base (attname, typid, typmod, collid) AS (
    SELECT attname, atttypid, atttypmod, attcollation FROM pg_attribute
    WHERE attrelid = %(oid)s AND attnum > 0 AND NOT attisdropped
  UNION ALL
    SELECT b.attname, t.typbasetype, t.typtypmod, b.collid
    FROM base b JOIN pg_type t ON t.oid = b.typid WHERE t.typtype = 'd')
SELECT b.attname, format_type(b.typid, b.typmod), t.typtype, t.typcategory, t.typname,
       CASE WHEN t.typtype = 'e'
            THEN (SELECT pg_catalog.array_agg(enumlabel::text) FROM pg_enum WHERE enumtypid = t.oid) END,
       coalesce(l.collisdeterministic, true)
       AND (t.typtype = 'e'
            OR t.typnamespace = 'pg_catalog'::regnamespace
               AND (t.typname = ANY (%(exact)s::text[])
                    OR (t.typname = ANY (%(if_declared)s::text[]) AND b.typmod >= 0)))
FROM base b JOIN pg_type t ON t.oid = b.typid LEFT JOIN pg_collation l ON l.oid = b.collid
WHERE t.typtype <> 'd'
"""


@dataclass(frozen=True, slots=True)
class BaseType:
    """A column's type below any domain. `exact`: values are the same if `=` says so, which it says without an error."""

    type: PgType
    labels: tuple[str, ...]
    exact: bool


@dataclass(frozen=True, slots=True)
class Found:
    """A target with what only DDL needs to know about it."""

    oid: int
    target: Target
    unique_indexes: tuple[UniqueIndex, ...]
    partitioned: bool
    referenced_by: tuple[tuple[str, str], ...]
    has_load_id_index: bool
    checked_late: bool = False
    """Some of its constraints may be deferred to the commit."""
    names_now: Mapping[str, str] = field(default_factory=dict)
    """Of columns that are about to be renamed, the names that they still have, by those of `target`."""

    def holds_apart(self, key: Sequence[str]) -> bool:
        """An index allows one row a key, of keys as joins and GROUP BY tell them apart."""
        return any(index.alike and index.is_on(key) for index in self.unique_indexes)


def stored_name(name: str) -> str:
    """As PostgreSQL keeps a name: cut at 63 bytes, at a character's end."""
    return name.encode()[:_NAME_BYTES].decode(errors="ignore")


def target_of(table: Table) -> str:
    """The target by one name, as ledger and fence have it: names that hold a dot are told apart by quotes."""
    return f"{_part(table.target_schema)}.{_part(table.target_name)}"


def split_target(target: str) -> tuple[str, str]:
    """Return schema and name of a target as `target_of` writes it."""
    schema, name = (quoted.replace('""', '"') or plain for quoted, plain in _TARGET_PARTS.findall(target))
    return schema, name


def _part(name: str) -> str:
    kept = stored_name(name)
    if "." not in kept and '"' not in kept:
        return kept
    doubled = kept.replace('"', '""')
    return f'"{doubled}"'


def find(connection: Connection, schema: str, name: str) -> Found | None:
    row = connection.execute(_RELATION, (stored_name(schema), stored_name(name))).fetchone()
    if row is None:
        return None
    oid, relkind, estimate, checked_late = row
    if relkind not in ("r", "p"):
        raise DestinationError(
            f"{schema}.{name} exists and is not a table",
            where=f"{schema}.{name}",
            hint="give the table another `target`, or move what is there away",
        )
    columns = tuple(TargetColumn(*values) for values in connection.execute(_COLUMNS, (oid,)))
    indexes = unique_indexes(connection, oid)
    references = connection.execute(_REFERENCED_BY, {"oid": oid}).fetchall()
    indexed = connection.execute(_LOAD_ID_INDEX, (oid, LOAD_ID_COLUMN)).fetchone()
    target = Target(
        schema=stored_name(schema),
        name=stored_name(name),
        columns=columns,
        primary_key=next((index.columns for index in indexes if index.primary), ()),
        unique_keys=tuple(index.columns for index in indexes),
        row_estimate=estimate,
    )
    return Found(
        oid=oid,
        target=target,
        unique_indexes=indexes,
        partitioned=relkind == "p",
        referenced_by=tuple((child, constraint) for child, constraint in references),
        has_load_id_index=bool(indexed and indexed[0]),
        checked_late=checked_late,
    )


def types_of(connection: Connection, found: Found) -> Mapping[str, BaseType]:
    """By the names of `found.target`."""
    kept = base_types(connection, found.oid)
    return {column.name: kept[found.names_now.get(column.name, column.name)] for column in found.target.columns}


def base_types(connection: Connection, oid: int) -> Mapping[str, BaseType]:
    asked = {"oid": oid, "exact": list(_EXACT), "if_declared": list(_EXACT_IF_DECLARED)}
    rows = connection.execute(_BASE_TYPES, asked).fetchall()
    return {name: _base_type(*rest) for name, *rest in rows}


def _base_type(text: str, typtype: str, category: str, typname: str, labels: list[str] | None, exact: bool) -> BaseType:
    if typtype == "e":
        kind = PgType("enum")
    elif category == "A":
        kind = parse_type(text) or PgType(typname, (), 1)
    else:
        # an extension's type is shown with its schema when that is not on the search path
        known = parse_type(text) or PgType(typname)
        kind = PgType(typname) if typname in ("citext", "hstore") else known
    return BaseType(kind, tuple(labels or ()), exact)


def existing_types(connection: Connection, spellings: Sequence[str]) -> frozenset[str]:
    """Which of these types the destination knows."""
    rows = connection.execute(
        "SELECT spelling FROM pg_catalog.unnest(%s::text[]) AS spelling WHERE to_regtype(spelling) IS NOT NULL",
        (sorted(set(spellings)),),
    )
    return frozenset(spelling for (spelling,) in rows)


def schema_exists(connection: Connection, schema: str) -> bool:
    row = connection.execute(
        "SELECT EXISTS (SELECT FROM pg_namespace WHERE nspname = %s)", (stored_name(schema),)
    ).fetchone()
    return bool(row and row[0])
