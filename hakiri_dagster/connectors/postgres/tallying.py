"""Rows of a PostgreSQL source, counted once more and summed up, as a destination sums up what it was given."""

from __future__ import annotations

from collections.abc import Sequence

from psycopg import Connection, sql
from psycopg.rows import TupleRow

from hakiri_dagster.connectors.contract import Forms, SourceTally
from hakiri_dagster.connectors.postgres.cursors import Cursor
from hakiri_dagster.planning.chunks import Slice


def tallies(
    holder: Connection[TupleRow],
    table: sql.Identifier,
    by: Cursor | None,
    slices: Sequence[Slice],
    row: sql.Composable,
) -> list[SourceTally]:
    """One query for all slices, in the transaction whose snapshot the rows were read in."""
    conditions = [None if by is None else by.condition([one.bounds]) for one in slices]
    asked = [aggregate for condition in conditions for aggregate in _aggregates(row, condition)]
    of_any = None if by is None else by.condition([one.bounds for one in slices])
    where = sql.SQL("") if of_any is None else sql.SQL(" WHERE {}").format(of_any)
    statement = sql.SQL("SELECT {} FROM {}{}").format(sql.SQL(", ").join(asked), table, where)
    found = holder.execute(statement).fetchone() or ()
    return [SourceTally(rows, int(digest)) for rows, digest in zip(found[0::2], found[1::2], strict=True)]


def _aggregates(row: sql.Composable, condition: sql.Composable | None) -> tuple[sql.Composable, sql.Composable]:
    only = sql.SQL("") if condition is None else sql.SQL(" FILTER (WHERE {})").format(condition)
    return (
        sql.SQL("count(*){}").format(only),
        sql.SQL("coalesce(sum({}::numeric){}, 0)").format(row, only),
    )


def row_of(forms: Forms, *, empty_as_null: bool) -> sql.Composable:
    """What is summed up. Forms are types, as the destination's catalog spells them."""
    if not forms:
        return sql.SQL("0")
    values = [_value(name, form, empty_as_null=empty_as_null) for name, form in forms]
    return sql.SQL("hash_record_extended(ROW({}), 0)").format(sql.SQL(", ").join(values))


def _value(name: str, form: str, *, empty_as_null: bool) -> sql.Composable:
    value = sql.SQL("{}::{}").format(sql.Identifier(name), sql.SQL(form))
    is_text = form == "text" or form.startswith("character")
    return sql.SQL("nullif({}, '')").format(value) if empty_as_null and is_text else value
