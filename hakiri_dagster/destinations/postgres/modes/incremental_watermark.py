"""incremental_watermark: append of what is above a mark that the destination keeps, slice by slice in its order."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from psycopg import sql
from typing_extensions import override

from hakiri_dagster.destinations.contract import Mark, Target
from hakiri_dagster.destinations.postgres import watermarks
from hakiri_dagster.destinations.postgres.catalog import Found, stored_name
from hakiri_dagster.destinations.postgres.connection import Connection, names, relation
from hakiri_dagster.destinations.postgres.cursor_order import cursor_type
from hakiri_dagster.destinations.postgres.inheritance import inherited, may_hold, missing_rows
from hakiri_dagster.destinations.postgres.modes.append import Append, delete_replaced
from hakiri_dagster.destinations.postgres.modes.candidate_rows import STAGED, stage_candidate
from hakiri_dagster.destinations.postgres.modes.contract import InTransaction, Work
from hakiri_dagster.destinations.postgres.modes.merging import insert_staged
from hakiri_dagster.destinations.postgres.row_as_json import PLACE
from hakiri_dagster.destinations.postgres.row_errors import rows_at_stake
from hakiri_dagster.manifest.tables import Table


class IncrementalWatermark(Append):
    @override
    def objections(
        self, connection: Connection, table: Table, found: Found | None, columns: Sequence[str]
    ) -> Sequence[str]:
        if table.cursor is None:
            return (f"mode {table.mode} needs a watermark_column",)
        if found is not None and cursor_type(found.target, table.cursor) is None:
            return (
                f"the target has no column {table.cursor}, so it cannot tell what it holds already; add the column and "
                "fill it, choose another watermark_column, or give the table another `target`",
            )
        return [
            *super().objections(connection, table, found, columns),
            *(_other_column(connection, table) if found is not None else ()),
        ]

    @override
    def mark(self, connection: Connection, table: Table, found: Found, tenant: str) -> Mark | None:
        known = _known(connection, table, found.target, tenant)
        if known is None:
            return None
        return Mark(known.position, None if known.inherited is None else known.inherited.position)

    @override
    def stage(self, work: Work) -> InTransaction:
        """The rows of others that the mark was read from are not loaded beside themselves."""
        load, connection = work.load, work.connection
        known = _known(connection, load.table, load.target, work.connections.tenant)
        before = None if known is None else known.inherited
        if before is None or not may_hold(before, load.slice.bounds):
            return _moving(work, known, super().stage(work).rows)
        delete_replaced(work)
        rows = stage_candidate(work)
        added = _add_missing(work, before)
        left_out = () if added == rows else (_left_out(work, rows - added, before.value),)
        return _moving(work, known, work.blocks.rows, left_out)

    @override
    def parallel(self, target: Target) -> bool:
        return False


def _add_missing(work: Work, before: watermarks.Inherited) -> int:
    """How many there were. What is missing is found among all rows together: the same row may be there some times."""
    connection, load = work.connection, work.load
    if work.blocks.refused is None:
        target = relation(load.target.schema, load.target.name)
        with rows_at_stake(target.as_string(connection)):
            missing = missing_rows(load.columns, load, STAGED, before)
            statement = sql.SQL("INSERT INTO {} ({}) {}").format(target, names(load.columns), missing)
            return connection.execute(statement).rowcount
    connection.execute(
        sql.SQL("DELETE FROM {} WHERE {place} NOT IN ({missing})").format(
            STAGED, place=sql.Identifier(PLACE), missing=missing_rows([PLACE], load, STAGED, before)
        )
    )
    before_judging = work.blocks.rows
    added = insert_staged(work)
    return added + before_judging - work.blocks.rows


def _moving(work: Work, known: watermarks.KnownMark | None, rows: int, told: tuple[str, ...] = ()) -> InTransaction:
    """Rows out of the quarantine come after their turn, and say nothing of how far the loads have come."""
    if work.load.replay is not None:
        return InTransaction(rows, told)
    return _Advancing(rows, told, work=work, known=known)


def _left_out(work: Work, rows: int, mark: str | None) -> str:
    """Without a lag nobody has compared what is not above the mark with what the target holds."""
    table, key = work.load.table, work.load.slice.chunk.key
    if mark is None or table.load.lag is not None:
        return f"chunk {key}: {rows} row(s) not loaded, for they were in the target before our first load"
    return (
        f"chunk {key}: {rows} row(s) not loaded, for they were in the target before our first load, or are not above "
        f"{mark}, the highest {table.cursor} that it had; set `lag` to have those compared"
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Advancing(InTransaction):
    """The mark moves in the transaction that makes the rows visible, or not at all."""

    work: Work
    known: watermarks.KnownMark | None

    @override
    def expose(self) -> None:
        work = self.work
        watermarks.advance(work.connection, work.load, work.connections.tenant, self.known)


def _known(connection: Connection, table: Table, target: Target, tenant: str) -> watermarks.KnownMark | None:
    """As it is stored; before the first load, as the rows of the target tell it."""
    mark = watermarks.stored(connection, table, tenant)
    kept = cursor_type(target, table.cursor or "")
    if mark is not None or kept is None:
        return mark
    before = inherited(connection, table, kept)
    if before is None:
        return None
    return watermarks.KnownMark(stored_name(table.cursor or ""), before.value, before.position, before, is_stored=False)


def _other_column(connection: Connection, table: Table) -> Sequence[str]:
    columns = watermarks.columns_of(connection, table)
    wrong = [column for column in columns if column != stored_name(table.cursor or "")]
    return [
        f"its watermark is kept of {column}, and watermark_column is {table.cursor} now, which says nothing of what is "
        "loaded; name the column as before, or give the table another `target`"
        for column in wrong
    ]
