"""What is in the way of a validator's question, as far as the catalog tells before any row moves."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import psycopg
from psycopg import sql

from hakiri_dagster.destinations.contract import Doubt
from hakiri_dagster.destinations.hooks_contract import Relation
from hakiri_dagster.destinations.postgres import catalog
from hakiri_dagster.destinations.postgres.catalog import stored_name
from hakiri_dagster.destinations.postgres.connection import Connection, relation
from hakiri_dagster.destinations.postgres.plannable import objection
from hakiri_dagster.destinations.postgres.target_plan import NewColumn, TargetPlanner
from hakiri_dagster.errors import UnsafeSql
from hakiri_dagster.manifest.tables import Table
from hakiri_dagster.planning.columns import SourceSchema
from hakiri_dagster.quality.measures import Measure, Orphans, Probe
from hakiri_dagster.security.sql_guard import judge_probe, with_table

_EXISTS = """
SELECT EXISTS (SELECT FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
               WHERE n.nspname = %s AND c.relname = %s)
"""

# Before PostgreSQL 17 only who may change a table may lock it.
_LACKING = """
WITH server AS (SELECT current_setting('server_version_num')::int >= 170000 AS knows_maintain)
SELECT needed.statement || ' TO ' || quote_ident(current_user)
FROM server, pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace, LATERAL (VALUES
    (has_schema_privilege(n.oid, 'USAGE'), pg_catalog.format('GRANT USAGE ON SCHEMA %%I', n.nspname)),
    (has_any_column_privilege(c.oid, 'SELECT'),
     pg_catalog.format('GRANT SELECT ON TABLE %%I.%%I', n.nspname, c.relname)),
    (has_table_privilege(c.oid, 'UPDATE, DELETE, TRUNCATE' || CASE WHEN knows_maintain THEN ', MAINTAIN' ELSE '' END),
     pg_catalog.format('GRANT %%s ON TABLE %%I.%%I', CASE WHEN knows_maintain THEN 'MAINTAIN' ELSE 'UPDATE' END,
            n.nspname, c.relname))
) AS needed (given, statement)
WHERE n.nspname = %s AND c.relname = %s AND NOT needed.given
"""


def doubts(
    connection: Connection, table: Table, measures: Sequence[Measure], schema: SourceSchema | None
) -> Iterator[Doubt]:
    for measure in measures:
        match measure:
            case Orphans():
                yield from _of_reference(connection, table, measure, schema)
            case Probe():
                yield from _of_probe(connection, table, measure)


def _of_reference(
    connection: Connection, table: Table, measure: Orphans, schema: SourceSchema | None
) -> Iterator[Doubt]:
    place = stored_name(measure.schema or table.target_schema), stored_name(measure.table)
    own = stored_name(table.target_schema), stored_name(table.target_name)
    if not _exists(connection, place):
        if place != own:
            reason = f"{place[0]}.{place[1]}, to which {measure.column} refers, does not exist yet"
            yield Doubt(measure, reason, may_pass=True)
        return
    wrong = None if place == own else objection(connection, {place}, stored_name(measure.ref_column))
    if wrong is None:
        wrong = _not_comparable(connection, place, measure, _own_type(connection, table, measure.column, schema))
    if wrong is not None:
        yield Doubt(measure, f"{measure.column} cannot refer to {place[0]}.{place[1]}: {wrong}")


def _own_type(connection: Connection, table: Table, column: str, schema: SourceSchema | None) -> str:
    """As the catalog spells it, which is SQL; of a column that the target lacks the type that a load gives it."""
    kept, found = stored_name(column), catalog.find(connection, table.target_schema, table.target_name)
    types = {} if schema is None else {one.name: one.type for one in _new_columns(connection, table, schema)}
    if found is not None:
        types |= {one.name: one.type for one in found.target.columns}
    return types.get(kept, "unknown")


def _new_columns(connection: Connection, table: Table, schema: SourceSchema) -> Sequence[NewColumn]:
    return TargetPlanner(connection, table, schema, with_file_hash=False).source_columns()


def _not_comparable(connection: Connection, place: Relation, measure: Orphans, own_type: str) -> str | None:
    """By PostgreSQL's own operator, as the load asks: who may create things where names are looked up may have made a
    better fitting one, and planning runs its code."""
    column = stored_name(measure.ref_column)
    statement = sql.SQL("SELECT 1 FROM {} WHERE {} OPERATOR(pg_catalog.=) CAST(NULL AS {}) LIMIT 0").format(
        relation(*place), sql.Identifier(column), sql.SQL(own_type)
    )
    try:
        with connection.transaction(force_rollback=True):
            connection.execute(statement)
    except psycopg.errors.UndefinedFunction as error:
        told = f"{error.diag.message_primary}, for {measure.column} is {own_type}".replace(" pg_catalog.= ", " = ")
        return f"{told}; give one of them the other's type (`columns` declares one), or refer to another column"
    except psycopg.errors.UndefinedColumn as error:
        return f"{error.diag.message_primary}; name one that it has as `ref_column`"
    except psycopg.ProgrammingError as error:
        return error.diag.message_primary
    return None


def _of_probe(connection: Connection, table: Table, measure: Probe) -> Iterator[Doubt]:
    own = stored_name(table.target_schema), stored_name(table.target_name)
    try:
        probe = judge_probe(with_table(measure.statement, relation(*own).as_string(connection)))
    except UnsafeSql as error:
        yield Doubt(measure, f"the SELECT is refused: {error.what}")
        return
    present = {place for place in probe.reads | {own} if _exists(connection, place)}
    for schema, name in sorted(probe.reads - present - {own}):
        yield Doubt(measure, f"{schema}.{name}, which the SELECT reads, does not exist yet", may_pass=True)
    wrong = objection(connection, present)
    if wrong is not None:
        yield Doubt(measure, f"the SELECT is refused: {wrong}")
        return
    for schema, name in sorted(present - {own}):
        lacking = [statement for (statement,) in connection.execute(_LACKING, (schema, name))]
        if lacking:
            read = f"the SELECT reads {schema}.{name}, and keeps its definition as it is meanwhile"
            yield Doubt(measure, f"{read}, which the loading role may not do: {'; '.join(lacking)}")


def _exists(connection: Connection, place: Relation) -> bool:
    return connection.execute(_EXISTS, place).fetchone() == (True,)
