"""What has changed at a source since its columns were last accepted, as values."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final, Literal

from hakiri_dagster.planning.columns import Column, SourceSchema
from hakiri_dagster.planning.source_types import SourceType, holds, postgres_type, type_of

ChangeKind = Literal["added", "dropped", "widened", "narrowed", "changed", "renamed", "key_changed"]

TEXT: Final = SourceType("text")


@dataclass(frozen=True, slots=True)
class KnownColumn:
    """`type` as PostgreSQL spells it; `since` the version of the schema that said so. A dropped column is remembered,
    so that one that comes back as something else is no new one."""

    name: str
    type: str
    since: int = 0
    dropped: bool = False


@dataclass(frozen=True, slots=True)
class KnownSchema:
    """The source's columns as they were last accepted. `key`: the columns that told rows apart."""

    columns: tuple[KnownColumn, ...]
    key: tuple[str, ...] = ()
    version: int = 1

    def column(self, name: str) -> KnownColumn | None:
        return next((column for column in self.columns if column.name == name), None)


@dataclass(frozen=True, slots=True)
class Change:
    """`before` and `after` are types; names for `renamed`, lists of columns for `key_changed`, whose `column` is empty.

    `declared`: the manifest itself says so, not the source. `since` is of what was there before.
    """

    kind: ChangeKind
    column: str
    before: str | None
    after: str | None
    since: int = 0
    declared: bool = False

    @property
    def identity(self) -> str:
        """The same for the same change of the same thing, and no other."""
        return json.dumps([self.kind, self.column, self.before, self.after, self.since], ensure_ascii=False)


@dataclass(frozen=True, slots=True)
class Reading:
    """What is said of a table's columns now, by its source and by the manifest.

    `declared` and `renamed` (new name → old one) are the manifest's. `inferred`: the types were read off texts.
    `absent`: columns that are remembered, and that the source no longer has.
    """

    schema: SourceSchema
    key: tuple[str, ...] = ()
    declared: Mapping[str, str] = field(default_factory=dict)
    renamed: Mapping[str, str] = field(default_factory=dict)
    inferred: bool = False
    absent: tuple[str, ...] = ()

    @property
    def present(self) -> SourceSchema:
        return replace(self.schema, columns=tuple(c for c in self.schema.columns if c.name not in self.absent))

    def type_of(self, column: Column) -> SourceType:
        declared = self.declared.get(column.name)
        return type_of(column) if declared is None else postgres_type(declared)


def first_known(reading: Reading, version: int = 1) -> KnownSchema:
    columns = reading.present.columns
    return KnownSchema(
        tuple(KnownColumn(column.name, str(reading.type_of(column)), version) for column in columns),
        reading.key,
        version,
    )


def changes_between(known: KnownSchema, reading: Reading) -> tuple[Change, ...]:
    renames = _renames(known, reading)
    before = {column.name: column for column in known.columns}
    for rename in renames:
        before[rename.column] = before.pop(rename.before or "")
    return (
        *renames,
        *_columns(before, reading),
        *_dropped(before, reading.present),
        *_key(known, renames, reading.key),
    )


def _renames(known: KnownSchema, reading: Reading) -> list[Change]:
    """A declaration counts once the source has the new name and no longer the old one."""
    found = []
    for new, old in reading.renamed.items():
        column = known.column(old)
        if column is None or known.column(new) is not None:
            continue
        if reading.present.column(new) is not None and reading.present.column(old) is None:
            found.append(Change("renamed", new, old, new, column.since, declared=True))
    return found


def _columns(before: Mapping[str, KnownColumn], reading: Reading) -> Iterator[Change]:
    for column in reading.present.columns:
        known, now = before.get(column.name), reading.type_of(column)
        declared = column.name in reading.declared
        if known is None:
            yield Change("added", column.name, None, str(now))
            continue
        kind = _kind(postgres_type(known.type), now, declared=declared)
        if kind is not None and (kind == "widened" or declared or not reading.inferred):
            yield Change(kind, column.name, known.type, str(now), known.since, declared)
        elif known.dropped:
            yield Change("added", column.name, None, str(now), known.since)


def _kind(before: SourceType, now: SourceType, *, declared: bool) -> Literal["widened", "narrowed", "changed"] | None:
    """Types that were read off texts are a guess: a narrower or another guess than before changes nothing."""
    wider, narrower = holds(now, before), holds(before, now)
    if wider and narrower:
        return None
    if wider or (declared and now == TEXT and not before.is_array):  # whatever it is can be written as text
        return "widened"
    return "narrowed" if narrower else "changed"


def _dropped(before: Mapping[str, KnownColumn], schema: SourceSchema) -> Iterator[Change]:
    for name, column in before.items():
        if not column.dropped and schema.column(name) is None:
            yield Change("dropped", name, column.type, None, column.since)


def _key(known: KnownSchema, renames: Sequence[Change], key: tuple[str, ...]) -> Iterator[Change]:
    new_names = {rename.before: rename.column for rename in renames}
    before = tuple(new_names.get(name, name) for name in known.key)
    if before and key and set(before) != set(key):
        yield Change("key_changed", "", ", ".join(before) or None, ", ".join(key) or None, known.version)


def after(known: KnownSchema, changes: Sequence[Change], key: tuple[str, ...]) -> KnownSchema:
    """What is known once the changes are accepted."""
    version = known.version + 1
    columns = {column.name: column for column in known.columns}
    for change in changes:
        match change.kind:
            case "renamed":
                old = columns.pop(change.before or "")
                columns[change.column] = replace(old, name=change.column, since=version)
            case "dropped":
                columns[change.column] = replace(columns[change.column], dropped=True, since=version)
            case "added" | "widened" | "narrowed" | "changed":
                columns[change.column] = KnownColumn(change.column, change.after or "", version)
            case "key_changed":
                pass
    moved = any(change.kind in ("key_changed", "renamed") for change in changes)
    return KnownSchema(tuple(columns.values()), key if moved else known.key, version)
