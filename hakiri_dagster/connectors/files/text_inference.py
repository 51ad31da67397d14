"""The types of columns of text, from one look at every value.

Each value has a signature, a set of bits that says which types could hold it; one aggregation unites the bits of a
column. Integers become `bigint` (or a decimal without places if they are longer), fractions exact decimals of 18 or
38 digits, longer or exponential ones `double`, then boolean, date, timestamps with and without a zone. All else is
text, and so is a column with a single value that begins with a superfluous zero: `02134` is a code, not a number.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812  # Spark's own convention

from hakiri_dagster.connectors.files.text_values import CLOCK, NOT_FINITE, ZONE
from hakiri_dagster.connectors.files.types import MAX_PRECISION, decimal, quoted

_INTEGER, _FRACTION, _DOUBLE, _BOOLEAN, _DATE, _ZONELESS, _ZONED, _TEXT, _LONG = (1 << n for n in range(9))
_SCALE_BIT, _MAX_SCALE = 10, 19
_DIGITS_BIT, _MAX_DIGITS = 30, 30
_LIKELY_LONG = 64
_MONEY_SCALE = 12
_DOUBLE_DIGITS = 18
"""The zero before the point counts, so these are 17 digits that matter: what a program prints of a double."""
_ROOM = 14
"""So that later, larger values still fit into 18 digits."""
_DAY = r"\d{4}-\d{2}-\d{2}"
_COLUMNS_A_JOB = 250

_WHOLE = r"^[+-]?(0|[1-9]\d{0,37})$"
_EXPONENTIAL = r"^[+-]?(\d+\.?\d*|\.\d+)[eE][+-]?\d+$"
_PLACES = r"^[+-]?(0|[1-9]\d{0,37})?\.\d+$"


def infer_types(texts: DataFrame, names: Sequence[str], only_times: Collection[str] = ()) -> Mapping[str, str | None]:
    """Spark types by column; None for one without a single value.

    `only_times`: columns of a format that has numbers of its own, so that only dates and timestamps hide in texts.
    """
    found: dict[str, str | None] = {}
    for start in range(0, len(names), _COLUMNS_A_JOB):
        part = names[start : start + _COLUMNS_A_JOB]
        signatures = [
            F.bit_or(_signature(F.col(quoted(name)), name in only_times)).alias(f"s{i}") for i, name in enumerate(part)
        ]
        row = texts.agg(*signatures).collect()[0]
        found |= {name: type_of(row[f"s{i}"]) for i, name in enumerate(part)}
    return found


def type_of(signature: int | None) -> str | None:
    if not signature:
        return None
    kinds = signature & ((1 << _SCALE_BIT) - 1)
    if kinds & ~(_INTEGER | _LONG) == 0:
        return "bigint" if not kinds & _LONG else decimal(MAX_PRECISION, 0)
    if kinds & ~(_INTEGER | _LONG | _FRACTION) == 0:
        return _decimal_type(signature)
    if kinds & ~(_INTEGER | _FRACTION | _DOUBLE) == 0:
        return "double"
    return {
        _BOOLEAN: "boolean",
        _DATE: "date",
        _ZONELESS: "timestamp_ntz",
        _DATE | _ZONELESS: "timestamp_ntz",
        _ZONED: "timestamp",
    }.get(kinds, "string")


def _decimal_type(signature: int) -> str:
    scale = _highest(signature >> _SCALE_BIT, _MAX_SCALE)
    digits = _highest(signature >> _DIGITS_BIT, _MAX_DIGITS)
    if digits >= _MAX_DIGITS:
        return "string"
    if scale >= _MAX_SCALE or digits + scale > MAX_PRECISION:
        return "double"
    if scale > _MONEY_SCALE and digits + scale <= _DOUBLE_DIGITS:
        return "double"
    return decimal(18 if digits + scale <= _ROOM else MAX_PRECISION, scale)


def _highest(bits: int, limit: int) -> int:
    return (bits & ((1 << (limit + 1)) - 1)).bit_length() - 1


def _signature(value: Column, only_times: bool) -> Column:
    """Cheap tests first: most texts are told by their first character."""
    text = F.trim(value)
    first = F.substring(text, 1, 1)
    numeric = F.lit(_TEXT) if only_times else _numeric(text)
    words = F.lit(_TEXT) if only_times else _words(text)
    return (
        F.when(text.isNull() | (text == ""), F.lit(None))
        .when(F.length(text) > _LIKELY_LONG, F.lit(_TEXT))
        .when(~first.rlike(r"[0-9+\-.]"), words)
        .when(text.rlike(rf"^{_DAY}"), _times(text))
        .otherwise(numeric)
        .cast("bigint")
    )


def _words(text: Column) -> Column:
    return (
        F.when(F.lower(text).isin("true", "false"), F.lit(_BOOLEAN))
        .when(text.rlike(f"^{NOT_FINITE}$"), F.lit(_DOUBLE))
        .otherwise(F.lit(_TEXT))
    )


def _times(text: Column) -> Column:
    return (
        F.when(text.try_cast("timestamp").isNull(), F.lit(_TEXT))
        .when(text.rlike(f"^{_DAY}$"), F.lit(_DATE))
        .when(text.rlike(f"^{_DAY}{CLOCK}$"), F.lit(_ZONELESS))
        .when(text.rlike(f"^{_DAY}{CLOCK}{ZONE}$"), F.lit(_ZONED))
        .otherwise(F.lit(_TEXT))
    )


def _numeric(text: Column) -> Column:
    fits_long = text.try_cast("bigint").isNotNull()
    digits = F.length(F.regexp_extract(text, r"^[+-]?(\d*)", 1))
    scale = F.length(F.regexp_extract(text, r"\.(\d*)$", 1))
    whole = F.lit(_INTEGER).cast("bigint").bitwiseOR(_bit(_DIGITS_BIT, digits, _MAX_DIGITS))
    fraction = (
        F.lit(_FRACTION)
        .cast("bigint")
        .bitwiseOR(_bit(_SCALE_BIT, scale, _MAX_SCALE))
        .bitwiseOR(_bit(_DIGITS_BIT, digits, _MAX_DIGITS))
    )
    return (
        F.when(text.rlike(_WHOLE) & fits_long, whole)
        .when(text.rlike(_WHOLE), whole.bitwiseOR(F.lit(_LONG).cast("bigint")))
        .when(text.rlike(_PLACES), fraction)
        .when(text.rlike(_EXPONENTIAL), F.lit(_DOUBLE).cast("bigint"))
        .otherwise(F.lit(_TEXT).cast("bigint"))
    )


def _bit(offset: int, count: Column, limit: int) -> Column:
    shift = F.least(count, F.lit(limit)) + F.lit(offset)
    return F.call_function("shiftleft", F.lit(1).cast("bigint"), shift)
