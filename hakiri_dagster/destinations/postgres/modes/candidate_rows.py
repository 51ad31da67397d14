"""A candidate that is compared with the target: a temporary table. A merge by key leaves one row a key in it."""

from __future__ import annotations

from collections.abc import Sequence

from psycopg import sql

from hakiri_dagster.destinations.contract import KEPT_ID_COLUMN
from hakiri_dagster.destinations.hooks_contract import Relation
from hakiri_dagster.destinations.postgres.catalog import stored_name
from hakiri_dagster.destinations.postgres.connection import names, relation
from hakiri_dagster.destinations.postgres.cursor_order import cursor_type, placed
from hakiri_dagster.destinations.postgres.duplicate_keys import duplicate_keys
from hakiri_dagster.destinations.postgres.modes.contract import Work
from hakiri_dagster.destinations.postgres.row_as_json import PLACE
from hakiri_dagster.errors import DestinationError
from hakiri_dagster.manifest.tables import Table

STAGED_PLACE: Relation = ("pg_temp", "hakiri_candidate")
STAGED = relation(*STAGED_PLACE)
_ADD_KEPT_ID = sql.SQL("ALTER TABLE {} ADD COLUMN {} bigint").format(STAGED, sql.Identifier(KEPT_ID_COLUMN))
_NUMBER_ROWS = sql.SQL("ALTER TABLE {} ADD COLUMN {} bigint GENERATED ALWAYS AS IDENTITY").format(
    STAGED, sql.Identifier(PLACE)
)


def stage_candidate(work: Work) -> int:
    target = work.load.target
    work.connection.execute(
        sql.SQL("CREATE TEMPORARY TABLE hakiri_candidate ON COMMIT DROP AS SELECT {} FROM {} WITH NO DATA").format(
            names(work.load.columns), relation(target.schema, target.name)
        )
    )
    if work.load.replay is not None:
        work.connection.execute(_ADD_KEPT_ID)
    if work.blocks.refused is not None:
        work.connection.execute(_NUMBER_ROWS)
    rows = work.blocks.copy_into(work.connection, STAGED, work.candidate_columns, freeze=True)
    work.ask_candidate(STAGED_PLACE)
    return rows


def key_of(table: Table) -> tuple[str, ...]:
    """As the target has it."""
    return tuple(map(stored_name, table.upsert_key or table.primary_key))


def same_key(key: Sequence[str], one: str, other: str) -> sql.Composed:
    return sql.SQL(" AND ").join(
        sql.SQL("{} = {}").format(sql.Identifier(one, column), sql.Identifier(other, column)) for column in key
    )


def loaded_columns(work: Work) -> tuple[str, ...]:
    return tuple(map(stored_name, work.load.columns))


def cursor_of(work: Work) -> str | None:
    """The table's cursor as the target has it, if it is loaded."""
    cursor = work.load.table.cursor
    return stored_name(cursor) if cursor is not None and cursor in work.load.columns else None


def in_order(work: Work, *name: str) -> sql.Composable:
    """A cursor as rows are ordered by it: NULL where it has no place in the order."""
    return placed(sql.Identifier(*name), cursor_type(work.load.target, name[-1]))


def keep_one_row_a_key(work: Work, key: Sequence[str]) -> None:
    """Of several the last one, or none of the slice, if the manifest says so."""
    if not _any_duplicate(work, key):
        return
    if work.load.table.load.on_duplicate_key == "reject":
        raise _rejection(work, key)
    keep_last(work, key)


def keep_last(work: Work, key: Sequence[str]) -> None:
    """The row with the highest cursor, and of several of these the one that was read last."""
    cursor = cursor_of(work)
    order = [] if cursor is None else [sql.SQL("{} DESC NULLS LAST").format(in_order(work, cursor))]
    work.connection.execute(
        sql.SQL(
            "DELETE FROM {staged} AS staged USING "
            "(SELECT ctid, row_number() OVER (PARTITION BY {key} ORDER BY {order}) AS place FROM {staged}) AS ranked "
            "WHERE ranked.place > 1 AND ranked.ctid = staged.ctid"
        ).format(staged=STAGED, key=names(list(key)), order=sql.SQL(", ").join([*order, sql.SQL("ctid DESC")]))
    )


def _any_duplicate(work: Work, key: Sequence[str]) -> bool:
    """Asked first, for a slice rarely has one, and ranking its rows costs as much as merging them."""
    statement = sql.SQL("SELECT EXISTS (SELECT FROM {} GROUP BY {} HAVING count(*) > 1)")
    row = work.connection.execute(statement.format(STAGED, names(list(key)))).fetchone()
    return row == (True,)


def _rejection(work: Work, key: Sequence[str]) -> DestinationError:
    found = duplicate_keys(work.connection, STAGED, key)
    return DestinationError(
        f"{found.keys} key(s) occur more than once among the rows of the slice, {found.rows} rows in all, and "
        f'load.on_duplicate_key = "reject"; ({", ".join(key)}): {found}. Nothing was changed.',
        where=work.load.table.label,
        hint='remove the duplicates at the source, or set on_duplicate_key = "last"',
    )
