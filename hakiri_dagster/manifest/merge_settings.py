"""What is wrong with the keys of `load` that only modes which merge by key know: which mode knows which, and what they
say of columns. Asked of what is written, as in `table_checks`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, get_args

from hakiri_dagster.errors import Problem
from hakiri_dagster.manifest.field_types import quoted
from hakiri_dagster.manifest.load_spec import HISTORY_MODES, WHOLE_TABLE_MODES, LoadMode
from hakiri_dagster.manifest.places import Entry
from hakiri_dagster.manifest.positions import KeyPath
from hakiri_dagster.manifest.presets.registry import known_key

KEYED_MODES: tuple[LoadMode, ...] = ("upsert", "delete_missing", "scd2")
_MODES = frozenset(get_args(LoadMode))
_KNOWN_TO: Mapping[str, tuple[LoadMode, ...]] = {
    "on_duplicate_key": KEYED_MODES,
    "hard_delete": KEYED_MODES,
    "soft_delete": ("upsert", "delete_missing"),
    "close_missing": ("scd2",),
}


def merge_problems(entry: Entry) -> Iterator[Problem]:
    for table in _tables(entry):
        if table.mode not in _MODES:  # which is told; nothing follows from it
            continue
        yield from _without_key(table)
        yield from _unknown_to_its_mode(table)
        if table.mode in KEYED_MODES:
            yield from _columns_in_conflict(table)
        if table.mode in _KNOWN_TO["soft_delete"]:
            yield from _nothing_to_mark(table)


def merge_warnings(entry: Entry) -> Iterator[Problem]:
    """What the pipeline says for all of its tables, and none of them takes."""
    modes = {table.mode for table in _tables(entry)}
    if not modes <= _MODES:
        return
    for name, known_to in _KNOWN_TO.items():
        if entry.value(("load", name)) is not None and modes.isdisjoint(known_to):
            message = f"`{name}` has no effect: no table's load mode is {_either(known_to)}"
            yield entry.problem(("load", name), message, "take it out, or set `load.mode`", at_key=True)


@dataclass(frozen=True, slots=True)
class _Written:
    """A table, with what its pipeline says where it says nothing itself."""

    entry: Entry
    at: KeyPath
    name: Any

    @property
    def label(self) -> str:
        return quoted(self.name) if isinstance(self.name, str) else "without a name"

    @property
    def primary_key(self) -> Any:
        if self.entry.value((*self.at, "explode")) is not None:
            return ("position",)  # and its parent's, by whatever names
        known = known_key(self.entry.value(("source", "connector")), self.name)
        return self.entry.value((*self.at, "primary_key")) or known

    def place(self, *path: str) -> KeyPath | None:
        return next((at for at in ((*self.at, *path), path) if self.entry.value(at) is not None), None)

    def value(self, *path: str) -> Any:
        place = self.place(*path)
        return None if place is None else self.entry.value(place)

    @property
    def mode(self) -> str:
        written = self.value("load", "mode")
        by_key = "upsert" if self.primary_key else "append"
        return written if isinstance(written, str) and written else by_key

    @property
    def key(self) -> tuple[Any, ...]:
        found = self.value("load", "upsert_key") or self.primary_key
        return tuple(found) if isinstance(found, list | tuple) else ()

    def problem(self, path: tuple[str, ...], message: str, hint: str, *, at_key: bool = False) -> Problem:
        return self.entry.problem(self.place(*path) or self.at, f"table {self.label}: {message}", hint, at_key=at_key)


def _tables(entry: Entry) -> Iterator[_Written]:
    tables = entry.value(("tables",))
    for index, table in enumerate(tables if isinstance(tables, list) else ()):
        name = table.get("name") if isinstance(table, dict) else table
        yield _Written(entry, ("tables", index), name)


def _without_key(table: _Written) -> Iterator[Problem]:
    keys = (table.primary_key, table.value("load", "upsert_key"))
    if table.mode in KEYED_MODES and keys == (None, None):
        own = (*table.at, "load", "mode")
        where = own if table.entry.value(own) is not None else table.at
        message = f"table {table.label}: load mode `{table.mode}` needs a key"
        yield table.entry.problem(where, message, "set `primary_key`, or `load.upsert_key`")


def _unknown_to_its_mode(table: _Written) -> Iterator[Problem]:
    for name, known_to in _KNOWN_TO.items():
        own = (*table.at, "load", name)
        if table.entry.value(own) is not None and table.mode not in known_to:
            message = (
                f"table {table.label}: `{name}` is for load mode {_either(known_to)}, and this one is `{table.mode}`"
            )
            yield table.entry.problem(own, message, "take it out, or set `load.mode`", at_key=True)


def _columns_in_conflict(table: _Written) -> Iterator[Problem]:
    cursor = table.value("incremental")
    if table.mode in HISTORY_MODES and cursor in table.key:
        hint = "leave it out: versions of a row are told apart by the time from which they are valid"
        yield table.problem(("incremental",), f"load mode `{table.mode}` needs a key without the cursor", hint)
    for name in ("hard_delete", "soft_delete"):
        column = table.value("load", name)
        if column is None:
            continue
        if column in table.key:
            yield table.problem(("load", name), f"`{name}` is a column of the key", "name another column")
        elif column == cursor:
            yield table.problem(("load", name), f"`{name}` is the table's cursor", "name another column")


def _nothing_to_mark(table: _Written) -> Iterator[Problem]:
    finds_missing = table.mode in WHOLE_TABLE_MODES
    if not finds_missing and table.value("load", "soft_delete") and not table.value("load", "hard_delete"):
        hint = "set `hard_delete` to the column that says so, or use load mode `delete_missing`"
        yield table.problem(("load", "soft_delete"), "nothing says which rows are deleted", hint, at_key=True)


def _either(modes: tuple[LoadMode, ...]) -> str:
    *others, last = (f"`{mode}`" for mode in modes)
    return f"{', '.join(others)} or {last}" if others else last
