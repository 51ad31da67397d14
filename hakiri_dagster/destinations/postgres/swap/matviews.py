"""Materialized views on tables that are to be exchanged, and on one another. PostgreSQL cannot make them refer to other
relations, so each is built anew from the new rows, before anybody waits, and takes the old one's place with them. Its
text is its owner's, so it is carried out with the owner's rights, and never with those of the role that loads."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import LiteralString

from psycopg import sql

from hakiri_dagster.destinations.postgres.connection import Connection
from hakiri_dagster.destinations.postgres.privacy import keep_private
from hakiri_dagster.destinations.postgres.swap.completion import Successors, complete
from hakiri_dagster.destinations.postgres.swap.portrait import about, members, names_in_full
from hakiri_dagster.destinations.postgres.swap.relations import Pair, name_in, oid_of, place_of, run, run_all
from hakiri_dagster.destinations.postgres.swap.sibling import storage_of
from hakiri_dagster.errors import DestinationError

# By the longest way from the tables, so that whatever one reads is there before it.
_ON_THEM: LiteralString = """
WITH RECURSIVE reader (oid, level) AS (
    SELECT member, 0 FROM unnest({oids}) AS member
  UNION
    SELECT m.oid, level + 1
    FROM reader JOIN pg_depend d ON d.refclassid = 'pg_class'::regclass AND d.refobjid = reader.oid
    JOIN pg_rewrite r ON d.classid = 'pg_rewrite'::regclass AND r.oid = d.objid
    JOIN pg_class m ON m.oid = r.ev_class AND m.relkind = 'm' AND m.oid <> reader.oid)
SELECT m.oid::bigint, m.relispopulated FROM reader JOIN pg_class m ON m.oid = reader.oid AND m.relkind = 'm'
GROUP BY m.oid ORDER BY max(level), m.oid
"""

# Columns are told by their names: the new relation has numbered its own anew.
_RIGHTS_TO_READ: LiteralString = """
SELECT format('GRANT SELECT ON TABLE %s TO %I', {new}::regclass, rolname)
FROM pg_class v JOIN pg_roles o ON o.oid = v.relowner
WHERE v.oid = {view} AND has_table_privilege(o.oid, {old}::oid, 'SELECT')
UNION ALL
SELECT format('GRANT SELECT (%I) ON TABLE %s TO %I', attname, {new}::regclass, rolname)
FROM pg_class v JOIN pg_roles o ON o.oid = v.relowner JOIN pg_attribute a ON a.attrelid = {old}
WHERE v.oid = {view} AND attnum > 0 AND NOT attisdropped AND NOT has_table_privilege(o.oid, {old}::oid, 'SELECT')
  AND has_column_privilege(o.oid, {old}::oid, attnum, 'SELECT')
