"""Cursors that have no place in the order of time or ids: NULL, and in numbers NaN and the infinities."""

from __future__ import annotations

from psycopg import sql


def unplaced(cursor: sql.Composable) -> sql.Composed:
    """By its text, because not every type knows these values, nor does every version of PostgreSQL."""
    return sql.SQL("({0} IS NULL OR {0}::text IN ('NaN', 'Infinity', '-Infinity'))").format(cursor)
