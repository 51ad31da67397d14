"""`validate` of one table, as text that can be put into its manifest as it stands."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import tomlkit

from hakiri_dagster.manifest import validator_spec
from hakiri_dagster.manifest.rule_spec import RowRule, Rule
from hakiri_dagster.manifest.spec import ValidateSpec
from hakiri_dagster.manifest.tables import Table
from hakiri_dagster.manifest.validator_spec import DatasetValidator
from hakiri_dagster.manifest.written_tables import WrittenTable

_FIRST = ("type", "id", "field", "column", "columns")
_LAST = ("on_fail",)
_AS_IT_IS = "as it is in the manifest now"
_INDENT = "    "


@dataclass(frozen=True, slots=True)
class Addition:
    """A check, and why it is proposed."""

    check: RowRule | DatasetValidator
    why: str


def snippet(table: Table, place: WrittenTable, additions: Sequence[Addition]) -> str:
    """What stands there already is in it: a list in a table's entry takes the place of its pipeline's."""
    lists = _lists(table.validation, additions, everything=bool(place.there))
    others = _others(table.validation) if place.there else {}
    match place.form:
        case "json":
            return _as_json(lists, others)
        case "section":
            return "\n".join(_section(place.header, lists, others))
        case "entry":
            return "\n".join(_inline(lists, others))
        case "name":
            first, *rest = _inline(lists, others)
            return "\n".join([f"{{ name = {_toml(table.name)}, {first}", *rest]) + " },"


Lists = Mapping[str, Sequence[Addition]]
"""`row_level`, then the kinds of validators."""


def _lists(now: ValidateSpec, additions: Sequence[Addition], *, everything: bool) -> Lists:
    found: dict[str, list[Addition]] = {"row_level": []}  # before the validators, which share a table
    for check in (*now.row_level, *now.dataset_level.validators):
        found.setdefault(_list_of(check), []).append(Addition(check, _AS_IT_IS))
    added = {_list_of(addition.check) for addition in additions}
    for addition in additions:
        found.setdefault(_list_of(addition.check), []).append(addition)
    return {name: checks for name, checks in found.items() if checks and (everything or name in added)}


def _list_of(check: RowRule | DatasetValidator) -> str:
    return "row_level" if isinstance(check, Rule) else validator_spec.kind_of(check)


def _others(now: ValidateSpec) -> dict[str, Any]:
    written = now.model_dump(mode="json", exclude_unset=True)
    return {name: value for name, value in written.items() if name not in ("row_level", "dataset_level")}


def _section(header: str, lists: Lists, others: Mapping[str, Any]) -> Iterator[str]:
    validators = {name: checks for name, checks in lists.items() if name != "row_level"}
    if others or "row_level" in lists:
        yield f"[{header}]"
        yield from (f"{_key(name)} = {_toml(value)}" for name, value in others.items())
    if "row_level" in lists:
        yield from _list("row_level", lists["row_level"])
    if validators:
        yield f"\n[{header}.dataset_level]"
        for name, checks in validators.items():
            yield from _list(name, checks)


def _list(name: str, checks: Sequence[Addition]) -> Iterator[str]:
    yield f"{name} = ["
    yield from _items(checks)
    yield "]"


def _items(checks: Sequence[Addition]) -> Iterator[str]:
    for addition in checks:
        yield f"{_INDENT}# {comment(addition.why)}"
        yield f"{_INDENT}{_toml(_settings(addition.check))},"


def _inline(lists: Lists, others: Mapping[str, Any]) -> Iterator[str]:
    """A table of one line, but for what is inside of its lists: TOML allows no line break elsewhere."""
    line = "validate = { " + "".join(f"{_key(name)} = {_toml(value)}, " for name, value in others.items())
    names = list(lists)
    for place, name in enumerate(names):
        first_validator = name != "row_level" and (place == 0 or names[place - 1] == "row_level")
        yield f"{line}{'dataset_level = { ' if first_validator else ''}{name} = ["
        yield from _items(lists[name])
        line = "], " if place < len(names) - 1 else "] }"
    yield f"{line} }}" if names and names[-1] != "row_level" else line


def _as_json(lists: Lists, others: Mapping[str, Any]) -> str:
    """It has no comments."""
    told = {name: [_settings(one.check) for one in checks] for name, checks in lists.items()}
    rules = {"row_level": told.pop("row_level")} if "row_level" in told else {}
    validators = {"dataset_level": told} if told else {}
    return '"validate": ' + json.dumps({**others, **rules, **validators}, indent=2, ensure_ascii=False)


def _settings(check: RowRule | DatasetValidator) -> dict[str, Any]:
    written: dict[str, Any] = check.model_dump(mode="json", exclude_unset=True)
    middle = [name for name in written if name not in (*_FIRST, *_LAST)]
    return {name: written[name] for name in (*_FIRST, *middle, *_LAST) if name in written}


def _toml(value: Any) -> str:
    match value:
        case dict():
            inside = ", ".join(f"{_key(name)} = {_toml(inner)}" for name, inner in value.items())
            return f"{{ {inside} }}" if inside else "{}"
        case list():
            return f"[{', '.join(map(_toml, value))}]"
        case _:
            return str(tomlkit.item(value).as_string())


def _key(name: str) -> str:
    return tomlkit.key(name).as_string()


def comment(text: str) -> str:
    """On one line, whatever it quotes."""
    return "".join(character if character.isprintable() else " " for character in text)
