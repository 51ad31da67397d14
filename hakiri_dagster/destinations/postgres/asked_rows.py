"""Rows that validators ask about, wherever they stand."""

from __future__ import annotations

from dataclasses import dataclass

from psycopg import sql

from hakiri_dagster.destinations.contract import LOAD_ID_COLUMN, Load, Target
from hakiri_dagster.destinations.hooks_contract import Relation
from hakiri_dagster.destinations.postgres.catalog import stored_name
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

    @classmethod
    def of_candidate(cls, load: Load, place: Relation, load_id: int | None = None) -> AskedRows:
        loaded = set(map(stored_name, load.columns))
        others = frozenset(column.name for column in load.target.columns if column.name not in loaded)
        return cls(place, load.target, others, load_id)

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
