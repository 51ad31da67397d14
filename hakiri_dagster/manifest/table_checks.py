"""What is wrong between the keys of a pipeline and its tables.

Asked of what is written, not of the models: so it is told together with the mistakes that keep a model from being made.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from hakiri_dagster.errors import Problem
from hakiri_dagster.manifest.field_types import quoted
from hakiri_dagster.manifest.mode_checks import mode_problems
from hakiri_dagster.manifest.places import Entry
from hakiri_dagster.manifest.positions import KeyPath


def table_problems(entry: Entry) -> Iterator[Problem]:
    tables = entry.value(("tables",))
    if not isinstance(tables, list):
        return
    yield from _named_twice(entry, tables)
    connector = entry.value(("source", "connector"))
    for index, table in enumerate(tables):
        at = ("tables", index)
        yield from mode_problems(entry, at, _name(table))
        if entry.value((*at, "path")) is not None and connector == "postgres":
            message = f'table {_name(table)}: `path` is for sources with `connector = "files"` or `"rest"`'
            yield entry.problem((*at, "path"), message, "take `path` out", at_key=True)
        yield from _renamed_twice(entry, at, _name(table))


def _renamed_twice(entry: Entry, at: KeyPath, name: str) -> Iterator[Problem]:
    renamed = entry.value((*at, "renamed"))
    if not isinstance(renamed, dict):
        return
    seen: dict[str, str] = {}
    for new, old in renamed.items():
        if not isinstance(old, str):
            continue
        where = (*at, "renamed", new)
        if new == old:
            yield entry.problem(where, f"table {name}: {quoted(new)} is renamed to itself", "take it out")
        elif old in seen:
            message = f"table {name}: {quoted(old)} cannot become both {quoted(seen[old])} and {quoted(new)}"
            yield entry.problem(where, message, 'write `{ new_name = "old_name" }`, each old name once')
        seen.setdefault(old, new)


def _named_twice(entry: Entry, tables: list[Any]) -> Iterator[Problem]:
    seen: dict[str, str] = {}
    for index, table in enumerate(tables):
        name = table.get("name") if isinstance(table, dict) else table
        if not isinstance(name, str):
            continue
        earlier = seen.get(name.casefold())
        seen.setdefault(name.casefold(), name)
        if earlier is not None:
            also = "" if earlier == name else f" (as {quoted(earlier)}: only the case differs)"
            message = f"the table {quoted(name)} is named twice{also}"
            yield entry.problem(("tables", index), message, "keep one of them")


def _name(table: Any) -> str:
    name = table.get("name") if isinstance(table, dict) else table
    return quoted(name) if isinstance(name, str) else "without a name"
