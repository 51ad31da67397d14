"""pydantic's errors in plain words, at the place where the mistake is written."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from pydantic import ValidationError
from pydantic.alias_generators import to_camel
from pydantic_core import ErrorDetails

from hakiri_dagster.errors import Problem
from hakiri_dagster.manifest.field_types import WRONG_VALUE, quoted
from hakiri_dagster.manifest.model_names import ModelType, field_named, known_names, models_at, spellings
from hakiri_dagster.manifest.places import Entry
from hakiri_dagster.manifest.positions import KeyPath
from hakiri_dagster.manifest.references import Filled
from hakiri_dagster.manifest.spelling import closest

_EXPECTED = {
    "string_type": "text",
    "tuple_type": "a list",
    "dict_type": "a table",
    "model_type": "a table",
    "model_attributes_type": "a table",
    "union_tag_not_found": "a table",
    "int_type": "a whole number",
    "float_type": "a number",
    "bool_type": "true or false",
}


def problems_of(error: ValidationError, entry: Entry, filled: Filled, root: ModelType) -> Iterator[Problem]:
    for details in error.errors(include_url=False, include_input=False):
        if not filled.unsettled(entry.written(details["loc"])) and not _is_aftermath(details, entry):
            yield _problem(details, entry, root)


def _is_aftermath(details: ErrorDetails, entry: Entry) -> bool:
    """pydantic calls a list too short when its elements are wrong."""
    return details["type"] == "too_short" and bool(entry.value(entry.written(details["loc"])))


def _problem(details: ErrorDetails, entry: Entry, root: ModelType) -> Problem:
    location = details["loc"]
    if details["type"] == "extra_forbidden":
        return _unknown_key(location, entry, root)
    if details["type"] == "missing":
        return _missing(location, entry, root)
    at_key = location[-1:] == ("[key]",)
    message, hint = _wrong_value(details, entry)
    return entry.problem(location, message, hint, at_key=at_key)


def _unknown_key(location: KeyPath, entry: Entry, root: ModelType) -> Problem:
    key = str(location[-1])
    around = location[:-1]
    models = models_at(root, around)
    known = {name: model for model in models for name in known_names(model)}
    if known.keys() & {key, _snake(key)}:
        where = place(around, entry)
        message = f"{quoted(key)}{_in(where)} is given twice, in two spellings or two places"
        return entry.problem(location, message, "keep one of them", at_key=True)
    near = closest(key, known)
    if near is not None:
        hint: str | None = f"did you mean `{_styled_like(key, near)}`?"
    else:
        hint = _belongs_elsewhere(key, models, around, root) or f"known here: {', '.join(sorted(known))}"
    return entry.problem(location, f"unknown key {quoted(key)}{_in(place(around, entry))}", hint, at_key=True)


def _belongs_elsewhere(key: str, models: tuple[ModelType, ...], around: KeyPath, root: ModelType) -> str | None:
    """Keys under the wrong header: TOML gives everything below `[pipeline.backfill]` to it."""
    for model in models:
        for name, info in model.model_fields.items():
            section = spellings(name, info)[0]
            if any(field_named(inner, key) for inner in models_at(model, (section,))):
                return f"it belongs under `{section}`"
    for length in range(len(around) - 1, -1, -1):
        outer = models_at(root, around[:length])
        if outer != models and any(_snake(key) in known_names(model) for model in outer):
            return "it belongs one level up: write it above this section's header"
    return None


def _missing(location: KeyPath, entry: Entry, root: ModelType) -> Problem:
    key = str(location[-1])
    infos = (field_named(model, key) for model in models_at(root, location[:-1]))
    meaning = next((info.description for info in infos if info is not None), None)
    hint = f"add `{key}`: {meaning[:1].lower()}{meaning[1:]}" if meaning else f"add `{key}`"
    return entry.problem(location[:-1], f"`{key}` is missing{_in(place(location[:-1], entry))}", hint)


def _wrong_value(details: ErrorDetails, entry: Entry) -> tuple[str, str | None]:
    location, context = details["loc"], details.get("ctx", {})
    value = entry.value(entry.written(location))
    where = place(location, entry) or "the manifest"
    kind = details["type"]
    if kind == WRONG_VALUE:
        return f"{where}: {context['message']}", context["hint"]
    if kind == "union_tag_not_found" and isinstance(value, dict):
        return f"{where}: `type` is missing", "add `type`"
    if kind in _EXPECTED:
        hint = f'write `["{value}"]`' if kind == "tuple_type" and isinstance(value, str) else None
        expected = "a name or a table" if where == "`destination`" else _EXPECTED[kind]
        return f"{where} must be {expected}, not {_kind(value)}", hint
    match kind:
        case "literal_error" | "union_tag_invalid":
            return _not_one_of(where, value, context)
        case "too_short" | "string_too_short":
            return f"{where} is empty", "name at least one" if kind == "too_short" else None
        case "greater_than_equal":
            return f"{where} must be at least {context['ge']}", None
        case "greater_than":
            return f"{where} must be more than {context['gt']}", None
        case "less_than_equal":
            return f"{where} must be at most {context['le']}", None
        case "string_pattern_mismatch":
            return f"{where}: {quoted(str(value))} does not look right", f"it must match {context['pattern']}"
        case _:
            return f"{where}: {details['msg'][:1].lower()}{details['msg'][1:]}", None


def _not_one_of(where: str, value: Any, context: dict[str, Any]) -> tuple[str, str | None]:
    expected = str(context.get("expected") or context.get("expected_tags"))
    names = [part.strip().strip("'") for part in expected.replace(" or ", ", ").split(",")]
    written = value.get("type") if isinstance(value, dict) else value
    near = closest(written, names) if isinstance(written, str) else None
    shown = quoted(written) if isinstance(written, str) else _kind(written)
    hint = f"did you mean `{near}`?" if near else None
    return f"{where}: {shown} is not one of {', '.join(names)}", hint


def place(location: KeyPath, entry: Entry) -> str:
    """How messages name a place inside a pipeline; empty for the pipeline itself."""
    path = entry.written(location)
    if len(path) >= 2 and path[0] == "tables" and isinstance(path[1], int):
        inside = _dotted(path[2:])
        table = f"table {_table_name(entry, path[1])}"
        return f"{inside} of {table}" if inside else table
    return _dotted(path)


def _table_name(entry: Entry, index: int) -> str:
    table = entry.value(("tables", index))
    name = table.get("name") if isinstance(table, dict) else table
    return quoted(name) if isinstance(name, str) else f"{index + 1}"


def _dotted(path: KeyPath) -> str:
    text = "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in path).lstrip(".")
    return quoted(text) if text else ""


def _in(where: str) -> str:
    return f" in {where}" if where else ""


def _snake(name: str) -> str:
    return "".join(f"_{character.lower()}" if character.isupper() else character for character in name)


def _styled_like(written: str, name: str) -> str:
    is_camel = "_" not in written and any(character.isupper() for character in written)
    return to_camel(name) if is_camel else name


def _kind(value: Any) -> str:
    match value:
        case None:
            return "null"
        case bool():
            return "true or false"
        case str():
            return "text"
        case int() | float():
            return "a number"
        case list():
            return "a list"
        case _:
            return "a table"
