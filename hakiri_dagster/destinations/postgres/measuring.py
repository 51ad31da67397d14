"""What validators ask of rows in PostgreSQL: one query for all that one pass answers, one for each of the others."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from decimal import Decimal
from typing import Any, assert_never

import psycopg
from psycopg import sql

from hakiri_dagster.destinations.contract import PROVENANCE_COLUMNS
from hakiri_dagster.destinations.hooks_contract import Relation
from hakiri_dagster.destinations.postgres.asked_rows import AskedRows
from hakiri_dagster.destinations.postgres.catalog import stored_name
from hakiri_dagster.destinations.postgres.connection import Connection, relation
from hakiri_dagster.destinations.postgres.digesting import digested
from hakiri_dagster.destinations.postgres.driver_errors import is_transient
from hakiri_dagster.destinations.postgres.duplicate_keys import duplicate_keys
from hakiri_dagster.destinations.postgres.plannable import one_column_without_foreign_code
from hakiri_dagster.destinations.postgres.probing import probed
from hakiri_dagster.destinations.postgres.types import PgType, parse_type
from hakiri_dagster.errors import UnsafeSql
from hakiri_dagster.manifest.rule_values import PlainValue
from hakiri_dagster.quality.measures import (
    FEW,
    SHOWN_CHARACTERS,
    AboutLoad,
    Answer,
    Checksums,
    ColumnsFound,
    ColumnTypes,
    Digest,
    Distinct,
    Duplicates,
    Highest,
    InPassing,
    Instant,
    Lowest,
    Measure,
    Nulls,
    Orphans,
    Probe,
    Rows,
    RowsAtSource,
    RowsSetAside,
    Single,
    Strangers,
    Total,
    Unanswered,
    Violations,
)

_TIMES = ("date", "timestamp with time zone", "timestamp without time zone")
_WHOLE = ("smallint", "integer", "bigint")


def answered(connection: Connection, rows: AskedRows, measures: Sequence[Measure]) -> dict[Measure, Answer]:
    """One that PostgreSQL refuses keeps no other from being answered."""
    together = [measure for measure in measures if isinstance(measure, InPassing)]
    answers = _answered_together(connection, rows, together)
    for measure in measures:
        if not isinstance(measure, InPassing):
            with _if_refused(connection, [measure], answers):
                answers[measure] = _answer(connection, rows, measure)
    return answers


def _answered_together(connection: Connection, rows: AskedRows, measures: Sequence[InPassing]) -> dict[Measure, Answer]:
    """One by one only if the query for all of them is refused."""
    answers: dict[Measure, Answer] = {}
    if measures:
        with _if_refused(connection, measures, answers):
            answers.update(_in_one_pass(connection, rows, measures))
    refused = [one for one in measures if isinstance(answers[one], Unanswered)]
    if len(measures) == 1 or not refused:
        return answers
    return {one: _answered_together(connection, rows, [one])[one] for one in measures}


@contextmanager
def _if_refused(connection: Connection, measures: Sequence[Measure], answers: dict[Measure, Answer]) -> Iterator[None]:
    """What may pass by itself is tried again with the load."""
    try:
        with connection.transaction():
            yield
    except psycopg.Error as error:
        if is_transient(error):
            raise
        answers.update(dict.fromkeys(measures, Unanswered(f"PostgreSQL refuses it: {error.diag.message_primary}")))


def _in_one_pass(
    connection: Connection, rows: AskedRows, measures: Sequence[InPassing]
) -> Iterable[tuple[Measure, Answer]]:
    asked = sql.SQL(", ").join(_aggregate(measure, rows) for measure in measures)
    statement = sql.SQL("SELECT {} FROM {}{}").format(asked, rows.relation, rows.where())
    found = connection.execute(statement).fetchone() or ()
    for measure, value in zip(measures, found, strict=True):
        yield measure, _told(connection, rows, measure, value)


def _aggregate(measure: InPassing, rows: AskedRows) -> sql.Composable:
    if isinstance(measure, Rows):
        return sql.SQL("count(*)")
    column = sql.Identifier(stored_name(measure.column))
    match measure:
        case Nulls():
            return sql.SQL("count(*) - count({})").format(column)
        case Lowest() | Highest():
            return _extreme("min" if isinstance(measure, Lowest) else "max", column, _is_time(measure, rows))
        case Total():
            exact_enough = "sum({}::double precision)" if _type(measure.column, rows).name == "real" else "sum({})"
            return sql.SQL(exact_enough).format(column)
        case Distinct():
            return sql.SQL("count(DISTINCT {})").format(column)
        case Strangers(values=values):
            return sql.SQL("count(*) FILTER (WHERE {})").format(_strange(column, values))
        case _:
            assert_never(measure)


def _extreme(function: str, column: sql.Identifier, is_time: bool) -> sql.Composed:
    if not is_time:
        return sql.SQL("{}({})").format(sql.SQL(function), column)
    return sql.SQL("extract(epoch FROM {0}({1}) FILTER (WHERE isfinite({1}))) * 1000000").format(
        sql.SQL(function), column
    )


def _is_time(measure: Lowest | Highest, rows: AskedRows) -> bool:
    return _type(measure.column, rows).name in _TIMES


def _type(column: str, rows: AskedRows) -> PgType:
    return rows.types[stored_name(column)]


def _strange(column: sql.Identifier, values: Sequence[PlainValue]) -> sql.Composed:
    """Constants without a type become the column's."""
    listed = sql.SQL(", ").join(sql.Literal(_as_text(value)) for value in values)
    return sql.SQL("{} NOT IN ({})").format(column, listed)


