"""What is wrong with a REST source and its tables, as far as their texts tell: nothing is resolved or connected to."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from hakiri_dagster.errors import Problem, UnsafeUrl
from hakiri_dagster.manifest.api_urls import ALLOWED, joined, judged
from hakiri_dagster.manifest.field_types import quoted
from hakiri_dagster.manifest.merge_settings import KEYED_MODES
from hakiri_dagster.manifest.parting import as_if_filled, keys_in_force, mentions, placeholder, placeholders_in
from hakiri_dagster.manifest.places import Entry, value_at
from hakiri_dagster.manifest.positions import KeyPath
from hakiri_dagster.manifest.presets.registry import known_key
from hakiri_dagster.manifest.references import Filled, is_one_reference, names_in
from hakiri_dagster.manifest.resolve import Declared
from hakiri_dagster.manifest.rest_spec import CHILD_KEYS, ENDPOINT_KEYS
from hakiri_dagster.manifest.tables import Pipeline, Table

_CONFIG: KeyPath = ("source", "config")
_SECRETS: Mapping[str, str] = {"bearer": "token", "basic": "password", "header": "value", "query": "value"}
_OF_PRESETS: Mapping[str, str] = {"github": "token", "stripe": "api_key"}
"""Where presets have their secret."""
_APIS = frozenset({"rest", *_OF_PRESETS})
_OF_CREDENTIALS = frozenset({"authorization", "proxy-authorization", "cookie"})


def rest_problems(entry: Entry, filled: Filled, *, allow_loopback: bool) -> Iterator[Problem]:
    if not _is_api(entry):
        yield from _keys_of_rest(entry)
        return
    yield from _base_url(entry, filled, allow_loopback=allow_loopback)
    yield from _literal_secrets(entry)
    for index, _ in enumerate(_tables(entry.data)):
        yield from _path(entry, filled, index, allow_loopback=allow_loopback)


def rest_secrets(entry: Entry, env: Mapping[str, str]) -> Iterator[str]:
    """What the environment gives to credentials, headers and parameters is never to be shown."""
    if not _is_api(entry):
        return
    places: list[KeyPath] = [(*_CONFIG, "auth"), (*_CONFIG, "headers")]
    places += [(*_CONFIG, key) for key in _OF_PRESETS.values()]
    places += [("tables", index, "params") for index, _ in enumerate(_tables(entry.data))]
    for place in places:
        for text in _texts(entry.value(place)):
            yield from (env[name] for name in names_in(text) if name in env)


def cursor_problems(pairs: Sequence[tuple[Declared, Pipeline]]) -> Iterator[Problem]:
    """Asked of what pipelines and tables come to together."""
    for declared, pipeline in pairs:
        for index, table in enumerate(pipeline.tables):
            if table.source.connector != "rest" or table.cursor is None or table.whole_table:
                continue
            complaint = _cursor(table)
            if complaint is not None:
                message, hint = complaint
                yield declared.entry.problem(("tables", index), f"table {quoted(table.name)}: {message}", hint)


def part_problems(pairs: Sequence[tuple[Declared, Pipeline]]) -> Iterator[Problem]:
    """A key that no request names would have every part ask for the same rows."""
    for declared, pipeline in pairs:
        for index, table in enumerate(pipeline.tables):
            if table.source.connector != "rest":
                continue
            for message, hint in (*_parts(table), *_segments(table)):
                yield declared.entry.problem(("tables", index), f"table {quoted(table.name)}: {message}", hint)


def part_warnings(pairs: Sequence[tuple[Declared, Pipeline]]) -> Iterator[Problem]:
    """What the API numbers for each part anew would be merged across them."""
    for declared, pipeline in pairs:
        connector = declared.entry.value(("source", "connector"))
        for index, table in enumerate(pipeline.tables):
            if table.source.connector != "rest" or table.mode not in KEYED_MODES or not table.upsert_key:
                continue
            missing = _keys_of(table).keys() - _members_of_key(table)
            if not missing or known_key(connector, table.name) == table.upsert_key:
                continue
            (key,) = missing
            yield declared.entry.problem(
                ("tables", index),
                f"table {quoted(table.name)}: its key ({', '.join(table.upsert_key)}) lacks the partition key "
                f"{quoted(key)}: records of different parts with the same key take each other's place",
                f"add {quoted(key)} to the key, which changes nothing where no two parts share one",
            )


def _members_of_key(table: Table) -> set[str]:
    """And what columns of a list's table hold of its parent."""
    kept = table.endpoint.get("explosion", {}).get("kept", {})
    return {member for column in table.upsert_key for member in (column, kept.get(column, column))}


def _parts(table: Table) -> Iterator[tuple[str, str | None]]:
    path, keys = table.path or table.name, _keys_of(table)
    for key in keys:
        if not mentions(key, path, table.endpoint.get("params", {})):
            yield (
                f"neither its path nor its parameters name the partition key {quoted(key)}",
                f"write {quoted(placeholder(key))} where its value stands, or take the key out",
            )
    for name in placeholders_in(path):
        if name not in keys:
            yield f"its path holds {quoted(placeholder(name))}, which no partition key is called", "check its spelling"
    for key in keys:
        if table.columns.get(key, "text") not in ("text", "varchar"):
            yield f"the partition key {quoted(key)} is a column of text", "take it out of `columns`"


def _keys_of(table: Table) -> Mapping[str, Sequence[str]]:
    said, of_source = table.endpoint, table.source.config.get("partition_keys") or {}
    return keys_in_force(said.get("partition_keys"), of_source, table.path or table.name, said.get("params", {}))


