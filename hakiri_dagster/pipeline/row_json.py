"""Rows as JSON that a jsonb column takes: it has neither NaN nor U+0000. Column by column, for there may be many."""

from __future__ import annotations

import json
import math

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as at


def rows_as_json(rows: pa.RecordBatch) -> list[str]:
    names = rows.schema.names
    columns = [_values(column) for column in rows.columns]
    return [json.dumps(dict(zip(names, row, strict=True)), ensure_ascii=False) for row in zip(*columns, strict=True)]


def _values(column: pa.Array) -> list[object]:
    kind = column.type
    if at.is_integer(kind) or at.is_boolean(kind):
        return list(column.to_pylist())
    if at.is_date(kind) or at.is_decimal(kind):
        return list(column.cast(pa.string()).to_pylist())
    if at.is_string(kind) and not pc.any(pc.match_substring(column, "\0")).as_py():
        return list(column.to_pylist())
    if at.is_timestamp(kind):
        return _moments(column)
    return [storable(value) for value in column.to_pylist()]


def _moments(column: pa.Array) -> list[object]:
    """Python knows no years before 1 and after 9999."""
    try:
        return [storable(value) for value in column.to_pylist()]
    except (OverflowError, ValueError):
        return list(column.cast(pa.string()).to_pylist())


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
