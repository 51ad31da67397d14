"""`validate.profile`: what the columns of a load's rows hold, asked in passing while they are staged."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from hakiri_dagster.destinations.contract import Target
from hakiri_dagster.manifest.tables import Table
from hakiri_dagster.planning.columns import SourceSchema
from hakiri_dagster.quality.measures import Tallied
from hakiri_dagster.quality.profile import ProfiledColumn, TableProfile, measures_of, profile_of
from hakiri_dagster.quality.tallies import Tally, answers_of

MOST_PROFILED = 200
"""Columns: each of Spark's tasks tallies all of them, for every slice that it meets."""


@dataclass(frozen=True, slots=True)
class LoadProfiling:
    """The columns of a table that are profiled; none unless its manifest asks for it."""

    columns: tuple[ProfiledColumn, ...] = ()
    left_out: tuple[str, ...] = ()

    @classmethod
    def wanted(cls, table: Table, target: Target, loaded: SourceSchema, read: SourceSchema) -> LoadProfiling:
        """Under the types that they have in the target."""
        if not table.validation.profile:
            return cls()
        types = {column.name: column.type for column in target.columns}
        both = [column for column in loaded.columns if read.column(column.name) is not None]
        profiled = [ProfiledColumn.of(column, types.get(column.name)) for column in both[:MOST_PROFILED]]
        return cls(tuple(profiled), tuple(column.name for column in both[MOST_PROFILED:]))

    def measures(self, asked: Sequence[Tallied], *, slices: int) -> tuple[Tallied, ...]:
        """With those that validators ask for: each once."""
        return measures_of(self.columns, slices=slices, asked=asked)

    def profile(self, rows: int, tallies: Sequence[Tally]) -> TableProfile | None:
        if not self.columns:
            return None
        return profile_of(self.columns, rows, answers_of(self.measures((), slices=1), tallies), self.left_out)
