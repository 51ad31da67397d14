"""Rows of a PostgreSQL source, counted once more and summed up, as a destination sums up what it was given."""

from __future__ import annotations

from collections.abc import Sequence

from psycopg import Connection, sql
from psycopg.rows import TupleRow

from hakiri_dagster.connectors.contract import Forms, SourceTally
from hakiri_dagster.connectors.postgres.cursors import Cursor
from hakiri_dagster.planning.chunks import Slice


def tallies(
    holder: Connection[TupleRow], table: sql.Identifier, by: Cursor | None, slices: Sequence[Slice], forms: Forms
) -> list[SourceTally]:
    """One query for all slices, in the transaction whose snapshot the rows were read in."""
    conditions = [None if by is None else by.condition([one.bounds]) for one in slices]
    row = _row(forms)
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


def _row(forms: Forms) -> sql.Composable:
    """Forms are types, as the destination's catalog spells them."""
    if not forms:
        return sql.SQL("0")
    values = [sql.SQL("{}::{}").format(sql.Identifier(name), sql.SQL(form)) for name, form in forms]
    return sql.SQL("hash_record_extended(ROW({}), 0)").format(sql.SQL(", ").join(values))
