"""Rows that a load finds in the target, and whose stretch of the cursor it has read again.

A row may move to a lower cursor: of two transactions that change it, the one that began first may be the one that
commits last. Where the stretch is read again, the source's rows count, not the higher cursor.
"""

from __future__ import annotations

from datetime import datetime

from psycopg import sql

from hakiri_dagster.destinations.contract import LOAD_ID_COLUMN
from hakiri_dagster.destinations.postgres.catalog import target_of
from hakiri_dagster.destinations.postgres.cursor_bounds import within_intervals
from hakiri_dagster.destinations.postgres.modes.contract import Work


def is_read_again(work: Work, column: sql.Composable, column_type: str | None) -> sql.Composable | None:
    """The condition that a cursor lies in the stretch; None for a load that reads none again."""
    if work.load.replay is not None or not work.load.rereads or column_type is None:
        return None
    return within_intervals(column, column_type, work.load.rereads)


def may_have_moved_back(work: Work, row: str, column: sql.Composable, column_type: str | None) -> sql.Composable | None:
    """The condition that a row of the target, whose cursor is higher than that of the row which is loaded, may be of an
    earlier time all the same: a load of this table has written it, and its stretch of the cursor is read again, or it
    was published before this load began to read a source that has one row a key."""
    load = work.load
    if load.replay is not None:
        return None
    again, cases = is_read_again(work, column, column_type), list[sql.Composable]()
    if again is not None:
        cases.append(sql.SQL("({} AND {})").format(again, _is_published_by_table(work, row)))
    if load.read_after is not None:
        cases.append(_is_published_by_table(work, row, until=load.read_after))
    return sql.SQL("({})").format(sql.SQL(" OR ").join(cases)) if cases else None


def _is_published_by_table(work: Work, row: str, until: datetime | None = None) -> sql.Composed:
    """The condition that a row of the target is of this table's own loads: others may publish to the same target."""
    table = work.load.table
    return sql.SQL(
        "EXISTS (SELECT FROM hakiri.ledger AS own WHERE own.load_id = {load_id} AND own.pipeline_id = {pipeline} "
        "AND own.table_name = {table} AND own.target = {target}{until})"
    ).format(
        load_id=sql.Identifier(row, LOAD_ID_COLUMN),
        pipeline=sql.Literal(table.pipeline_id),
        table=sql.Literal(table.name),
        target=sql.Literal(target_of(table)),
        until=sql.SQL("") if until is None else sql.SQL(" AND own.published_at <= {}").format(sql.Literal(until)),
    )
