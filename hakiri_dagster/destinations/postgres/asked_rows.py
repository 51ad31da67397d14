"""Rows that validators ask about, wherever they stand."""

from __future__ import annotations

from dataclasses import dataclass

from psycopg import sql

from hakiri_dagster.destinations.contract import LOAD_ID_COLUMN, Target
from hakiri_dagster.destinations.hooks_contract import Relation
from hakiri_dagster.destinations.postgres.connection import relation
from hakiri_dagster.destinations.postgres.types import PgType, parse_type


@dataclass(frozen=True, slots=True)
class AskedRows:
    """Rows of a relation; with a `load_id` those of one load only. `target` says what its columns are."""

    place: Relation
    target: Target
    added: frozenset[str] = frozenset()
    """Columns that no row of the source has."""

    load_id: int | None = None

    @property
    def own(self) -> Relation:
        """The target."""
        return self.target.schema, self.target.name

    @property
    def relation(self) -> sql.Identifier:
        return relation(*self.place)

    def where(self, *conditions: sql.Composable) -> sql.Composed:
        of_load = sql.SQL("{} = {}").format(sql.Identifier(LOAD_ID_COLUMN), sql.Literal(self.load_id))
        every = [*([] if self.load_id is None else [of_load]), *conditions]
        return sql.SQL(" WHERE {}").format(sql.SQL(" AND ").join(every)) if every else sql.Composed([])

    @property
    def types(self) -> dict[str, PgType]:
        """As they are, or as this load makes them."""
        spelled = {column.name: column.type for column in self.target.columns} | dict(self.target.retyped)
        return {name: parse_type(text) or PgType(text) for name, text in spelled.items()}
