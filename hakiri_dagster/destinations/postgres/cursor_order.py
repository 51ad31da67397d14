"""Cursors that have no place in the order of time or ids: NULL, and in numbers NaN and the infinities, too."""

from __future__ import annotations

from psycopg import sql

from hakiri_dagster.destinations.contract import Target
from hakiri_dagster.destinations.postgres.catalog import stored_name
from hakiri_dagster.destinations.postgres.conversion import kind_of
from hakiri_dagster.destinations.postgres.types import parse_type

_ALWAYS_PLACED = frozenset({"integer", "timestamptz", "timestamp", "date"})


def cursor_type(target: Target, cursor: str) -> str | None:
    return next((column.type for column in target.columns if column.name == stored_name(cursor)), None)


def unplaced(cursor: sql.Composable, column_type: str | None) -> sql.Composed:
    """By its text, because not every type knows these values, nor does every version of PostgreSQL."""
    if _is_always_placed(column_type):
        return sql.SQL("({} IS NULL)").format(cursor)
    return sql.SQL("({0} IS NULL OR {0}::text IN ('NaN', 'Infinity', '-Infinity'))").format(cursor)


def placed(cursor: sql.Composable, column_type: str | None) -> sql.Composable:
    """NULL instead of a value without a place: PostgreSQL puts NaN above all others."""
    if _is_always_placed(column_type):
        return cursor
    return sql.SQL("CASE WHEN NOT {} THEN {} END").format(unplaced(cursor, column_type), cursor)


def _is_always_placed(column_type: str | None) -> bool:
    kept = parse_type(column_type) if column_type else None
    return kept is not None and kind_of(kept) in _ALWAYS_PLACED
