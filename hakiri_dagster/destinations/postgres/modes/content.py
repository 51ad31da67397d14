"""What of a row counts when it is asked whether the row has changed, and how two rows are compared by it.

Not every type has an equality, and not every equality tells all values apart: to `interval` one day is 24 hours, to a
case-insensitive text `Bob` is `bob`, to `numeric` 1.0 is 1.00. Values of such types are compared as they are stored.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from psycopg import sql

from hakiri_dagster.destinations.postgres.catalog import BaseType

Values = Callable[[str], sql.Composable]
"""Where a row has the value of a column."""


@dataclass(frozen=True, slots=True)
class Content:
    by_equality: tuple[str, ...]
    as_stored: tuple[str, ...]

    def differs(self, one: Values, other: Values) -> sql.Composable:
        conditions = [
            sql.SQL("{} IS DISTINCT FROM {}").format(one(column), other(column)) for column in self.by_equality
        ]
        if self.as_stored:
            # NULLs are the same to it; without the casts, columns would be compared one by one
            conditions.append(
                sql.SQL("ROW({})::record OPERATOR(pg_catalog.*<>) ROW({})::record").format(
                    _listed(map(one, self.as_stored)), _listed(map(other, self.as_stored))
                )
            )
        return sql.SQL("({})").format(sql.SQL(" OR ").join(conditions)) if conditions else sql.SQL("false")


def content_of(columns: Iterable[str], types: Mapping[str, BaseType]) -> Content:
    every = tuple(columns)
    return Content(
        by_equality=tuple(column for column in every if types[column].exact),
        as_stored=tuple(column for column in every if not types[column].exact),
    )


def values_of(alias: str) -> Values:
    return lambda column: sql.Identifier(alias, column)


def _listed(values: Iterable[sql.Composable]) -> sql.Composed:
    return sql.SQL(", ").join(values)
