"""append: new rows alongside the old ones, and in the place of this table's own earlier rows of the same slice."""

from __future__ import annotations

from collections.abc import Sequence

from psycopg import sql
from typing_extensions import override

from hakiri_dagster.destinations.contract import LOAD_ID_COLUMN, Target
from hakiri_dagster.destinations.postgres.catalog import Found, stored_name
from hakiri_dagster.destinations.postgres.connection import Connection, relation
from hakiri_dagster.destinations.postgres.cursor_bounds import literal_of, within_bounds
from hakiri_dagster.destinations.postgres.cursor_order import cursor_type
from hakiri_dagster.destinations.postgres.modes.candidate_rows import stage_candidate
from hakiri_dagster.destinations.postgres.modes.contract import InTransaction, Mode, Work
from hakiri_dagster.destinations.postgres.modes.merging import insert_staged
from hakiri_dagster.manifest.tables import Table


class Append(Mode):
    clears_target = False
    looks_for_load_ids = True
    overwrites = False

    @override
    def objections(
        self, connection: Connection, table: Table, found: Found | None, columns: Sequence[str]
    ) -> Sequence[str]:
        if table.cursor is None or found is None:
            return ()
        kept = cursor_type(found.target, table.cursor)
        if kept is None or literal_of(kept, 0) is not None:
            return ()
        return (
            f"the cursor {table.cursor} is {kept} in the target; slices can be replaced by a date, a time "
            "or a number only",
        )

    @override
    def primary_key(self, table: Table, of_source: tuple[str, ...]) -> tuple[str, ...]:
        """The source's own key does not hold for rows that are kept beside later ones of the same key."""
        return tuple(map(stored_name, table.primary_key))

    @override
    def stage(self, work: Work) -> InTransaction:
        delete_replaced(work)
        target = work.load.target
        place = relation(target.schema, target.name)
        if work.load.replay is not None:  # its rows bear what the target has no column for
            stage_candidate(work)
            return InTransaction(work.blocks.taken(work.connection, place, insert_staged(work)))
        rows = work.blocks.copy_into(work.connection, place, work.load.columns)
        work.ask_candidate((target.schema, target.name), load_id=work.load.fence.load_id)
        return InTransaction(rows)

    @override
    def parallel(self, target: Target) -> bool:
        return not target.unique_keys


def delete_replaced(work: Work) -> None:
    """Only rows that the ledger knows as this table's own."""
    target = relation(work.load.target.schema, work.load.target.name)
    statement = sql.SQL("DELETE FROM {} WHERE {} = ANY({})")
    if work.replaced.wholly:
        wholly = sql.Literal(list(work.replaced.wholly))
        work.connection.execute(statement.format(target, sql.Identifier(LOAD_ID_COLUMN), wholly))
    if work.replaced.partly:
        partly = sql.Literal(list(work.replaced.partly))
        rows = statement.format(target, sql.Identifier(LOAD_ID_COLUMN), partly)
        work.connection.execute(sql.SQL(" AND ").join([rows, within_bounds(work.load)]))
