"""A column's profile in words, for tables that people read."""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal

from hakiri_dagster.quality.measures import Instant
from hakiri_dagster.quality.profile import ColumnProfile, Number

CELLS: Mapping[str, str] = {
    "column": "string", "type": "string", "nulls": "int", "null_ratio": "float", "distinct": "string",
    "min": "string", "max": "string", "mean": "float", "length": "string", "values": "string",
}  # fmt: skip
"""The cells of a row, and what they hold."""

_VALUES_SHOWN = 5
_SHOWN_CHARACTERS = 24


def cells(column: ColumnProfile) -> dict[str, str | int | float | None]:
    texts = column.texts
    low: Number | Instant | str | None = column.lowest if texts is None else texts.first
    high: Number | Instant | str | None = column.highest if texts is None else texts.last
    return {
        "column": column.name,
        "type": column.type,
        "nulls": column.nulls,
        "null_ratio": round(column.null_ratio, 6),
        "distinct": distinct_told(column),
        "min": None if low is None else bound_told(low),
        "max": None if high is None else bound_told(high),
        "mean": column.mean,
        "length": None if texts is None else f"{texts.shortest} to {texts.longest}",
        "values": values_told(column),
    }


def distinct_told(column: ColumnProfile) -> str | None:
    if column.distinct is None:
        return None
    return f"{column.distinct:,}" if column.distinct_is_exact else f"about {column.distinct:,}"


def bound_told(value: Number | Instant | str) -> str:
    match value:
        case str():
            return _short(value)
        case float() | Decimal():
            return f"{value:.10g}"
        case _:
            return str(value)


def values_told(column: ColumnProfile) -> str | None:
    """The most frequent, with their rows, unless each occurs once."""
    if not column.values or column.values[0][1] == 1:
        return None
    told = ", ".join(f"{_short(str(value))} ({rows:,})" for value, rows in column.values[:_VALUES_SHOWN])
    return told if len(column.values) <= _VALUES_SHOWN else f"{told}, …"


def _short(text: str) -> str:
    return text if len(text) <= _SHOWN_CHARACTERS else f"{text[: _SHOWN_CHARACTERS - 1]}…"
