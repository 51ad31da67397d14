"""All that a table is and has besides its rows. Two tables of one name are alike if their portraits are."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import LiteralString

from psycopg import sql

from hakiri_dagster.destinations.postgres.connection import Connection
from hakiri_dagster.destinations.postgres.swap.belongings import BELONGINGS
from hakiri_dagster.destinations.postgres.swap.shape import SHAPE

Lines = tuple[str, ...]
Portrait = Mapping[str, Lines]


def names_in_full(connection: Connection) -> None:
    """For this transaction: PostgreSQL shortens what it finds on the search path."""
    connection.execute("SET LOCAL search_path = ''")


def portrait(connection: Connection, oid: int) -> Portrait:
    queries = {**SHAPE, **BELONGINGS}
    with connection.pipeline():
        asked = {name: connection.execute(about(query, oid)) for name, query in queries.items()}
    return {name: _lines(cursor.fetchall()) for name, cursor in asked.items()}


def lines(connection: Connection, query: LiteralString, oid: int) -> Lines:
    return _lines(connection.execute(about(query, oid)).fetchall())


def about(query: LiteralString, oid: int) -> sql.Composed:
    return sql.SQL(query).format(oid=sql.Literal(oid))


def differences(before: Portrait, after: Portrait) -> list[str]:
    """What is not as it was; an order of things is no difference."""
    return [
        f"{name}: {text}"
        for name in before
        for text in (
            *(f"lacks {line}" for line in before[name] if line not in after[name]),
            *(f"has {line}" for line in after[name] if line not in before[name]),
        )
    ]


def _lines(rows: Sequence[tuple[str, ...]]) -> Lines:
    return tuple(row[0] for row in rows)
