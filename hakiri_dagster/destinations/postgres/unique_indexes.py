"""Unique indexes of a target, and whether they take those values for one that are one to `=` on their columns."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from hakiri_dagster.destinations.postgres.connection import Connection

# ON CONFLICT infers these, whatever their collations and operator classes: plain columns, no predicate, checked at once
# (and not WITHOUT OVERLAPS). A deterministic collation only orders; a column's `=` is that of its type's default class.
_UNIQUE_INDEXES = """
WITH RECURSIVE base (attnum, typid) AS (
    SELECT attnum, atttypid FROM pg_attribute WHERE attrelid = %(oid)s AND attnum > 0 AND NOT attisdropped
  UNION ALL
    SELECT b.attnum, t.typbasetype FROM base b JOIN pg_type t ON t.oid = b.typid WHERE t.typtype = 'd'
), equality (opclass, intype, is_default, operator) AS (
    SELECT o.oid, o.opcintype, o.opcdefault, p.amopopr
    FROM pg_opclass o JOIN pg_am m ON m.oid = o.opcmethod AND m.amname = 'btree'
    JOIN pg_amop p ON p.amopfamily = o.opcfamily AND p.amoplefttype = o.opcintype AND p.amoprighttype = o.opcintype
                  AND p.amopstrategy = 3
), place (indexrelid, indisprimary, inferred, attname, position,
          same_operator, same_collation, folds, column_folds) AS (
    SELECT i.indexrelid, i.indisprimary, NOT i.indisexclusion, a.attname, k.position,
           e.operator IS NOT NULL AND e.operator = coalesce(
               (SELECT d.operator FROM equality d JOIN base b ON b.typid = d.intype
                WHERE d.is_default AND b.attnum = k.attnum),
               (SELECT d.operator FROM equality d WHERE d.is_default AND d.intype = e.intype)),
           i.indcollation[k.position - 1] = a.attcollation,
           coalesce(NOT own.collisdeterministic, false), coalesce(NOT theirs.collisdeterministic, false)
    FROM pg_index i
    CROSS JOIN pg_catalog.unnest(i.indkey::int2[]) WITH ORDINALITY AS k (attnum, position)
    JOIN pg_attribute a ON a.attrelid = i.indrelid AND a.attnum = k.attnum
    LEFT JOIN equality e ON e.opclass = i.indclass[k.position - 1]
    LEFT JOIN pg_collation own ON own.oid = i.indcollation[k.position - 1]
    LEFT JOIN pg_collation theirs ON theirs.oid = a.attcollation
    WHERE i.indrelid = %(oid)s AND i.indisunique AND i.indisvalid AND i.indimmediate
      AND i.indpred IS NULL AND i.indexprs IS NULL AND k.position <= i.indnkeyatts)
SELECT c.relname, p.indisprimary, pg_catalog.array_agg(p.attname ORDER BY p.position)::text[],
       bool_and(p.inferred AND p.same_operator AND (p.same_collation OR NOT (p.folds OR p.column_folds))),
       bool_or(p.inferred AND NOT (p.same_operator AND (p.same_collation OR NOT p.folds)))
FROM place p JOIN pg_class c ON c.oid = p.indexrelid
GROUP BY p.indexrelid, c.relname, p.indisprimary
ORDER BY p.indisprimary DESC, p.indexrelid
"""


@dataclass(frozen=True, slots=True)
class UniqueIndex:
    """`alike`: values are one to it just where they are one to its columns. `blurs`: more may be one to it."""

    name: str
    primary: bool
    columns: tuple[str, ...]
    alike: bool
    blurs: bool

    def is_on(self, columns: Sequence[str]) -> bool:
        return set(self.columns) == set(columns)

    def with_names(self, new: Mapping[str, str]) -> UniqueIndex:
        return replace(self, columns=tuple(new[name] for name in self.columns))


def unique_indexes(connection: Connection, oid: int) -> tuple[UniqueIndex, ...]:
    """The primary key's first."""
    rows = connection.execute(_UNIQUE_INDEXES, {"oid": oid})
    return tuple(
        UniqueIndex(name, primary, tuple(columns), alike, blurs) for name, primary, columns, alike, blurs in rows
    )
