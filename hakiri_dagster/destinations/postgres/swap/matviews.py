"""Materialized views on a table that is to be exchanged. PostgreSQL cannot make them refer to another one, so each is
built anew from the new rows, before anybody waits, and takes the old one's place together with the table."""

from __future__ import annotations

from collections.abc import Sequence
from typing import LiteralString

from hakiri_dagster.destinations.postgres.connection import Connection
from hakiri_dagster.destinations.postgres.swap.portrait import about, names_in_full
from hakiri_dagster.destinations.postgres.swap.sibling import Pair, complete, name_in, oid_of, place_of, run, storage_of

_ON_TABLE: LiteralString = """
SELECT DISTINCT m.oid::bigint, m.relispopulated
FROM pg_depend d JOIN pg_rewrite r ON d.classid = 'pg_rewrite'::regclass AND r.oid = d.objid
JOIN pg_class m ON m.oid = r.ev_class AND m.relkind = 'm'
WHERE d.refclassid = 'pg_class'::regclass AND d.refobjid = {oid}
ORDER BY 1
"""


def build_materialized_views(connection: Connection, old: int, new: int, prefix: str) -> list[Pair]:
    """In the open transaction, which nobody waits for: the new table is not known to anybody."""
    found = connection.execute(about(_ON_TABLE, old)).fetchall()
    if not found:
        return []
    schema, place = place_of(connection, old)
    name, provisional = name_in(place, schema), name_in(place_of(connection, new)[1], schema)
    helper = f"{prefix}schema"
    definitions = [(oid, _definition(connection, oid, schema), populated) for oid, populated in found]
    run(connection, f"CREATE SCHEMA {helper}")
    _move(connection, (schema, provisional), (helper, name))
    pairs = [_build(connection, oid, text, populated, [helper, schema], prefix) for oid, text, populated in definitions]
    _move(connection, (helper, name), (schema, provisional))
    run(connection, f"DROP SCHEMA {helper}")
    return pairs


def _definition(connection: Connection, oid: int, schema: str) -> str:
    """With the names of the table's own schema left short, so that they mean what another search path says."""
    run(connection, f"SET LOCAL search_path = {schema}")
    row = connection.execute("SELECT pg_get_viewdef(%s::oid)", (oid,)).fetchone()
    names_in_full(connection)
    assert row is not None
    return str(row[0]).rstrip().rstrip(";")


def _build(
    connection: Connection, oid: int, definition: str, populated: bool, search_path: Sequence[str], prefix: str
) -> Pair:
    schema, _ = place_of(connection, oid)
    place = f"{schema}.{prefix}{oid}"
    made_with = storage_of(connection, oid)
    run(connection, f"SET LOCAL search_path = {', '.join(search_path)}")
    data = "WITH DATA" if populated else "WITH NO DATA"
    run(connection, f"CREATE MATERIALIZED VIEW {place} {made_with.clauses} AS {definition} {data}")
    names_in_full(connection)
    run(connection, f"ALTER MATERIALIZED VIEW {place} OWNER TO {made_with.owner}")
    new = oid_of(connection, place)
    return Pair("MATERIALIZED VIEW", oid, new, complete(connection, oid, new, prefix))


def _move(connection: Connection, before: tuple[str, str], after: tuple[str, str]) -> None:
    """Through a name that neither schema has."""
    passing = "hakiri_passing"
    run(connection, f"ALTER TABLE {'.'.join(before)} RENAME TO {passing}")
    run(connection, f"ALTER TABLE {before[0]}.{passing} SET SCHEMA {after[0]}")
    run(connection, f"ALTER TABLE {after[0]}.{passing} RENAME TO {after[1]}")