"""

_READ: LiteralString = """
SELECT DISTINCT d.refobjid::bigint FROM pg_rewrite r
JOIN pg_depend d ON d.classid = 'pg_rewrite'::regclass AND d.objid = r.oid AND d.refclassid = 'pg_class'::regclass
WHERE r.ev_class = {view} AND d.refobjid = ANY({oids})
"""


def materialized_views(connection: Connection, oids: Sequence[int]) -> list[tuple[int, bool]]:
    """On those relations and on one another; whether they hold rows."""
    return connection.execute(about(_ON_THEM, *oids)).fetchall()


def build_materialized_views(connection: Connection, tables: Sequence[Pair], prefix: str) -> Successors:
    """In the open transaction, which nobody waits for: the new relations are not known to anybody."""
    run(connection, "SET LOCAL default_tablespace = ''")
    built: list[Pair] = []
    for oid, populated in materialized_views(connection, [pair.old for pair in tables]):
        built.insert(0, _build(connection, oid, populated, [*tables, *built], prefix))
    return complete(connection, built, prefix)


def _build(connection: Connection, oid: int, populated: bool, known: Sequence[Pair], prefix: str) -> Pair:
    schema, name = place_of(connection, oid)
    read = _read(connection, oid, known)
    schemas = list(dict.fromkeys(place_of(connection, pair.old)[0] for pair in read))
    definition = _definition(connection, oid, schemas)
    made_with = storage_of(connection, oid)
    place = f"{schema}.{prefix}{oid}"
    with _under_old_names(connection, read, f"{prefix}schema") as helper:
        run(connection, f"SET LOCAL search_path = {', '.join([helper, *schemas])}")
        run(connection, f"CREATE MATERIALIZED VIEW {place} {made_with.clauses} AS {definition} WITH NO DATA")
        names_in_full(connection)
    run(connection, f"ALTER MATERIALIZED VIEW {place} OWNER TO {made_with.owner}")
    new = oid_of(connection, place)
    keep_private(connection, new)
    if _read(connection, new, known):
        raise DestinationError(
            f"materialized view {name} reads a relation whose name another one hides, so it cannot be built anew",
            hint="rename one of the two relations that bear the same name in two schemas",
        )
    if populated:
        with _readable_by_owner(connection, oid, read):
            run(connection, f"REFRESH MATERIALIZED VIEW {place}")
    return Pair("MATERIALIZED VIEW", oid, new)


@contextmanager
def _readable_by_owner(connection: Connection, view: int, pairs: Sequence[Pair]) -> Iterator[None]:
    """Its owner may read of the new relations what it may read of the old ones, and nothing of them afterwards."""
    for pair in pairs:
        query = sql.SQL(_RIGHTS_TO_READ).format(
            view=sql.Literal(view), old=sql.Literal(pair.old), new=sql.Literal(pair.new)
        )
        run_all(connection, [line for (line,) in connection.execute(query).fetchall()])
    yield
    for pair in pairs:
        keep_private(connection, pair.new)


def _read(connection: Connection, view: int, known: Sequence[Pair]) -> list[Pair]:
    query = sql.SQL(_READ).format(view=sql.Literal(view), oids=members([pair.old for pair in known]))
    read = {oid for (oid,) in connection.execute(query).fetchall()}
    return [pair for pair in known if pair.old in read]


def _definition(connection: Connection, oid: int, schemas: Sequence[str]) -> str:
    """With the names in those schemas left short, so that they mean what another search path says."""
    run(connection, f"SET LOCAL search_path = {', '.join(schemas)}")
    row = connection.execute("SELECT pg_get_viewdef(%s::oid)", (oid,)).fetchone()
    names_in_full(connection)
    assert row is not None
    return str(row[0]).rstrip().rstrip(";")


@contextmanager
def _under_old_names(connection: Connection, pairs: Sequence[Pair], helper: str) -> Iterator[str]:
    """The new relations, in a schema of their own."""
    run(connection, f"CREATE SCHEMA {helper}")
    ways = [_way(connection, pair, helper) for pair in pairs]
    for here, there in ways:
        _move(connection, here, there)
    yield helper
    for here, there in ways:
        _move(connection, there, here)
    run(connection, f"DROP SCHEMA {helper}")


def _way(connection: Connection, pair: Pair, helper: str) -> tuple[tuple[str, str], tuple[str, str]]:
    (schema, place), (of_old, old_place) = place_of(connection, pair.new), place_of(connection, pair.old)
    return (schema, name_in(place, schema)), (helper, name_in(old_place, of_old))


def _move(connection: Connection, before: tuple[str, str], after: tuple[str, str]) -> None:
    """Through a name that neither schema has."""
    passing = "hakiri_passing"
    run(connection, f"ALTER TABLE {'.'.join(before)} RENAME TO {passing}")
    run(connection, f"ALTER TABLE {before[0]}.{passing} SET SCHEMA {after[0]}")
    run(connection, f"ALTER TABLE {after[0]}.{passing} RENAME TO {after[1]}")