def _as_text(value: PlainValue) -> str:
    """A float as it is written: 1e39 has no digits but zeros behind the one."""
    if isinstance(value, float) and value.is_integer():
        return f"{Decimal(repr(value)).to_integral_value():f}"
    return str(value)


def _told(connection: Connection, rows: AskedRows, measure: InPassing, value: Any) -> Answer:
    match measure:
        case Strangers(column=column, values=values):
            if not value:
                return Violations(0)
            name = sql.Identifier(stored_name(column))
            return Violations(value, _few(connection, name, rows.relation, rows.where(_strange(name, values))))
        case Lowest() | Highest() if value is not None and _is_time(measure, rows):
            return Instant(int(value))
        case Total(column=column) if value is not None and _type(column, rows).name in _WHOLE:
            return int(value)
        case Lowest(column=column) | Highest(column=column) if isinstance(value, float):
            return Single(value) if _type(column, rows).name == "real" else value
        case Rows() | Nulls() | Distinct() | Lowest() | Highest() | Total():
            return _number(value)
        case _:
            assert_never(measure)


def _number(value: Any) -> int | float | Decimal | None:
    if value is None or isinstance(value, int | float | Decimal):
        return value
    raise TypeError(f"PostgreSQL counts {value!r}")


def _few(connection: Connection, column: sql.Identifier, place: sql.Composable, where: sql.Composed) -> tuple[str, ...]:
    statement = sql.SQL("SELECT DISTINCT left({}::text, {}) FROM {}{} LIMIT {}").format(
        column, SHOWN_CHARACTERS, place, where, FEW
    )
    return tuple(text for (text,) in connection.execute(statement))


def _answer(
    connection: Connection,
    rows: AskedRows,
    measure: Duplicates | Orphans | ColumnTypes | Probe | Digest | AboutLoad,
) -> Answer:
    match measure:
        case Duplicates(columns=columns):
            found = duplicate_keys(connection, rows.relation, list(map(stored_name, columns)), rows.where)
            return Violations(found.rows, found.few)
        case Orphans():
            return _orphans(connection, rows, measure)
        case ColumnTypes(columns=columns):
            return _compared(rows, columns)
        case Probe():
            return probed(connection, rows, measure)
        case Digest():
            return digested(connection, rows, measure)
        case RowsSetAside() | RowsAtSource() | Checksums():
            return Unanswered("only a load can be compared with its source")
        case _:
            assert_never(measure)


def _orphans(connection: Connection, rows: AskedRows, measure: Orphans) -> Answer:
    """Of a table that refers to itself, its new rows count as well."""
    schema, name = stored_name(measure.schema or rows.target.schema), stored_name(measure.table)
    itself = (schema, name) == (rows.target.schema, rows.target.name)
    references = [rows.place] if itself else [(schema, name)]
    if itself and rows.place[0] == "pg_temp":
        references.append((schema, name))
    missing = connection.execute("SELECT to_regclass(%s) IS NULL", (_spelled(schema, name),)).fetchone()
    if missing == (True,):
        return Unanswered(f"{schema}.{name} does not exist")
    try:
        with ExitStack() as judged:
            if not itself:
                refers_to = stored_name(measure.ref_column)
                judged.enter_context(one_column_without_foreign_code(connection, (schema, name), refers_to))
            return _without_reference(connection, rows, measure, references)
    except UnsafeSql as error:
        return Unanswered(f"it is not asked: {error.what}")


def _without_reference(
    connection: Connection, rows: AskedRows, measure: Orphans, references: Sequence[Relation]
) -> Violations:
    column = sql.Identifier(stored_name(measure.column))
    own = sql.SQL("asked.{}").format(column)
    absent = [
        sql.SQL("NOT EXISTS (SELECT FROM {} AS referred WHERE referred.{} = {})").format(
            relation(*reference), sql.Identifier(stored_name(measure.ref_column)), own
        )
        for reference in references
    ]
    where = rows.where(sql.SQL("{} IS NOT NULL").format(own), *absent)
    place = sql.SQL("{} AS asked").format(rows.relation)
    counted = connection.execute(sql.SQL("SELECT count(*) FROM {}{}").format(place, where)).fetchone()
    count = counted[0] if counted is not None else 0
    return Violations(count, _few(connection, column, place, where) if count else ())


def _spelled(schema: str, name: str) -> str:
    return ".".join('"' + part.replace('"', '""') + '"' for part in (schema, name))


def _compared(rows: AskedRows, columns: Sequence[tuple[str, str]]) -> ColumnsFound:
    types = rows.types
    named = {stored_name(name): wanted for name, wanted in columns}
    differing = tuple(
        (name, str(types[name]) if name in types else None)
        for name, wanted in named.items()
        if name not in types or types[name] != (parse_type(wanted) or PgType(wanted))
    )
    ours = {*PROVENANCE_COLUMNS, *rows.added}
    return ColumnsFound(differing, tuple(name for name in types if name not in named and name not in ours))
