"""The columns of a table, from what is declared, what is known, and a sample of its records.

Types are those that JSON lines in files would get. Objects and lists are `jsonb`, and travel as the text that they are:
a sample does not show every member that an object may have.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

import pyarrow as pa

from hakiri_dagster.connectors.files.json_format import with_room
from hakiri_dagster.connectors.files.schemas import alike_names
from hakiri_dagster.connectors.files.text_inference import signature, type_of
from hakiri_dagster.connectors.files.types import MAX_PRECISION, decimal, declared_column
from hakiri_dagster.connectors.rest.json_text import Record
from hakiri_dagster.planning.columns import Column, SourceSchema, is_ours, left_out

_JSONB: Final = "jsonb"
_LIST: Final = "[]"


class _Number(str):
    """The text of a number."""

    __slots__ = ()


_DECODER = json.JSONDecoder(parse_int=_Number, parse_float=_Number)


def columns_of(
    records: Sequence[Record], known: SourceSchema | None, declared: Mapping[str, str]
) -> tuple[SourceSchema, tuple[str, ...]]:
    """And warnings. Columns keep the order in which they were first seen."""
    values = _values_by_name(records)
    remembered = [column.name for column in known.columns] if known else []
    names = dict.fromkeys([*remembered, *values, *declared])
    columns = tuple(_column(name, known, declared, values) for name in names if not is_ours(name))
    return SourceSchema(columns), (*alike_names(column.name for column in columns), *left_out(names))


def _column(
    name: str, known: SourceSchema | None, declared: Mapping[str, str], values: Mapping[str, Sequence[Any]]
) -> Column:
    if name in declared:
        return _declared(name, declared[name])
    remembered = known.column(name) if known else None
    return remembered or _inferred(name, values[name])


def _declared(name: str, postgres_type: str) -> Column:
    if not postgres_type.endswith(_LIST):
        return declared_column(name, postgres_type)
    element = declared_column(name, postgres_type.removesuffix(_LIST).strip())
    return Column(name, f"array<{element.spark_type}>", native_type=postgres_type)


def _values_by_name(records: Iterable[Record]) -> dict[str, list[Any]]:
    """NULLs are no values. What is no object has no columns: reading sets it aside."""
    values: dict[str, list[Any]] = {}
    for record in records:
        if isinstance(record.value, Mapping):
            for name, value in _DECODER.decode(record.text).items():
                found = values.setdefault(name, [])
                if value is not None:
                    found.append(value)
    return values


def _inferred(name: str, values: Sequence[Any]) -> Column:
    kinds = set(map(_kind, values))
    if kinds == {"nested"}:
        return Column(name, "string", native_type=_JSONB)
    return Column(name, _scalar_type(kinds, values) or "string")


def _kind(value: Any) -> str:
    match value:
        case dict() | list():
            return "nested"
        case bool():
            return "boolean"
        case _Number():
            return "number"
        case _:
            return "text"


def _scalar_type(kinds: set[str], values: Sequence[Any]) -> str | None:
    match sorted(kinds):
        case ["boolean"]:
            return "boolean"
        case ["number"]:
            type_ = type_of(signature(pa.array(list(map(str, values)), pa.string())))
            return type_ if type_ == decimal(MAX_PRECISION, 0) else with_room(type_)
        case ["text"]:
            return type_of(signature(pa.array(values, pa.string()), only_times=True))
        case _:
            return None
