"""What a load mode asks of the other keys of a table, and what it would be wise to write instead."""

from __future__ import annotations

import re
from collections.abc import Iterator

from hakiri_dagster.errors import Problem
from hakiri_dagster.manifest.field_types import quoted
from hakiri_dagster.manifest.load_spec import EXCHANGING_MODES, IN_ORDER_MODES, STREAM_MODES
from hakiri_dagster.manifest.places import Entry
from hakiri_dagster.manifest.positions import KeyPath

_CLUSTER = re.compile(r"\s*cluster\b", re.IGNORECASE)


def mode_problems(entry: Entry, at: KeyPath, name: str) -> Iterator[Problem]:
    """Asked of what is written, as all of `table_checks` is. `at` is the table's place."""
    mode = entry.value((*at, "load", "mode")) or entry.value(("load", "mode"))
    if not isinstance(mode, str):
        return
    if mode in IN_ORDER_MODES:
        yield from _watermark(entry, at, name, mode)
    if mode in STREAM_MODES and _of_load(entry, at, "cdc_source") is None:
        hint = "set `load.cdc_source`, the stream of changes"
        yield entry.problem(_mode_place(entry, at), f"table {name}: load mode `{mode}` needs a `cdc_source`", hint)
    if mode in EXCHANGING_MODES:
        yield from _clustered(entry, at, name, mode)


def mode_warnings(entry: Entry) -> Iterator[Problem]:
    tables = entry.value(("tables",))
    if not isinstance(tables, list) or len(tables) != 1:
        return
    at = ("tables", 0)
    if (entry.value((*at, "load", "mode")) or entry.value(("load", "mode"))) == "truncate":
        message = "one table, refreshed whole from one source: `blue_green` does that and keeps no reader waiting"
        where = _mode_place(entry, at)
        place = where if where != at else ("load", "mode")
        yield entry.problem(place, message, 'set `load.mode = "blue_green"`, or leave it, if `truncate` is meant')


def _watermark(entry: Entry, at: KeyPath, name: str, mode: str) -> Iterator[Problem]:
    watermark = _of_load(entry, at, "watermark_column")
    if watermark is None:
        hint = "set `load.watermark_column` to the column that grows with every row"
        message = f"table {name}: load mode `{mode}` needs a `watermark_column`"
        yield entry.problem(_mode_place(entry, at), message, hint)
        return
    own = entry.value((*at, "incremental"))
    cursor = entry.value(("incremental",)) if own is None else own
    if isinstance(cursor, str) and isinstance(watermark, str) and cursor != watermark:
        message = f"table {name}: `incremental` is {quoted(cursor)}, and `watermark_column` is {quoted(watermark)}"
        hint = "the watermark column is the table's cursor: name the same one, or leave `incremental` out"
        if own is None:
            hint = f"the watermark column is the table's cursor: set `incremental` to {quoted(watermark)} for the table"
        where = (*at, "incremental") if own is not None else ("incremental",)
        yield entry.problem(where, message, hint)


def _clustered(entry: Entry, at: KeyPath, name: str, mode: str) -> Iterator[Problem]:
    """Until `<table>_new` takes its place its indexes bear other names, and none is marked for CLUSTER."""
    own = entry.value((*at, "load", "post_hook"))
    place: KeyPath = ("load", "post_hook") if own is None else (*at, "load", "post_hook")
    hooks = entry.value(place)
    single = isinstance(hooks, dict)
    for index, hook in enumerate(hooks if isinstance(hooks, list) else [hooks]):
        statement = hook.get("statement") if isinstance(hook, dict) else None
        if isinstance(statement, str) and "{table}" in statement and _CLUSTER.match(statement):
            message = (
                f"table {name}: load mode `{mode}` cannot CLUSTER {{table}}, whose indexes bear other names by then"
            )
            hint = (
                "name the target instead of {table}: it is clustered when it is published, and readers wait meanwhile"
            )
            where = place if single else (*place, index)
            yield entry.problem((*where, "statement"), message, hint)


def _of_load(entry: Entry, at: KeyPath, key: str) -> object:
    own = entry.value((*at, "load", key))
    return entry.value(("load", key)) if own is None else own


def _mode_place(entry: Entry, at: KeyPath) -> KeyPath:
    return at if entry.value((*at, "load", "mode")) is None else (*at, "load", "mode")