def _segments(table: Table) -> Iterator[tuple[str, str | None]]:
    if table.endpoint.get("segments") is None:
        return
    pagination = table.endpoint.get("pagination") or table.source.config.get("pagination") or {}
    if table.cursor is not None and not table.whole_table:
        yield "it has a cursor (`incremental`) and `segments`", "set `incremental = false`, or take `segments` out"
    if _keys_of(table):
        yield "it has partition keys and `segments`", "declare a table for each of their values"
    if pagination.get("type") == "none":
        yield "it has `segments`, and its `pagination` says that there is one page", "take `segments` out"


def _cursor(table: Table) -> tuple[str, str] | None:
    asked = table.endpoint.get("cursor_params")
    if asked is None:
        return (
            "it has a cursor (`incremental`), and nothing says how the API is asked for a range of it",
            'add `cursor_params`, such as { lower = "since" }; or set `incremental = false`: it is loaded whole',
        )
    if table.backfill.start_from is None and asked["order"] != "ascending" and not asked["oldest"]:
        return (
            "nothing says where its history begins",
            'set `backfill.start_from`; or `cursor_params.order = "ascending"`, if the API gives the oldest first',
        )
    if asked["restart"] and not table.upsert_key:
        return (
            "`cursor_params.restart` shows records at the seams of pages twice, and without a key none is told apart",
            "declare its `primary_key`, or take `restart` out",
        )
    if asked["format"] == "number" and not asked["newest"] and asked["order"] != "descending":
        return (
            "its cursor is a number, and nothing tells the highest one",
            "set `cursor_params.newest` to parameters with which the API gives the newest record first",
        )
    return None


def _is_api(entry: Entry) -> bool:
    connector = entry.value(("source", "connector"))
    return isinstance(connector, str) and connector in _APIS


def _place_of_the_secret(entry: Entry) -> KeyPath | None:
    connector, kind = entry.value(("source", "connector")), entry.value((*_CONFIG, "auth", "type"))
    if connector in _OF_PRESETS:
        return (*_CONFIG, _OF_PRESETS[connector])
    key = _SECRETS.get(kind) if isinstance(kind, str) else None
    return None if key is None else (*_CONFIG, "auth", key)


def _keys_of_rest(entry: Entry) -> Iterator[Problem]:
    for index, table in enumerate(_tables(entry.data)):
        for key in sorted(ENDPOINT_KEYS | CHILD_KEYS):
            at: KeyPath = ("tables", index, key)
            if entry.value(at) is not None:
                message = f'table {quoted(_name(table))}: `{key}` is for sources with `connector = "rest"`'
                yield entry.problem(at, message, f"take `{key}` out", at_key=True)


def _base_url(entry: Entry, filled: Filled, *, allow_loopback: bool) -> Iterator[Problem]:
    at: KeyPath = (*_CONFIG, "base_url")
    url = value_at(filled.data, at)
    if not isinstance(url, str) or not url or filled.unsettled(entry.written(at)) or set(url) & set("?#@"):
        return
    try:
        judged(url, allow_loopback=allow_loopback)
    except UnsafeUrl as error:
        yield entry.problem(at, f"the API is refused: {error.what}", error.hint)


def _literal_secrets(entry: Entry) -> Iterator[Problem]:
    """Neither is quoted."""
    hint = "write `${NAME}`, and set NAME in the environment"
    at = _place_of_the_secret(entry)
    secret = None if at is None else entry.value(at)
    if at is not None and isinstance(secret, str) and secret and not is_one_reference(secret):
        yield entry.problem(at, "a secret is not written into a manifest", hint)
    headers = entry.value((*_CONFIG, "headers"))
    for name, value in headers.items() if isinstance(headers, dict) else ():
        if name.lower() in _OF_CREDENTIALS and isinstance(value, str) and not names_in(value):
            yield entry.problem((*_CONFIG, "headers", name), "a secret is not written into a manifest", hint)


def _path(entry: Entry, filled: Filled, index: int, *, allow_loopback: bool) -> Iterator[Problem]:
    at: KeyPath = ("tables", index, "path")
    path, base = value_at(filled.data, at), value_at(filled.data, (*_CONFIG, "base_url"))
    if not isinstance(path, str) or filled.unsettled(entry.written(at)):
        return
    name = quoted(_name(_tables(entry.data)[index]))
    if "://" in path or path.startswith("//"):
        yield entry.problem(at, f"table {name}: its path is a URL of its own", "write what follows `base_url`")
    elif set("?#") & set(path):
        yield entry.problem(at, f"table {name}: its path holds a query or a fragment", "write parameters as `params`")
    elif isinstance(base, str) and not set(base) & set("?#@"):
        try:
            judged(base, allow_loopback=allow_loopback)
        except UnsafeUrl:
            return  # told once, where it is written
        try:
            judged(joined(base, as_if_filled(path)), allow_loopback=allow_loopback)
        except UnsafeUrl as error:
            yield entry.problem(at, f"table {name}: {error.what}", ALLOWED)


def _tables(data: Any) -> list[Any]:
    tables = value_at(data, ("tables",))
    return tables if isinstance(tables, list) else []


def _name(table: Any) -> str:
    name = table.get("name") if isinstance(table, dict) else table
    return name if isinstance(name, str) else ""


def _texts(value: Any) -> Iterator[str]:
    match value:
        case str():
            yield value
        case dict():
            for inner in value.values():
                yield from _texts(inner)
        case list():
            for inner in value:
                yield from _texts(inner)
