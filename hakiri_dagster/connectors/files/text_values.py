"""Text to typed values. What cannot be parsed exactly is told, never rounded, guessed or turned into NULL.

Spark's own casts would read `2024` as the first of January, `12:00` as noon of today, `1d` and `0x1p3` as
numbers, `1e999` as infinity, and would round `1.239` to two places. Hence a pattern before each cast.
"""

from __future__ import annotations

from dataclasses import dataclass

from pyspark.sql import Column
from pyspark.sql import functions as F  # noqa: N812  # Spark's own convention

from hakiri_dagster.connectors.files.types import decimal_parts, is_timestamp

YEAR = r"(?:[1-9]\d{3}|\d[1-9]\d{2}|\d{2}[1-9]\d|\d{3}[1-9])"
"""There is no year 0."""
DATE = rf"(?:{YEAR}|[1-9]\d{{4,5}})-\d{{1,2}}-\d{{1,2}}"
CLOCK = r"[ T]\d{1,2}:\d{1,2}(:\d{1,2}(\.\d{1,9})?)?"
ZONE = r" ?(Z|UTC|GMT|[+-]\d{1,2}(:?\d{2})?)"
NUMBER = r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?"
SUB_MICROSECONDS = r"\.\d{6}0*[1-9]"
_SHORTEST_WITH_NANOS = len("2024-1-2 3:4:5.0000001")
NOT_ZERO = r"^[^eE]*[1-9]"
NOT_FINITE = r"[+-]?(?i:nan|inf|infinity)"


@dataclass(frozen=True, slots=True)
class Parsed:
    """`failed` is None where nothing can fail: the text itself is the value. `truncated` is true where a timestamp has
    digits beyond microseconds, which `value` has not; None where it cannot have any."""

    value: Column
    failed: Column | None
    truncated: Column | None = None
    reason: str | None = None
    """Why a value fails, where its type does not say it."""


def parse(text: Column, spark_type: str) -> Parsed:
    """`text` is NULL where the source has no value."""
    if spark_type == "string":
        return Parsed(text, None)
    trimmed = F.trim(text)
    value, allowed = trimmed.try_cast(spark_type), _allowed(trimmed, spark_type)
    # An empty text is no value of any type but text: `""` in a column of numbers means NULL.
    failed = (trimmed != "") & (value.isNull() | ~allowed)
    return Parsed(F.when(allowed, value), failed, sub_microseconds(trimmed, spark_type))


def sub_microseconds(text: Column, spark_type: str) -> Column | None:
    """Return whether the text of a timestamp has digits beyond microseconds other than zeros."""
    if not is_timestamp(spark_type):
        return None
    return F.coalesce((F.length(text) >= _SHORTEST_WITH_NANOS) & text.rlike(SUB_MICROSECONDS), F.lit(False))


def _allowed(text: Column, spark_type: str) -> Column:
    match spark_type:
        case "date":
            return _like(text, DATE)
        case "timestamp":
            return _like(text, f"{DATE}({CLOCK}({ZONE})?)?")
        case "timestamp_ntz":
            # A zone would be dropped in silence.
            return _like(text, f"{DATE}({CLOCK})?")
        case "float" | "double":
            return (_like(text, NUMBER) & is_in_range(text, text.try_cast(spark_type))) | _like(text, NOT_FINITE)
        case _:
            parts = decimal_parts(spark_type)
            return F.lit(True) if parts is None else _like(text, _places(parts[1]))


def is_in_range(text: Column, value: Column) -> Column:
    """Whether a number is neither too large for its type of floats, nor so small that only zero is left of it."""
    return ~F.abs(value).eqNullSafe(float("inf")) & ~(value.eqNullSafe(0.0) & text.rlike(NOT_ZERO))


def _places(scale: int) -> str:
    """Digits with at most so many places; superfluous zeros may follow."""
    return rf"[+-]?(\d+(\.\d{{0,{scale}}}0*)?|\.\d{{1,{max(scale, 1)}}}0*)"


def _like(text: Column, pattern: str) -> Column:
    return text.rlike(f"^(?:{pattern})$")
