"""All that tables are and have besides their rows. Tables of the same names are alike if their portraits are."""

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


def portrait(connection: Connection, oids: Sequence[int]) -> Portrait:
    """Of all of them at once: a table may have hundreds of partitions, and somebody waits meanwhile."""
    queries = {**SHAPE, **BELONGINGS}
    with connection.pipeline():
        asked = {name: connection.execute(about(query, *oids)) for name, query in queries.items()}
    return {name: _lines(cursor.fetchall()) for name, cursor in asked.items()}


def lines(connection: Connection, query: LiteralString, *oids: int) -> Lines:
    return _lines(connection.execute(about(query, *oids)).fetchall())


def about(query: LiteralString, *oids: int) -> sql.Composed:
    """`{oids}` are all that it is about, `{oid}` the first of them."""
    return sql.SQL(query).format(oids=members(oids), oid=sql.Literal(oids[0]))


def members(oids: Sequence[int]) -> sql.Composed:
    return sql.SQL("{}::oid[]").format(sql.Literal(f"{{{','.join(map(str, oids))}}}"))


def differences(before: Portrait, after: Portrait) -> list[str]:
    """What is not as it was; an order of things is no difference."""
    return [
        f"{name}: {text}"
        for name in before
        for text in (
            *(f"lacks {line}" for line in _without(before[name], after[name])),
            *(f"has {line}" for line in _without(after[name], before[name])),
        )
    ]


def not_kept(at_first: Portrait, before: Portrait, after: Portrait) -> list[str]:
    """What was there all the time, and is not there afterwards."""
    return [
        f"{name}: lacks {line}"
        for name in before
        for line in _without(before[name], after[name])
        if line in at_first[name]
    ]


def _without(these: Lines, those: Lines) -> list[str]:
    there = frozenset(those)
    return [line for line in these if line not in there]


def _lines(rows: Sequence[tuple[str, ...]]) -> Lines:
    return tuple(row[0] for row in rows)
