"""The columns of a table, from what is declared, what is known, and a sample of its records.

Types are those that JSON lines in files would get. Objects and lists are `jsonb`, and travel as the text that they are:
a sample does not show every member that an object may have.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal

import pyarrow as pa

from hakiri_dagster.connectors.files.json_format import with_room
from hakiri_dagster.connectors.files.schemas import alike_names
from hakiri_dagster.connectors.files.text_inference import signature, type_of
from hakiri_dagster.connectors.files.types import MAX_PRECISION, decimal, declared_column
from hakiri_dagster.connectors.rest.json_text import Record, is_whole, written
from hakiri_dagster.planning.columns import Column, SourceSchema, is_ours, left_out

_JSONB: Final = "jsonb"
_LIST: Final = "[]"


class _Number(str):
    """The text of a number."""

    __slots__ = ()


_DECODER = json.JSONDecoder(parse_int=_Number, parse_float=_Number)

Kind = Literal["nested", "boolean", "number", "text", "several"]


@dataclass(frozen=True, slots=True)
class Values:
    """What values tell of the type of their column: their kind, None where there is no value, and the united bits of
    numbers or texts. It takes the same room for any number of them, and what is told of some and of others is what
    would be told of all."""

    kind: Kind | None = None
    signature: int = 0

    def __or__(self, other: Values) -> Values:
        if self.kind is None or other.kind is None:
            return other if self.kind is None else self
        if self.kind != other.kind:
            return _SEVERAL
        return Values(self.kind, self.signature | other.signature)


_UNTOLD: Final = Values()
_SEVERAL: Final = Values("several")
_NO_TIME: Final = "?"
"""Instead of a text that Arrow cannot hold."""
_ANY_NESTED: Final[Mapping[str, Any]] = {}

Shown = Mapping[str, Values]
"""The columns that some records have, in the order in which they were first seen."""


def shown_by(records: Iterable[Record], settled: frozenset[str]) -> Shown:
    """What is no object has no columns: reading sets it aside. `settled`: columns that have a type whatever values they
    have, so that nobody looks at these."""
    found: dict[str, list[Any]] = {}
    for record in records:
        if isinstance(record.value, Mapping):
            for name, value in _exact(record, settled).items():
                values = found.setdefault(name, [])
                if value is not None and name not in settled:
                    values.append(_ANY_NESTED if isinstance(value, dict | list) else value)
    return {name: _told_by(values) for name, values in found.items()}


def columns_of(
    shown: Iterable[Shown], known: SourceSchema | None, declared: Mapping[str, str]
) -> tuple[SourceSchema, tuple[str, ...]]:
    """And warnings. Columns keep the order in which they were first seen."""
    values = _united(shown)
    remembered = [column.name for column in known.columns] if known else []
    names = dict.fromkeys([*remembered, *values, *declared])
    columns = tuple(_column(name, known, declared, values) for name in names if not is_ours(name) and is_whole(name))
    return SourceSchema(columns), (*alike_names(column.name for column in columns), *left_out(names), *_halves(names))


def _halves(names: Iterable[str]) -> Iterator[str]:
    for name in names:
        if not is_whole(name):
            yield f"the member {written(name)} is not loaded: there is half of a character in its name"


def _united(shown: Iterable[Shown]) -> Shown:
    values: dict[str, Values] = {}
    for some in shown:
        for name, told in some.items():
            values[name] = values.get(name, _UNTOLD) | told
    return values


def _column(name: str, known: SourceSchema | None, declared: Mapping[str, str], values: Shown) -> Column:
    if name in declared:
        return _declared(name, declared[name])
    remembered = known.column(name) if known else None
    return remembered or _inferred(name, values[name])


def _declared(name: str, postgres_type: str) -> Column:
    if not postgres_type.endswith(_LIST):
        return declared_column(name, postgres_type)
    element = declared_column(name, postgres_type.removesuffix(_LIST).strip())
    return Column(name, f"array<{element.spark_type}>", native_type=postgres_type)


def _exact(record: Record, settled: frozenset[str]) -> Mapping[str, Any]:
    """The record's members, numbers as they are written where somebody looks at them."""
    members: Mapping[str, Any] = record.value if record.value.keys() <= settled else _DECODER.decode(record.text)
    return members


def _told_by(values: Sequence[Any]) -> Values:
    """NULLs are no values, and not among these."""
    kinds = set(map(_kind, values))
    if len(kinds) != 1:
        return _SEVERAL if kinds else _UNTOLD
    (kind,) = kinds
    match kind:
        case "number":
            return Values(kind, signature(pa.array(list(map(str, values)), pa.string())))
        case "text":
            told = [value if is_whole(value) else _NO_TIME for value in values]
            return Values(kind, signature(pa.array(told, pa.string()), only_times=True))
        case _:
            return Values(kind)


def _kind(value: Any) -> Kind:
    match value:
        case dict() | list():
            return "nested"
        case bool():
            return "boolean"
        case _Number():
            return "number"
        case _:
            return "text"


def _inferred(name: str, values: Values) -> Column:
    if values.kind == "nested":
        return Column(name, "string", native_type=_JSONB)
    return Column(name, _scalar_type(values) or "string")


def _scalar_type(values: Values) -> str | None:
    match values.kind:
        case "boolean":
            return "boolean"
        case "number":
            type_ = type_of(values.signature)
            return type_ if type_ == decimal(MAX_PRECISION, 0) else with_room(type_)
        case "text":
            return type_of(values.signature)
        case _:
            return None
