"""What versions of rows look like in the target and in the statements that make them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import LiteralString

from psycopg import sql

from hakiri_dagster.destinations.postgres import marks
from hakiri_dagster.destinations.postgres.connection import names, relation
from hakiri_dagster.destinations.postgres.modes.candidate_rows import same_key
from hakiri_dagster.destinations.postgres.modes.content import Content, values_of
from hakiri_dagster.destinations.postgres.modes.contract import Work

VALID_FROM, VALID_TO, IS_CURRENT = "valid_from", "valid_to", "is_current"

# Columns and tables of the work in between. Sources have no columns with this beginning.
_OWN_NAMES: Mapping[str, sql.Composable] = {
    "valid_from": sql.Identifier(VALID_FROM),
    "valid_to": sql.Identifier(VALID_TO),
    "is_current": sql.Identifier(IS_CURRENT),
    "at": marks.AT,
    "deleted": marks.DELETED,
    **{
        name: sql.Identifier(f"_hakiri_{name}")
        for name in (
            "known_by", "until", "had_row", "had_until", "had_mark", "matters", "next", "is_row", "is_mark",
            "is_new",
        )
    },
    **{name: sql.Identifier("pg_temp", f"hakiri_{name}") for name in ("fresh", "keys", "events", "changes")},
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Versions:
    """Of one target, for one load. `columns` are those that it writes, `content` is that whose change makes a version,
    `cursor` the column that says from when a version is valid."""

    work: Work
    key: tuple[str, ...]
    columns: tuple[str, ...]
    content: Content
    cursor: str | None

    @property
    def others(self) -> tuple[str, ...]:
        return tuple(column for column in self.columns if column not in self.key)

    def run(self, statement: LiteralString, **parts: sql.Composable) -> None:
        self.work.connection.execute(self.composed(statement, **parts))

    def any(self, statement: LiteralString, **parts: sql.Composable) -> bool:
        exists = sql.SQL("SELECT EXISTS ({})").format(self.composed(statement, **parts))
        return self.work.connection.execute(exists).fetchone() == (True,)

    def composed(self, statement: LiteralString, **parts: sql.Composable) -> sql.Composed:
        target = self.work.load.target
        known: dict[str, sql.Composable] = {
            **_OWN_NAMES,
            "target": relation(target.schema, target.name),
            "marks": marks.marks_of(self.work.load.table),
            "key": names(self.key),
            "all": names((*self.key, *self.others)),
        }
        return sql.SQL(statement).format(**(known | parts))

    def listed(self, alias: str, columns: Sequence[str] | None = None) -> sql.Composed:
        chosen = (*self.key, *self.others) if columns is None else columns
        return sql.SQL(", ").join(sql.Identifier(alias, column) for column in chosen)

    def same_key(self, one: str, other: str) -> sql.Composed:
        return same_key(self.key, one, other)

    def differs(self, one: str, other: str) -> sql.Composable:
        """The content of two rows."""
        return self.content.differs(values_of(one), values_of(other))

    def differs_from_last(self, window: str) -> sql.Composable:
        """From the content of the row before it in a window."""

        def last(column: str) -> sql.Composed:
            return sql.SQL("pg_catalog.lag({}) OVER {}").format(sql.Identifier(column), sql.Identifier(window))

        return self.content.differs(sql.Identifier, last)
