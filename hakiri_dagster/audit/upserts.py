"""INSERT … ON CONFLICT DO UPDATE, which SQLite and PostgreSQL spell alike and SQLAlchemy keeps apart."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from sqlalchemy import ColumnElement, Connection, Table
from sqlalchemy.dialects import postgresql, sqlite

Proposed = Mapping[str, ColumnElement[Any]]
"""The values that the insert proposed, by column."""


def upsert(
    connection: Connection,
    table: Table,
    rows: Sequence[Mapping[str, Any]],
    *,
    also: Callable[[Proposed], Mapping[str, ColumnElement[Any]]] | None = None,
    only_if: Callable[[Proposed], ColumnElement[bool]] | None = None,
) -> None:
    """All rows have the same columns. A row that exists takes the proposed ones over, if `only_if` holds."""
    if not rows:
        return
    dialect = postgresql if connection.dialect.name == "postgresql" else sqlite
    statement = dialect.insert(table)
    keys = [column.name for column in table.primary_key]
    proposed = statement.excluded
    changes: dict[str, ColumnElement[Any]] = {name: proposed[name] for name in rows[0] if name not in keys}
    changes.update(also(proposed) if also else {})
    connection.execute(
        statement.on_conflict_do_update(
            index_elements=keys, set_=changes, where=only_if(proposed) if only_if else None
        ),
        list(rows),
    )


def insert_new(connection: Connection, table: Table, rows: Sequence[Mapping[str, Any]]) -> None:
    """A row that exists stays as it is."""
    if rows:
        dialect = postgresql if connection.dialect.name == "postgresql" else sqlite
        connection.execute(dialect.insert(table).on_conflict_do_nothing(), list(rows))
