"""Tables whose rows are the elements of a list within another table's records: what they have of that one."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from hakiri_dagster.errors import Problem
from hakiri_dagster.manifest.field_types import quoted
from hakiri_dagster.manifest.load_spec import WHOLE_TABLE_MODES, LoadSpec
from hakiri_dagster.manifest.overlay import overlay
from hakiri_dagster.manifest.parting import keys_in_force
from hakiri_dagster.manifest.places import Entry
from hakiri_dagster.manifest.source_config import as_config
from hakiri_dagster.manifest.spec import PipelineSpec, RestSource, TableSpec

_INHERITED: Final = ("params", "records", "pagination", "cursor_params", "partition_keys")
_WHOLE: Final = frozenset({"append", "truncate", "delete_missing", "blue_green"})
_WINDOWED: Final = frozenset({"append"})


@dataclass(frozen=True, slots=True)
class Child:
    """A table with `explode`, and the one that it names as its parent."""

    spec: PipelineSpec
    table: TableSpec
    parent: TableSpec

    @property
    def keys(self) -> Mapping[str, str]:
        """Columns, by the members of the parent that they hold."""
        said = self.table.parent_keys
        if isinstance(said, dict):
            return said
        return {f"{self.parent.name}_{member}": member for member in said or self.parent.primary_key or ()}

    @property
    def parent_cursor(self) -> str | None:
        said = self.spec.incremental if self.parent.incremental is None else self.parent.incremental
        return said or None

    @property
    def cursor(self) -> str | None:
        """The column that holds the parent's cursor, where windows of it are read."""
        return f"{self.parent.name}_{self.parent_cursor}" if self.table.incremental else None

    @property
    def kept(self) -> Mapping[str, str]:
        return {**self.keys, **({self.cursor: self.parent_cursor or ""} if self.cursor else {})}

    @property
    def mode(self) -> str:
        """Whole lists take the place of those that were there. What is read in windows is added, each in its place."""
        said = overlay(self.spec.load, self.table.load).mode
        return said or ("append" if self.cursor else "delete_missing")

    @property
    def needs_parents(self) -> bool:
        """Whether it would be emptied by an API that suddenly has no record at all, and nobody has allowed for that."""
        said = overlay(self.spec.load, self.table.load)
        return self.mode in WHOLE_TABLE_MODES and said.fail_on_empty_source

    @property
    def _defaults(self) -> LoadSpec:
        """That no record has an element is nothing out of the ordinary: see `needs_parents`."""
        return LoadSpec.model_validate({"mode": self.mode, "fail_on_empty_source": False})

    @property
    def _part(self) -> tuple[str, ...]:
        """The partition key that elements are told apart by, where the parent's keys leave it out: they may be those of
        the API within a part only."""
        of_source = self.spec.source.config.partition_keys if isinstance(self.spec.source, RestSource) else {}
        one = self._of_either
        keys = keys_in_force(one("partition_keys"), of_source, self._path, one("params"))
        return tuple(key for key in keys if key not in self.keys.values())

    @property
    def _path(self) -> str:
        return self.table.path or self.parent.path or self.parent.name

    def _of_either(self, name: str) -> Any:
        return getattr(self.table if name in self.table.model_fields_set else self.parent, name)

    def written_out(self) -> TableSpec:
        table, parent = self.table, self.parent
        known = {column: parent.columns[member] for column, member in self.kept.items() if member in parent.columns}
        update: dict[str, Any] = {name: self._of_either(name) for name in _INHERITED}
        update["path"] = self._path
        update["columns"] = {**known, **table.columns}
        update["primary_key"] = table.primary_key or (*self._part, *self.keys, table.position)
        update["incremental"] = self.cursor or False
        update["load"] = overlay(self._defaults, overlay(self.spec.load, table.load))
        if parent.backfill is not None:
            update["backfill"] = overlay(parent.backfill, table.backfill)
        return table.model_copy(update=update)

    def endpoint(self) -> dict[str, Any]:
        """What its connector is told besides: `flatten` and `epochs` of the endpoint are the parent's affair."""
        of_parent = as_config(self.parent, include={"flatten", "epochs"})
        explosion = as_config(self.table, include={"flatten", "epochs", "continued", "position"})
        explosion |= {"path": self.table.explode, "kept": dict(self.kept), "cursor": self.cursor}
        return of_parent | {"explosion": explosion | {"needs_parents": self.needs_parents}}


def children_of(spec: PipelineSpec, known: Mapping[str, TableSpec]) -> Mapping[int, Child]:
    """By their places. `known`: what a preset knows of parents that the pipeline does not load."""
    tables = {**known, **{table.name: table for table in spec.tables}}
    return {
        index: Child(spec, table, tables[table.parent])
        for index, table in enumerate(spec.tables)
        if table.explode is not None and table.parent in tables and tables[table.parent].explode is None
    }


def with_parents(spec: PipelineSpec, children: Mapping[int, Child]) -> PipelineSpec:
    if not children:
        return spec
    tables = tuple(
        children[index].written_out() if index in children else table for index, table in enumerate(spec.tables)
    )
    return spec.model_copy(update={"tables": tables})


def child_problems(entry: Entry, spec: PipelineSpec, children: Mapping[int, Child]) -> Iterator[Problem]:
    if not isinstance(spec.source, RestSource):
        return  # what only an API knows is told for others
    for index, table in enumerate(spec.tables):
        complaint = _of_child(children[index]) if index in children else _of_table(spec.tables, table)
        if complaint is not None:
            message, hint = complaint
            yield entry.problem(("tables", index), f"table {quoted(table.name)}: {message}", hint)


def _of_table(tables: Sequence[TableSpec], table: TableSpec) -> tuple[str, str] | None:
    if table.explode is None and table.parent is None:
        return None
    if table.explode is None or table.parent is None:
        return "`parent` and `explode` belong together", 'write like `parent = "issues"` and `explode = "labels"`'
    if table.parent in {one.name for one in tables}:
        return f"its parent {quoted(table.parent)} has a parent itself", "name the table whose records hold the list"
    return f"there is no table {quoted(table.parent)} to be its parent", "name a table of the same pipeline"


def _of_child(child: Child) -> tuple[str, str] | None:
    table, parent = child.table, child.parent
    if not child.keys:
        return (
            f"nothing tells the records of {quoted(parent.name)} apart",
            "give that a `primary_key`, or name members of its records under `parent_keys`",
        )
    if table.incremental and table.incremental != child.parent_cursor:
        told = f"the cursor of {quoted(parent.name)}, {quoted(child.parent_cursor)}" if child.parent_cursor else "none"
        return (
            f"its cursor is {quoted(table.incremental)}, and its windows can only be those of its parent",
            f"`incremental` can be {told}, or be left out: then the lists are loaded whole each time",
        )
    if child.mode not in (_WINDOWED if child.cursor else _WHOLE):
        return (
            f"load mode `{child.mode}` would leave elements there that their list has no more",
            "use append with `incremental`; or delete_missing, truncate or blue_green without it",
        )
    return None
