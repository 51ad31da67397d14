"""Keys that more than one row has, for messages: how many there are, and a few of them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from psycopg import sql

from hakiri_dagster.destinations.postgres.connection import Connection, names
from hakiri_dagster.quality.measures import FEW, SHOWN_CHARACTERS


@dataclass(frozen=True, slots=True)
class DuplicateKeys:
    keys: int
    rows: int
    few: tuple[str, ...]

    def __str__(self) -> str:
        return "; ".join([*self.few, *(["…"] if self.keys > len(self.few) else [])])


def _where(*conditions: sql.Composable) -> sql.Composed:
    return sql.SQL(" WHERE {}").format(sql.SQL(" AND ").join(conditions))


def duplicate_keys(
    connection: Connection,
    relation: sql.Identifier,
    key: Sequence[str],
    where: Callable[[sql.Composable], sql.Composed] = _where,
) -> DuplicateKeys:
    """Keys with a NULL are never the same, as in a unique index. `where` may add to the condition."""
    columns = names(list(key))
    shown = sql.SQL(", ").join(sql.SQL("left({}::text, {})").format(sql.Identifier(c), SHOWN_CHARACTERS) for c in key)
    complete = sql.SQL("pg_catalog.num_nulls({}) = 0").format(columns)
    found = connection.execute(
        sql.SQL(
            "SELECT ARRAY[{shown}], count(*), count(*) OVER (), sum(count(*)) OVER () FROM {relation}{where} "
            "GROUP BY {columns} HAVING count(*) > 1 ORDER BY {columns} LIMIT {most}"
        ).format(shown=shown, relation=relation, where=where(complete), columns=columns, most=FEW)
    ).fetchall()
    keys, rows = found[0][2:] if found else (0, 0)
    return DuplicateKeys(
        keys, int(rows), tuple(f"({', '.join(values)}) {times} times" for values, times, _, _ in found)
    )


def not_unique(found: DuplicateKeys, key: Sequence[str]) -> str:
    return (
        f"{found.keys} key(s) occur more than once in the target, so it cannot have a unique index on "
        f"({', '.join(key)}): {found}"
    )
