"""Why a target cannot hold one row a key: told by `plan`, for PostgreSQL would say it in the middle of a load."""

from __future__ import annotations

from collections.abc import Sequence

from hakiri_dagster.destinations.contract import PROVENANCE_COLUMNS
from hakiri_dagster.destinations.postgres.catalog import Found, stored_name
from hakiri_dagster.destinations.postgres.connection import Connection
from hakiri_dagster.manifest.spelling import or_rather

_PARTITION_KEY = """
SELECT coalesce(pg_catalog.array_agg(DISTINCT a.attname::text), '{}'), bool_or(k.attnum = 0)
FROM pg_partitioned_table p
CROSS JOIN pg_catalog.unnest(p.partattrs::int2[]) WITH ORDINALITY AS k (attnum, position)
LEFT JOIN pg_attribute a ON a.attrelid = p.partrelid AND a.attnum = k.attnum AND k.attnum > 0
WHERE p.partrelid IN (SELECT relid FROM pg_catalog.pg_partition_tree(%s))
"""


_DEFERRABLE = """
SELECT c.conname
FROM pg_constraint c JOIN pg_index i ON i.indexrelid = c.conindid
WHERE c.conrelid = %s AND i.indisunique AND NOT i.indimmediate
  AND (SELECT pg_catalog.array_agg(a.attname::text ORDER BY a.attname::text) FROM pg_attribute a
       WHERE a.attrelid = c.conrelid AND a.attnum = ANY(c.conkey)) = %s
ORDER BY 1
"""


def column_objections(mode: str, key: Sequence[str], columns: Sequence[str], otherwise: str) -> list[str]:
    """`otherwise`: what is wrong if there is no column beside the key's."""
    if not key:
        return [f"mode {mode} needs an upsert_key or a primary_key"]
    missing = [column for column in key if column not in columns]
    if missing:
        told = "".join(or_rather(column, columns) for column in missing)
        return [f"the upsert_key names columns that the source does not have: {', '.join(missing)}{told}"]
    if not set(columns) - set(key) - PROVENANCE_COLUMNS:
        return [f"the upsert_key names every column, so {otherwise}"]
    return []


def conflict_objections(connection: Connection, found: Found | None, key: Sequence[str]) -> list[str]:
    """ON CONFLICT takes every index on the key, and stumbles over one of these also beside one that it could use."""
    if found is None:
        return []
    deferrable = [name for (name,) in connection.execute(_DEFERRABLE, (found.oid, sorted(key)))]
    blurring = [index.name for index in found.unique_indexes if index.blurs and index.is_on(key)]
    return [
        *(
            f"the target's constraint {name} is deferrable, and PostgreSQL cannot merge by such a key; "
            "make it NOT DEFERRABLE"
            for name in deferrable
        ),
        *(
            f"the target's unique index {name} has a collation or an operator class to which keys may be one that "
            "differ in its columns, and PostgreSQL cannot merge by such a key; drop it, or make it anew with the "
            "columns' own"
            for name in blurring
        ),
    ]


def partition_objections(connection: Connection, found: Found | None, unique: Sequence[str]) -> list[str]:
    """A unique index has to be made, and cannot be."""
    if found is None or not found.partitioned:
        return []
    if found.holds_apart(unique):
        return []
    row = connection.execute(_PARTITION_KEY, (found.oid,)).fetchone()
    columns, by_expression = row if row is not None else ((), False)
    rows = f"the target is partitioned, and PostgreSQL cannot hold ({', '.join(unique)}) unique across partitions"
    if by_expression:
        return [f"{rows} that an expression tells apart; partition it by plain columns of the key"]
    lacking = [column for column in columns if column is not None and stored_name(column) not in unique]
    if not lacking:
        return []
    return [f"{rows} unless the key has {', '.join(lacking)}, by which it is partitioned; add that to the key"]
