"""What a target lacks, as statements: `plan` shows the list that `ensure_target` executes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from psycopg import errors, sql

from hakiri_dagster.destinations.contract import (
    INGESTED_AT_COLUMN,
    LOAD_ID_COLUMN,
    ROW_HASH_COLUMN,
    SOURCE_FILE_HASH_COLUMN,
)
from hakiri_dagster.destinations.postgres.catalog import Found, existing_types, schema_exists, stored_name
from hakiri_dagster.destinations.postgres.connection import Connection, names, relation
from hakiri_dagster.destinations.postgres.duplicate_keys import duplicate_keys, not_unique
from hakiri_dagster.destinations.postgres.modes.registry import mode_of
from hakiri_dagster.destinations.postgres.renaming import Renames, renames_of
from hakiri_dagster.destinations.postgres.target_objections import name_objections, objections
from hakiri_dagster.destinations.postgres.types import parse_type, type_in_ddl, wanted_type
from hakiri_dagster.destinations.postgres.widening import retyping, wider_columns
from hakiri_dagster.errors import DestinationError
from hakiri_dagster.manifest.tables import Table
from hakiri_dagster.planning.columns import SourceSchema
from hakiri_dagster.planning.evolution import Widening, permission


@dataclass(frozen=True, slots=True)
class Change:
    """One thing to do: by a statement, or by the load itself (`later`: a column and its type). With neither it is a
    refusal, which may be permitted if it is of a `column`."""

    description: str
    statement: sql.Composed | None = None
    later: tuple[str, str] | None = None
    column: str | None = None
    unique: tuple[str, ...] = ()
    """The columns of a unique index, which rows that are there already may not allow."""
    exclusive: bool = False
    """Nobody reads the table meanwhile."""

    @property
    def refused(self) -> bool:
        return self.statement is None and self.later is None


@dataclass(frozen=True, slots=True)
class NewColumn:
    name: str
    type: str


@dataclass(frozen=True, slots=True)
class TargetPlanner:
    """Made from what the source says and what the destination holds; asks the catalog, changes nothing."""

    connection: Connection
    table: Table
    schema: SourceSchema
    with_file_hash: bool
    widened: tuple[Widening, ...] = ()

    def changes(self, found: Found | None) -> list[Change]:
        wrong = name_objections(self.schema)
        if wrong:
            return [_refusal(text) for text in wrong]
        renames = Renames() if found is None else renames_of(self.table, self.schema, found.target)
        if renames.objections:
            return [_refusal(text) for text in renames.objections]
        found = found and renames.seen_through(found)
        own = [*self._provenance_columns(), *self._mode_columns()]
        wrong = objections(self.connection, self.table, self.schema, found, {column.name for column in own})
        changes = [*map(_refusal, wrong), *self.schemas()]
        wanted = [*self.source_columns(), *own]
        if found is None:
            return [*changes, self._create_table(wanted), *self._indexes(None)]
        present = {column.name for column in found.target.columns}
        added = [self._add_column(column) for column in wanted if column.name not in present]
        renamed = [
            Change(text, statement, exclusive=True)
            for text, statement in renames.statements(self.connection, self.table)
        ]
        return [*changes, *renamed, *added, *self._wider(found), *self._indexes(found)]

    @property
    def _relation(self) -> sql.Identifier:
        return relation(self.table.target_schema, self.table.target_name)

    @property
    def _label(self) -> str:
        return f"{self.table.target_schema}.{self.table.target_name}"

    def schemas(self) -> list[Change]:
        wanted = [self.table.target_schema]
        if self.table.validation.quarantine.enabled:
            wanted.append(self.table.quarantine_table[0])
        return [
            Change(f"create schema {schema}", sql.SQL("CREATE SCHEMA {}").format(sql.Identifier(schema)))
            for schema in dict.fromkeys(wanted)
            if schema != "hakiri" and not schema_exists(self.connection, schema)
        ]

    def source_columns(self) -> list[NewColumn]:
        """As a target gets them that has none of them yet."""
        declared = self.table.columns
        wanted = {c.name: wanted_type(c, declared.get(c.name)) for c in self.schema.columns}
        plain = {name: parse_type(text) for name, text in wanted.items()}
        known = existing_types(self.connection, [wanted[name] for name, kind in plain.items() if kind is not None])
        columns = []
        for name, text in wanted.items():
            if plain[name] is not None and text in known:
                columns.append(NewColumn(stored_name(name), text))
            elif name in declared:
                raise DestinationError(
                    f"`columns` gives {name} the type {text}, which the destination does not know",
                    where=self.table.label,
                    hint="name a type as PostgreSQL does, like numeric(15,2), or create it there first",
                )
            else:
                # an enum, domain or extension type of the source's; its values travel as text
                columns.append(NewColumn(stored_name(name), "text"))
        return columns

    def _provenance_columns(self) -> list[NewColumn]:
        columns = [NewColumn(LOAD_ID_COLUMN, "bigint")]
        if self.with_file_hash:
            columns.append(NewColumn(SOURCE_FILE_HASH_COLUMN, "bytea"))
        if self.table.load.provenance == "full":
            columns.append(NewColumn(INGESTED_AT_COLUMN, "timestamptz"))
            columns.append(NewColumn(ROW_HASH_COLUMN, "bigint"))
        return columns

    def _mode_columns(self) -> list[NewColumn]:
        return [NewColumn(name, kind) for name, kind in mode_of(self.table).added_columns(self.table).items()]

    def _create_table(self, columns: Sequence[NewColumn]) -> Change:
        """NOT NULL on the key only: a source that relaxes a column must not break the load."""
        definitions = [_definition(column) for column in columns]
        key = self._primary_key
        if key:
            definitions.append(sql.SQL("PRIMARY KEY ({})").format(names(key)))
        statement = sql.SQL("CREATE TABLE {} ({})").format(self._relation, sql.SQL(", ").join(definitions))
        shown = ", ".join(f"{column.name} {column.type}" for column in columns)
        suffix = f", primary key ({', '.join(key)})" if key else ""
        return Change(f"create table {self._label} ({shown}{suffix})", statement)

    @property
    def _primary_key(self) -> tuple[str, ...]:
        return mode_of(self.table).primary_key(self.table, self.schema.primary_key)

    def _add_column(self, column: NewColumn) -> Change:
        statement = sql.SQL("ALTER TABLE {} ADD COLUMN {}").format(self._relation, _definition(column))
        return Change(f"add column {column.name} {column.type} to {self._label}", statement, exclusive=True)

    def _wider(self, found: Found) -> Iterator[Change]:
        emptied = mode_of(self.table).retypes_when_empty(found)
        for wider in wider_columns(self.connection, found, self.widened, self._label, emptied=emptied):
            retyped = (wider.name, str(wider.type))
            if wider.refusal is not None:
                permit = permission(self.table, wider.column)
                yield Change(f"{wider.refusal} {permit}", column=wider.column)
            elif emptied:
                yield Change(f"{wider.description}, when the load has emptied it", later=retyped)
            else:
                yield Change(wider.description, retyping(self._relation, [retyped]), exclusive=True)

    def _indexes(self, found: Found | None) -> list[Change]:
        changes = []
        if found is None or not found.has_load_id_index:
            statement = sql.SQL("CREATE INDEX ON {} USING brin ({}) WITH (autosummarize = on)").format(
                self._relation, sql.Identifier(LOAD_ID_COLUMN)
            )
            changes.append(Change(f"create index on {self._label} ({LOAD_ID_COLUMN})", statement))
        key = mode_of(self.table).unique(self.table)
        held_apart = set(key) == set(self._primary_key) if found is None else found.holds_apart(key)
        if key and not held_apart:
            changes += self._duplicates(found, key)
            statement = sql.SQL("CREATE UNIQUE INDEX ON {} ({})").format(self._relation, names(key))
            changes.append(Change(f"create unique index on {self._label} ({', '.join(key)})", statement, unique=key))
        return changes

    def _duplicates(self, found: Found | None, key: tuple[str, ...]) -> list[Change]:
        """Told before the load, and again by the index itself, should some come meanwhile."""
        if found is None or not set(key) <= {column.name for column in found.target.columns}:
            return []
        try:
            with self.connection.transaction():
                twice = duplicate_keys(self.connection, self._relation, key)
        except errors.UndefinedFunction:  # of a type that cannot be compared, of which the index will say so
            return []
        if not twice.keys:
            return []
        return [_refusal(f"{not_unique(twice, key)}; remove the duplicates there, or choose another upsert_key")]


def _refusal(text: str) -> Change:
    return Change(text)


def _definition(column: NewColumn) -> sql.Composed:
    return sql.SQL("{} {}").format(sql.Identifier(column.name), type_in_ddl(column.type))
