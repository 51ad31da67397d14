"""Rows that a target held before our first load: what they say of the watermark, and which of ours they are already."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from psycopg import sql

from hakiri_dagster.destinations.contract import LOAD_ID_COLUMN, Load
from hakiri_dagster.destinations.postgres import watermarks
from hakiri_dagster.destinations.postgres.catalog import stored_name, target_of
from hakiri_dagster.destinations.postgres.connection import Connection, names, relation
from hakiri_dagster.destinations.postgres.conversion import kind_of
from hakiri_dagster.destinations.postgres.cursor_bounds import cursor_column, position_in, within_bounds
from hakiri_dagster.destinations.postgres.cursor_order import cursor_type, unplaced
from hakiri_dagster.destinations.postgres.types import parse_type
from hakiri_dagster.manifest.tables import Table
from hakiri_dagster.planning.chunks import Bounds, CursorRange
from hakiri_dagster.planning.columns import is_ours

_EXTREMES = sql.SQL(
    "SELECT past.value::text, {past}, {top}"
    " FROM (SELECT max({cursor}) AS value FROM {target} WHERE {placed} AND {not_after_now}) AS past,"
    " (SELECT max({cursor}) AS value FROM {target} WHERE {placed}) AS top"
)

_ROWS_OF_OTHERS = sql.SQL(
    "NOT EXISTS (SELECT FROM hakiri.ledger WHERE load_id = stored.{load_id}"
    " AND pipeline_id = {pipeline} AND table_name = {table} AND target = {target})"
)

# Rows are compared by their text, which any type has and which can be hashed; equal ones one by one.
_MISSING = sql.SQL(
    "SELECT {columns} FROM"
    " (SELECT *, ROW({same})::text AS _hakiri_same,"
    " row_number() OVER (PARTITION BY ROW({same})::text) AS _hakiri_nth FROM {candidate}) AS new"
    " LEFT JOIN (SELECT ROW({same})::text AS _hakiri_same, count(*) AS _hakiri_there FROM {target} AS stored"
    " WHERE {bounds} AND {of_others} GROUP BY 1) AS there USING (_hakiri_same)"
    " WHERE (_hakiri_there IS NULL OR _hakiri_nth > _hakiri_there) AND {above}"
)


def inherited(connection: Connection, table: Table, kept_type: str) -> watermarks.Inherited | None:
    """None if no row is there, or rows of ours are: then the ledger says what is published."""
    target = relation(table.target_schema, table.target_name)
    if connection.execute(sql.SQL("SELECT EXISTS (SELECT FROM {})").format(target)).fetchone() == (False,):
        return None
    if watermarks.has_loads(connection, table):
        return None
    cursor = sql.Identifier(stored_name(table.cursor or ""))
    kind = _kind(kept_type)
    row = connection.execute(
        _EXTREMES.format(
            past=_position(kind, "past"),
            top=_position(kind, "top"),
            cursor=cursor,
            target=target,
            placed=sql.SQL("NOT {}").format(unplaced(cursor, kept_type)) if kind == "number" else _finite(cursor),
            not_after_now=sql.SQL("true") if kind == "number" else _not_after_now(cursor, kept_type),
        )
    ).fetchone()
    assert row is not None  # two aggregates
    return watermarks.Inherited(*row)


def may_hold(before: watermarks.Inherited, bounds: Bounds) -> bool:
    """Whether rows of a slice can be among those that were there."""
    if not isinstance(bounds, CursorRange):
        return True
    lower = bounds.interval.lower
    return before.top is not None and (lower is None or lower <= before.top)


def missing_rows(
    columns: Sequence[str], load: Load, candidate: sql.Identifier, before: watermarks.Inherited
) -> sql.Composed:
    """`columns` of those rows of the candidate that are not in the target as rows of others. Without a lag, what is not
    above the mark that was inherited is taken for loaded, whatever it holds."""
    table, target = load.table, load.target
    return _MISSING.format(
        target=relation(target.schema, target.name),
        columns=names(list(columns)),
        same=names(_telling_apart(load)),
        candidate=candidate,
        bounds=within_bounds(load),
        of_others=_ROWS_OF_OTHERS.format(
            load_id=sql.Identifier(LOAD_ID_COLUMN),
            pipeline=sql.Literal(table.pipeline_id),
            table=sql.Literal(table.name),
            target=sql.Literal(target_of(table)),
        ),
        above=_above(load, before) if table.load.lag is None else sql.SQL("true"),
    )


def _telling_apart(load: Load) -> tuple[str, ...]:
    key = tuple(stored_name(column) for column in load.table.primary_key)
    return key or tuple(column for column in load.columns if not is_ours(column))


def _above(load: Load, before: watermarks.Inherited) -> sql.Composable:
    if before.position is None or before.value is None:
        return sql.SQL("true")
    cursor, kept = cursor_column(load), cursor_type(load.target, load.table.cursor or "") or ""
    number = _kind(kept) == "number"
    mark = sql.SQL("{}::numeric").format(sql.Literal(before.value)) if number else position_in(load, before.position)
    return sql.SQL("({} OR {} > {})").format(unplaced(cursor, kept), cursor, mark)


def _kind(kept_type: str) -> Literal["number", "time"]:
    kept = parse_type(kept_type)
    return "number" if kept is not None and kind_of(kept) in ("integer", "numeric", "float") else "time"


def _position(kind: Literal["number", "time"], of: str) -> sql.Composed:
    value = sql.Identifier(of, "value")
    if kind == "number":
        return sql.SQL("floor({}::numeric)::bigint").format(value)
    return sql.SQL("(extract(epoch FROM {}) * 1000000)::bigint").format(value)


def _finite(cursor: sql.Identifier) -> sql.Composed:
    return sql.SQL("{0} > '-infinity' AND {0} < 'infinity'").format(cursor)


def _not_after_now(cursor: sql.Identifier, kept_type: str) -> sql.Composed:
    now = "now()" if kept_type.startswith("timestamp") and "with time zone" in kept_type else "now() AT TIME ZONE 'UTC'"
    return sql.SQL("{} <= {}").format(cursor, sql.SQL(now))
