"""Values as PostgreSQL reads them in text: for text COPY, and for text columns of the target."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterator
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as at

from hakiri_dagster.planning.arrow_types import is_bytes, is_list

_BEFORE_CHRIST = r"^(-\d|0000)"


def text_of(array: pa.Array) -> pa.Array:
    """As strings that the column's input function takes; NULL stays NULL."""
    kind = array.type
    if at.is_string(kind):
        return array
    if is_bytes(kind):
        prefix = "" if at.is_fixed_size_binary(kind) else "\\x"
        return _each(array, lambda value: prefix + value.hex())
    if at.is_duration(kind):
        return _each(array.cast(pa.duration("us")).cast(pa.int64()), lambda value: f"{value} microseconds")
    if at.is_timestamp(kind) or at.is_date(kind):
        return _with_era(array.cast(pa.string()))
    if is_list(kind):
        return pa.array(_literals(array), pa.string())
    if at.is_nested(kind):
        return json_of(array)
    return array.cast(pa.string())


def _each(array: pa.Array, convert: Callable[[Any], str]) -> pa.Array:
    return pa.array([None if value is None else convert(value) for value in array.to_pylist()], pa.string())


def _with_era(texts: pa.Array) -> pa.Array:
    """Arrow has a year 0 and negative years, PostgreSQL writes them `0001-… BC`."""
    before = pc.match_substring_regex(texts, _BEFORE_CHRIST)
    if not pc.any(before).as_py():
        return texts
    values = texts.to_pylist()
    for index, old in enumerate(before.to_pylist()):
        if old:
            values[index] = _in_era(values[index])
    return pa.array(values, pa.string())


def _in_era(text: str) -> str:
    head = text.index("-", 1)
    return f"{1 - int(text[:head]):04d}{text[head:]} BC"


def _literals(array: pa.Array) -> Iterator[str | None]:
    """`{"a",NULL}`; inner arrays go in as they are, scalars always quoted."""
    inner = array.flatten()
    items = _literals(inner) if is_list(inner.type) else map(_quoted, text_of(inner).to_pylist())
    pieces = iter(items)
    for length in pc.list_value_length(array).to_pylist():
        if length is None:
            yield None
        else:
            yield "{" + ",".join(next(pieces) or "NULL" for _ in range(length)) + "}"


def _quoted(text: str | None) -> str:
    if text is None:
        return "NULL"
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'


def json_of(array: pa.Array) -> pa.Array:
    """Nested and scalar values as JSON text."""
    texts = ["".join(_json(value)) if value is not None else None for value in array.to_pylist(maps_as_pydicts=None)]
    return pa.array(texts, pa.string())


def _json(value: Any) -> Iterator[str]:
    """By hand, because the json module cannot write a Decimal without loss."""
    match value:
        case Decimal():
            yield str(value) if value.is_finite() else f'"{value}"'
        case float() if not math.isfinite(value):
            yield f'"{value}"'
        case None | bool() | int() | float() | str():
            yield json.dumps(value, ensure_ascii=False)
        case bytes():
            yield json.dumps(value.hex())
        case dict():
            yield from _json_object(value.items())
        case list() if value and all(isinstance(item, tuple) for item in value):
            yield from _json_object(value)
        case list():
            for index, item in enumerate(value):
                yield "," if index else "["
                yield from _json(item)
            yield "]" if value else "[]"
        case _:
            yield json.dumps(value.isoformat() if hasattr(value, "isoformat") else str(value))


def _json_object(items: Any) -> Iterator[str]:
    yield "{"
    for index, (key, item) in enumerate(items):
        yield f"{',' if index else ''}{json.dumps(str(key), ensure_ascii=False)}:"
        yield from _json(item)
    yield "}"
