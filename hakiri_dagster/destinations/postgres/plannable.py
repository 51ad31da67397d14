"""Which relations can be planned without running anybody's code.

To plan a SELECT, PostgreSQL evaluates what is constant in views, policies, index expressions and predicates, checks,
statistics and generated columns, and asks the types and operators of the columns for estimates, all of it as the role
that asks. A foreign table may ask another server. So everything below the relations has to be PostgreSQL's own: what
initdb made bears an oid below 16384, and the catalog has a dependency for all else.
"""

from __future__ import annotations

from collections.abc import Iterator, Set
from contextlib import contextmanager

from psycopg import sql

from hakiri_dagster.destinations.hooks_contract import Relation
from hakiri_dagster.destinations.postgres.connection import Connection
from hakiri_dagster.errors import UnsafeSql

_WHAT_IS_IN_THE_WAY = """
WITH RECURSIVE reached AS (
    SELECT c.oid
    FROM unnest(%(schemas)s::text[], %(names)s::text[]) AS named (schema, name)
    JOIN pg_namespace n ON n.nspname = named.schema
    JOIN pg_class c ON c.relnamespace = n.oid AND c.relname = named.name
    UNION
    SELECT i.inhrelid FROM reached JOIN pg_inherits i ON i.inhparent = reached.oid
), part (relation, classid, objid) AS (
    SELECT oid, 'pg_class'::regclass, oid FROM reached
    UNION ALL
    SELECT r.oid, 'pg_class'::regclass, i.indexrelid FROM reached r JOIN pg_index i ON i.indrelid = r.oid
    UNION ALL
    SELECT r.oid, 'pg_constraint'::regclass, c.oid FROM reached r JOIN pg_constraint c ON c.conrelid = r.oid
    UNION ALL
    SELECT r.oid, 'pg_statistic_ext'::regclass, s.oid FROM reached r JOIN pg_statistic_ext s ON s.stxrelid = r.oid
    UNION ALL
    SELECT r.oid, 'pg_attrdef'::regclass, d.oid
    FROM reached r
    JOIN pg_attrdef d ON d.adrelid = r.oid
    JOIN pg_attribute a ON a.attrelid = d.adrelid AND a.attnum = d.adnum
    WHERE a.attgenerated <> ''
)
SELECT oid::regclass::text, 'it is no ordinary table'
FROM reached JOIN pg_class USING (oid)
WHERE relkind NOT IN ('r', 'p')
UNION ALL
SELECT oid::regclass::text, 'it has row-level security'
FROM reached JOIN pg_class USING (oid)
WHERE relrowsecurity
UNION ALL
SELECT part.relation::regclass::text, 'it needs the ' || pg_describe_object(d.refclassid, d.refobjid, 0)
FROM part
JOIN pg_depend d ON d.classid = part.classid AND d.objid = part.objid
LEFT JOIN pg_attribute a
  ON d.classid = 'pg_class'::regclass AND a.attrelid = d.objid AND a.attnum = d.objsubid AND a.attnum > 0
WHERE d.refobjid >= 16384
  AND (%(column)s::text IS NULL
       OR d.refclassid <> 'pg_opclass'::regclass AND coalesce(a.attname = %(column)s, true))
  AND d.refclassid NOT IN (
    'pg_class'::regclass, 'pg_constraint'::regclass, 'pg_namespace'::regclass, 'pg_collation'::regclass,
    'pg_extension'::regclass, 'pg_attrdef'::regclass
  )
ORDER BY 1, 2
LIMIT 1
"""


@contextmanager
def only_what_plans_without_foreign_code(
    connection: Connection, relations: Set[Relation], where: str
) -> Iterator[None]:
    """A transaction in which no name means anything but PostgreSQL's own, and that changes nothing. The lock keeps
    what was judged as it is: nobody makes an index, a check, statistics or a partition meanwhile."""
    with connection.transaction(force_rollback=True):
        connection.execute("SET TRANSACTION READ ONLY")
        connection.execute("SET LOCAL search_path = pg_catalog, pg_temp")
        _refuse_what_is_in_the_way(connection, relations, where)
        for relation in sorted(relations):
            name = sql.Identifier(*relation)
            connection.execute(sql.SQL("LOCK TABLE {} IN SHARE UPDATE EXCLUSIVE MODE").format(name))
        _refuse_what_is_in_the_way(connection, relations, where)
        yield


@contextmanager
def one_column_without_foreign_code(connection: Connection, relation: Relation, column: str) -> Iterator[None]:
    """The same of a SELECT of ours that compares one column: types of others do not matter then, nor operator classes,
    which superusers make. It is locked as any SELECT locks it: the other lock would need a right to change it, and wait
    for VACUUM; so an index that its owner makes in the same moment is not seen."""
    with connection.transaction(force_rollback=True):
        connection.execute("SET TRANSACTION READ ONLY")
        connection.execute("SET LOCAL search_path = pg_catalog, pg_temp")
        _refuse_what_is_in_the_way(connection, {relation}, "", column)
        connection.execute(sql.SQL("LOCK TABLE {} IN ACCESS SHARE MODE").format(sql.Identifier(*relation)))
        _refuse_what_is_in_the_way(connection, {relation}, "", column)
        yield


def objection(connection: Connection, relations: Set[Relation], column: str | None = None) -> str | None:
    """Why a SELECT from them, or of one column, would be refused."""
    named = sorted(relations)
    named_so = {"schemas": [schema for schema, _ in named], "names": [name for _, name in named], "column": column}
    found = connection.execute(_WHAT_IS_IN_THE_WAY, named_so).fetchone()
    return None if found is None else "a SELECT from {} is not allowed: {}".format(*found)


def _refuse_what_is_in_the_way(
    connection: Connection, relations: Set[Relation], where: str, column: str | None = None
) -> None:
    found = objection(connection, relations, column)
    if found is not None:
        raise UnsafeSql(
            found,
            where=where,
            hint="even planning runs code of others with the rights of the load, so a SELECT may read "
            "ordinary and partitioned tables only, without policies, whose columns, indexes, checks and statistics "
            "need nothing but PostgreSQL's own types, functions and operators",
        )
