"""Rows as JSON that a jsonb column takes: it has neither NaN nor U+0000. Whole columns at a time, for all rows may
have to be told; never so many rows at once that their texts take much memory."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as at

_BYTES_AT_ONCE = 4 * 1024 * 1024
_CONTROLS = r"[\x00-\x1f]"

_encoded = json.JSONEncoder(ensure_ascii=False).encode


def rows_as_json(rows: pa.RecordBatch) -> Iterator[str]:
    at_once = max(1, rows.num_rows * _BYTES_AT_ONCE // max(rows.nbytes, 1))
    for start in range(0, rows.num_rows, at_once):
        yield from _objects(rows.slice(start, at_once)).to_pylist()


def _objects(rows: pa.RecordBatch) -> pa.Array:
    pieces: list[pa.Array | str] = []
    for name, column in zip(rows.schema.names, rows.columns, strict=True):
        pieces += [f"{', ' if pieces else '{'}{_encoded(name)}: ", _values(column)]
    return pc.binary_join_element_wise(*pieces, "}", "")


def _values(column: pa.Array) -> pa.Array:
    """Each as JSON text."""
    kind = column.type
    if at.is_integer(kind) or at.is_boolean(kind):
        return pc.fill_null(column.cast(pa.string()), "null")
    if at.is_date(kind) or at.is_decimal(kind):
        return _quoted(column.cast(pa.string()))
    if at.is_string(kind) and not pc.any(pc.match_substring_regex(column, _CONTROLS)).as_py():
        return _quoted(pc.replace_substring(pc.replace_substring(column, "\\", "\\\\"), '"', '\\"'))
    if at.is_timestamp(kind):
        return _moments(column)
    return _one_by_one(column)


def _one_by_one(column: pa.Array) -> pa.Array:
    return pa.array([_encoded(storable(value)) for value in column.to_pylist()], pa.string())


def _quoted(texts: pa.Array) -> pa.Array:
    return pc.fill_null(pc.binary_join_element_wise('"', texts, '"', ""), "null")


def _moments(column: pa.Array) -> pa.Array:
    """Python knows no years before 1 and after 9999."""
    try:
        return _one_by_one(column)
    except (OverflowError, ValueError):
        return _quoted(column.cast(pa.string()))


def storable(value: object) -> object:
    match value:
        case None | bool() | int():
            return value
        case float():  # numbers of jsonb have no negative zero
            return value if math.isfinite(value) and (value or math.copysign(1, value) > 0) else str(value)
        case str():
            return value.replace("\x00", "\\u0000")
        case bytes():
            return value.hex()
        case dict():
            return {str(storable(key)): storable(item) for key, item in value.items()}
        case list() | tuple():
            return [storable(item) for item in value]
        case _:
            return str(value)
