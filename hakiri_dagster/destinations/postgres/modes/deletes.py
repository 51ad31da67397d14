"""How rows of the source say that their key is gone (`hard_delete`), and what becomes of the target's row then."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from psycopg import sql

from hakiri_dagster.destinations.contract import LOAD_ID_COLUMN, Target
from hakiri_dagster.destinations.postgres.catalog import Found, stored_name
from hakiri_dagster.destinations.postgres.connection import relation
from hakiri_dagster.destinations.postgres.conversion import kind_of
from hakiri_dagster.destinations.postgres.cursor_order import cursor_type
from hakiri_dagster.destinations.postgres.marks import AT, DELETED, marks_of
from hakiri_dagster.destinations.postgres.modes.candidate_rows import STAGED, same_key
from hakiri_dagster.destinations.postgres.modes.contract import Work
from hakiri_dagster.destinations.postgres.modes.read_again import is_read_again
from hakiri_dagster.destinations.postgres.types import parse_type
from hakiri_dagster.manifest.tables import Table

MOMENT = sql.SQL("now()")
"""When a row was found deleted: the time of the load, which is one transaction."""


def flag_of(table: Table) -> str | None:
    return None if table.load.hard_delete is None else stored_name(table.load.hard_delete)


def deletes_rows(table: Table) -> bool:
    return table.load.hard_delete is not None and table.load.soft_delete is None


def marker_of(table: Table) -> str | None:
    """The column that a load itself fills. One that is the source's own is loaded like the others."""
    declared = table.load.soft_delete
    return None if declared is None or declared == table.load.hard_delete else stored_name(declared)


def marker_columns(table: Table) -> Mapping[str, str]:
    marker = marker_of(table)
    return {} if marker is None else {marker: "timestamptz"}


def flagged(target: Target, table: Table, alias: str) -> sql.Composable:
    """The condition that a row of the candidate says that its key is gone."""
    flag = flag_of(table)
    if flag is None:
        return sql.SQL("false")
    is_boolean = column_kind(target, flag) == "boolean"
    return sql.SQL("({} {})").format(sql.Identifier(alias, flag), sql.SQL("IS TRUE" if is_boolean else "IS NOT NULL"))


def delete_flagged(
    work: Work, key: Sequence[str], conditions: Sequence[sql.Composable], staged: sql.Composable
) -> None:
    """By the rows of `staged`. `stored` is the target's row in the conditions, `staged` the candidate's."""
    target = work.load.target
    work.connection.execute(
        sql.SQL("DELETE FROM {} AS stored USING {} AS staged WHERE {}").format(
            relation(target.schema, target.name),
            staged,
            sql.SQL(" AND ").join(
                [same_key(key, "stored", "staged"), flagged(target, work.load.table, "staged"), *conditions]
            ),
        )
    )


def any_flagged(work: Work) -> bool:
    condition = flagged(work.load.target, work.load.table, "staged")
    row = work.connection.execute(
        sql.SQL("SELECT EXISTS (SELECT FROM {} AS staged WHERE {})").format(STAGED, condition)
    ).fetchone()
    return row == (True,)


def mark_flagged(work: Work, key: Sequence[str], at: sql.Composable, staged: sql.Composable) -> None:
    """Those of `staged`. `at` is the cursor of the candidate's row `staged`."""
    table = work.load.table
    work.connection.execute(
        sql.SQL(
            "INSERT INTO {marks} SELECT {key}, {at}, true FROM {staged} AS staged WHERE {flagged} AND {at} IS NOT NULL "
            "ON CONFLICT DO NOTHING"
        ).format(
            marks=marks_of(table),
            key=sql.SQL(", ").join(sql.Identifier("staged", column) for column in key),
            at=at,
            staged=staged,
            flagged=flagged(work.load.target, table, "staged"),
        )
    )


def not_deleted_after(work: Work, key: Sequence[str], at: sql.Composable) -> sql.Composable:
    """A row without a cursor is older than any other. A delete in a stretch that is read again may be taken back."""
    cursor = work.load.table.cursor
    mark_at = sql.SQL("mark.{}").format(AT)
    again = is_read_again(work, mark_at, None if cursor is None else cursor_type(work.load.target, cursor))
    return sql.SQL(
        "NOT EXISTS (SELECT FROM {marks} AS mark WHERE {same_key} AND mark.{deleted} "
        "AND ({at} IS NULL OR {mark_at} > {at}) AND NOT {again})"
    ).format(
        marks=marks_of(work.load.table),
        same_key=same_key(key, "mark", "staged"),
        deleted=DELETED,
        mark_at=mark_at,
        at=at,
        again=sql.SQL("false") if again is None else again,
    )


def delete_missing(work: Work, key: Sequence[str]) -> None:
    """What the candidate does not hold is deleted, or marked if it is not yet."""
    target, declared = work.load.target, work.load.table.load.soft_delete
    if declared is None:
        action = sql.SQL("DELETE FROM {} AS stored WHERE").format(relation(target.schema, target.name))
    else:
        action = sql.SQL(
            "UPDATE {target} AS stored SET {marker} = {moment}, {load} = {load_id} WHERE {marker} IS NULL AND"
        ).format(
            target=relation(target.schema, target.name),
            marker=sql.Identifier(stored_name(declared)),
            moment=MOMENT,
            load=sql.Identifier(LOAD_ID_COLUMN),
            load_id=work.load.fence.load_id,
        )
    is_missing = sql.SQL("NOT EXISTS (SELECT FROM {} AS staged WHERE {})").format(
        STAGED, same_key(key, "staged", "stored")
    )
    work.connection.execute(sql.SQL("{} {}").format(action, is_missing))


def delete_objections(table: Table, found: Found | None, columns: Sequence[str]) -> list[str]:
    """`columns` are the source's, as the target names them."""
    flag, marker, declared = flag_of(table), marker_of(table), table.load.soft_delete
    wrong = []
    if flag is not None and flag not in columns:
        wrong.append(f"hard_delete names {flag}, which the source does not have")
    if marker is not None and marker in columns:
        wrong.append(
            f"soft_delete names {marker}, which is a column of the source; name another, or the column of hard_delete"
        )
    if declared is not None and found is not None and _is_no_time(found.target, stored_name(declared)):
        wrong.append(f"soft_delete needs a time in the target, and {declared} is none; name another column")
    return wrong


def _is_no_time(target: Target, name: str) -> bool:
    present = any(column.name == name for column in target.columns)
    return present and column_kind(target, name) not in ("timestamptz", "timestamp")


def column_kind(target: Target, name: str) -> str:
    text = next((column.type for column in target.columns if column.name == name), "")
    kept = parse_type(text)
    return "other" if kept is None else kind_of(kept)
