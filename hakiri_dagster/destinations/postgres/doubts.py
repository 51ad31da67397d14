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
from hakiri_dagster.errors import UnsafeSql
from hakiri_dagster.manifest.tables import Table
from hakiri_dagster.quality.measures import Measure, Orphans, Probe
from hakiri_dagster.security.sql_guard import judge_probe, with_table

_EXISTS = """
SELECT EXISTS (SELECT FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
               WHERE n.nspname = %s AND c.relname = %s)
"""


def doubts(connection: Connection, table: Table, measures: Sequence[Measure]) -> Iterator[Doubt]:
    for measure in measures:
        match measure:
            case Orphans():
                yield from _of_reference(connection, table, measure)
            case Probe(statement=statement):
                yield from _of_probe(connection, table, statement)


def _of_reference(connection: Connection, table: Table, measure: Orphans) -> Iterator[Doubt]:
    place = stored_name(measure.schema or table.target_schema), stored_name(measure.table)
    own = stored_name(table.target_schema), stored_name(table.target_name)
    if not _exists(connection, place):
        if place != own:
            yield Doubt(f"{place[0]}.{place[1]}, to which {measure.column} refers, does not exist yet", may_pass=True)
        return
    found = catalog.find(connection, *own)
    type_ = "unknown" if found is None else _type_of(found, measure.column)
    reason = _refused(
        connection,
        sql.SQL("SELECT 1 FROM {} WHERE {} = CAST(NULL AS {}) LIMIT 0").format(
            relation(*place), sql.Identifier(stored_name(measure.ref_column)), sql.SQL(type_)
        ),
    )
    if reason is not None:
        yield Doubt(f"{measure.column} cannot refer to {place[0]}.{place[1]}: {reason}")


def _type_of(found: catalog.Found, column: str) -> str:
    """As the catalog spells it, which is SQL."""
    kept = stored_name(column)
    return next((one.type for one in found.target.columns if one.name == kept), "unknown")


def _of_probe(connection: Connection, table: Table, statement: str) -> Iterator[Doubt]:
    own = stored_name(table.target_schema), stored_name(table.target_name)
    try:
        probe = judge_probe(with_table(statement, relation(*own).as_string(connection)))
    except UnsafeSql as error:
        yield Doubt(f"the SELECT is refused: {error.what}")
        return
    for place in sorted(probe.reads):
        if place != own and not _exists(connection, place):
            yield Doubt(f"{place[0]}.{place[1]}, which the SELECT reads, does not exist yet", may_pass=True)


def _exists(connection: Connection, place: Relation) -> bool:
    return connection.execute(_EXISTS, place).fetchone() == (True,)


def _refused(connection: Connection, statement: sql.Composed) -> str | None:
    try:
        with connection.transaction(force_rollback=True):
            connection.execute(statement)
    except psycopg.ProgrammingError as error:
        return error.diag.message_primary
    return None
