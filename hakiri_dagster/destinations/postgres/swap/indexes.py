"""Indexes and keys of `<table>_new`, under provisional names: the old table has the final ones, which PostgreSQL keeps
once a schema."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, LiteralString

from psycopg import sql

from hakiri_dagster.destinations.contract import LOAD_ID_COLUMN
from hakiri_dagster.destinations.postgres.connection import Connection
from hakiri_dagster.destinations.postgres.swap.portrait import about
from hakiri_dagster.destinations.postgres.swap.relations import Pair, Rename, after, before, place_of, run

# A definition tells its own name and table at its beginning, where they are exchanged for others. A key's own text
# lacks the index's settings, which stand before what it ends with; an exclusion's has them.
_INDEXES: LiteralString = """
SELECT i.indexrelid::bigint, quote_ident(c.relname), quote_literal(coalesce(s.spcname, '')),
       CASE WHEN m.amname = 'btree' AND c.relkind = 'i' THEN
            CASE k.contype WHEN 'p' THEN 'PRIMARY KEY USING INDEX ' WHEN 'u' THEN 'UNIQUE USING INDEX ' END END,
       pg_get_constraintdef(k.oid),
       concat(CASE WHEN k.condeferrable THEN ' DEFERRABLE' END, CASE WHEN k.condeferred THEN ' INITIALLY DEFERRED' END),
       CASE WHEN k.contype <> 'x' THEN ' WITH (' || array_to_string(c.reloptions, ', ') || ')' END,
       format('CREATE %sINDEX ', CASE WHEN i.indisunique THEN 'UNIQUE ' ELSE '' END),
       CASE WHEN c.relkind = 'I' THEN 'ONLY ' ELSE '' END, quote_ident(c.relname), i.indrelid::regclass::text,
       pg_get_indexdef(i.indexrelid)
FROM pg_index i JOIN pg_class c ON c.oid = i.indexrelid JOIN pg_am m ON m.oid = c.relam
LEFT JOIN pg_constraint k ON k.conindid = i.indexrelid AND k.conrelid = i.indrelid AND k.contype IN ('p', 'u', 'x')
LEFT JOIN pg_tablespace s ON s.oid = c.reltablespace
WHERE i.indrelid = {oid} AND (i.indisvalid OR c.relkind = 'I') AND {which} ORDER BY i.indisprimary DESC, c.relname
"""

# All rows have one load id now, so a summary of it tells nothing apart; `load_id_index` sums up when there are more.
_LOAD_ID_INDEX: LiteralString = """
(m.amname = 'brin' AND c.relkind = 'i' AND i.indnatts = 1 AND pg_get_indexdef(i.indexrelid, 1, false) = {load_id})
"""

_PARTS: LiteralString = """
SELECT quote_ident(n.nspname), c.oid::bigint
FROM pg_inherits JOIN pg_index i ON i.indexrelid = inhrelid
JOIN pg_class c ON c.oid = inhrelid JOIN pg_namespace n ON n.oid = c.relnamespace
WHERE inhparent = {oid} AND (i.indisvalid OR c.relkind = 'I')
"""


def make_index_of_load_ids(connection: Connection, pair: Pair, prefix: str) -> None:
    """While there are no rows it need not read any."""
    _make(connection, pair, prefix, sql.SQL(_LOAD_ID_INDEX))


def make_indexes(connection: Connection, pair: Pair, prefix: str) -> None:
    """All the others. Those of a partition are there when its parent's are made."""
    _make(connection, pair, prefix, sql.SQL("NOT " + _LOAD_ID_INDEX))


def index_names(connection: Connection, pair: Pair, prefix: str) -> Iterator[Rename]:
    schema, _ = place_of(connection, pair.new)
    for oid, name, *_definition in _indexes(connection, pair.old, sql.SQL("true")):
        yield Rename("INDEX", schema, f"{prefix}{oid}", name)


def _make(connection: Connection, pair: Pair, prefix: str, which: sql.SQL) -> None:
    schema, place = place_of(connection, pair.new)
    for oid, _, tablespace, *definition in _indexes(connection, pair.old, which):
        run(connection, f"SET LOCAL default_tablespace = {tablespace}")
        for statement in _statements(place, f"{prefix}{oid}", *definition):
            run(connection, statement)
        for of_part, part in connection.execute(about(_PARTS, oid)).fetchall():
            run(connection, f"ALTER INDEX {schema}.{prefix}{oid} ATTACH PARTITION {of_part}.{prefix}{part}")


def _indexes(connection: Connection, oid: int, which: sql.SQL) -> Sequence[tuple[Any, ...]]:
    condition = which.format(load_id=sql.Literal(LOAD_ID_COLUMN))
    return connection.execute(sql.SQL(_INDEXES).format(oid=sql.Literal(oid), which=condition)).fetchall()


def _statements(
    place: str,
    provisional: str,
    stands_for: str | None,
    constraint: str | None,
    tail: str,
    options: str | None,
    create: str,
    only: str,
    name: str,
    table: str,
    definition: str,
) -> Iterator[str]:
    """Neither an exclusion nor a key of a partitioned table can be made of an index."""
    if constraint is not None and stands_for is None:
        with_options = f"{before(constraint, tail)}{options or ''}{tail}"
        yield f"ALTER TABLE ONLY {place} ADD CONSTRAINT {provisional} {with_options}"
        return
    yield f"{create}{provisional} ON {only}{place}{after(definition, f'{create}{name} ON {only}{table}')}"
    if stands_for is not None:
        yield f"ALTER TABLE {place} ADD CONSTRAINT {provisional} {stands_for}{provisional} {tail}"
