"""Columns that the source has renamed, and the manifest says so: the target's are to follow, once."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from psycopg import sql

from hakiri_dagster.destinations.contract import Target
from hakiri_dagster.destinations.postgres import marks
from hakiri_dagster.destinations.postgres.catalog import Found, stored_name
from hakiri_dagster.destinations.postgres.connection import Connection, relation
from hakiri_dagster.manifest.tables import Table
from hakiri_dagster.planning.columns import SourceSchema


@dataclass(frozen=True, slots=True)
class Renames:
    """`new_names` by the names that the target has now; `objections`: why none of it can be done."""

    new_names: Mapping[str, str] = field(default_factory=dict)
    objections: tuple[str, ...] = ()

    def seen_through(self, found: Found) -> Found:
        """The target as it will be."""
        if not self.new_names:
            return found
        new = {column.name: self.new_names.get(column.name, column.name) for column in found.target.columns}
        target = replace(
            found.target,
            columns=tuple(replace(column, name=new[column.name]) for column in found.target.columns),
            primary_key=tuple(new[name] for name in found.target.primary_key),
            unique_keys=tuple(tuple(new[name] for name in key) for key in found.target.unique_keys),
        )
        return replace(
            found,
            target=target,
            unique_indexes=tuple(index.with_names(new) for index in found.unique_indexes),
            names_now={new: old for old, new in self.new_names.items()},
        )

    def statements(self, connection: Connection, table: Table) -> list[tuple[str, sql.Composed]]:
        """With a description each. What is remembered of deleted keys bears the names of the key's columns."""
        place, shown = relation(table.target_schema, table.target_name), f"{table.target_schema}.{table.target_name}"
        noted = set(marks.columns(connection, table))
        made = []
        for old, new in self.new_names.items():
            made.append((f"rename column {old} of {shown} to {new}", _rename(place, old, new)))
            if old in noted:
                made.append((f"rename column {old} of its marks to {new}", _rename(marks.marks_of(table), old, new)))
        return made


def renames_of(table: Table, schema: SourceSchema, target: Target) -> Renames:
    """Done once the source has the new name and no longer the old one; then the target has the new one, too."""
    present = {column.name for column in target.columns}
    found: dict[str, str] = {}
    wrong: list[str] = []
    for new, old in table.renamed.items():
        kept_new, kept_old = stored_name(new), stored_name(old)
        if schema.column(new) is None:
            continue
        if schema.column(old) is not None:
            wrong.append(f"`renamed` says that {old} is called {new} now, and the source has both; take it out there")
        elif kept_old in present and kept_new in present:
            wrong.append(
                f"`renamed` says that {old} is called {new} now, and the target has both: move what {old} holds to "
                f"{new} and drop {old}, or take it out of `renamed`"
            )
        elif kept_old in present:
            found[kept_old] = kept_new
    return Renames({} if wrong else found, tuple(wrong))


def _rename(place: sql.Composable, old: str, new: str) -> sql.Composed:
    statement = sql.SQL("ALTER TABLE {} RENAME COLUMN {} TO {}")
    return statement.format(place, sql.Identifier(old), sql.Identifier(new))
