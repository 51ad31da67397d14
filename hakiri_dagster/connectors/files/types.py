"""Spark types by name: what PostgreSQL's names mean to Spark, and which type holds the values of two."""

from __future__ import annotations

import re

from hakiri_dagster.errors import SourceError
from hakiri_dagster.planning.columns import Column

MAX_PRECISION = 38
FLOATS = ("float", "double")

_DECIMAL = re.compile(r"^decimal\((\d+),(\d+)\)$")
_NUMERIC = re.compile(r"^(?:numeric|decimal)\s*\(\s*(\d+)\s*(?:,\s*(\d+)\s*)?\)$")
_INTEGERS = ("tinyint", "smallint", "int", "bigint")
_DIGITS = {"tinyint": 3, "smallint": 5, "int": 10, "bigint": 19}
_POSTGRES = {
    "smallint": "smallint",
    "int2": "smallint",
    "integer": "int",
    "int": "int",
    "int4": "int",
    "serial": "int",
    "bigint": "bigint",
    "int8": "bigint",
    "bigserial": "bigint",
    "real": "float",
    "float4": "float",
    "double precision": "double",
    "float8": "double",
    "float": "double",
    "boolean": "boolean",
    "bool": "boolean",
    "date": "date",
    "timestamp": "timestamp_ntz",
    "timestamp without time zone": "timestamp_ntz",
    "timestamptz": "timestamp",
    "timestamp with time zone": "timestamp",
}
_PRECISION_OF_TIME = re.compile(r"^(timestamp(?:tz)?)\s*\(\s*\d\s*\)")
_TEXTS = frozenset({"text", "varchar", "char", "character varying", "character", "citext", "bpchar", "name"})


def declared_column(name: str, postgres_type: str) -> Column:
    """A column whose type the manifest declares. What Spark has no type for travels as text."""
    plain = " ".join(postgres_type.lower().split())
    numeric = _NUMERIC.match(plain)
    if numeric and int(numeric[1]) <= MAX_PRECISION and int(numeric[2] or 0) <= int(numeric[1]):
        return Column(name, decimal(int(numeric[1]), int(numeric[2] or 0)), native_type=postgres_type)
    plain = _PRECISION_OF_TIME.sub(r"\1", plain)
    return Column(name, _POSTGRES.get(plain, "string"), native_type=postgres_type)


def declared_text_column(name: str, postgres_type: str) -> Column:
    """A column of a text format whose type the manifest declares."""
    column = declared_column(name, postgres_type)
    if postgres_type.strip().lower() == "bytea":
        raise SourceError(
            f"column `{name}` is declared `bytea`, and files and records of text hold no bytes",
            hint=f"declare `{name}` as `text`, and decode it in the warehouse",
        )
    return column


def is_timestamp(spark_type: str) -> bool:
    return spark_type in ("timestamp", "timestamp_ntz")


def decimal(precision: int, scale: int) -> str:
    return f"decimal({precision},{scale})"


def decimal_parts(spark_type: str) -> tuple[int, int] | None:
    found = _DECIMAL.match(spark_type)
    return (int(found[1]), int(found[2])) if found else None


def is_integer(spark_type: str) -> bool:
    return spark_type in _INTEGERS


def is_number(spark_type: str) -> bool:
    return is_integer(spark_type) or spark_type in FLOATS or decimal_parts(spark_type) is not None


def is_text(postgres_type: str) -> bool:
    return postgres_type.lower().split("(")[0].strip() in _TEXTS


def can_become(spark_type: str, declared: str) -> bool:
    """Whether a cast between them has a meaning."""
    if spark_type == declared or "string" in (spark_type, declared):
        return True
    if is_number(spark_type):
        return is_number(declared) or (is_integer(spark_type) and declared == "boolean")
    if spark_type == "boolean":
        return is_integer(declared)
    return {spark_type, declared} <= {"date", "timestamp", "timestamp_ntz"}


def widened(one: str, other: str) -> str | None:
    """The type that holds every value of both exactly. None if there is none, or if it would change the meaning."""
    if one == other:
        return one
    if is_integer(one) and is_integer(other):
        return max(one, other, key=_INTEGERS.index)
    pair = {one, other}
    if pair == {"float", "double"}:
        return "double"
    if pair == {"date", "timestamp_ntz"}:
        return "timestamp_ntz"
    if "double" in pair and (pair - {"double"}).pop() in ("tinyint", "smallint", "int"):
        return "double"
    return _widened_decimal(one, other)


def _widened_decimal(one: str, other: str) -> str | None:
    parts = [_as_decimal(one), _as_decimal(other)]
    known = [part for part in parts if part is not None]
    if len(known) != len(parts):
        return None
    scale = max(scale for _, scale in known)
    precision = max(precision - scale_ for precision, scale_ in known) + scale
    return decimal(precision, scale) if precision <= MAX_PRECISION else None


def _as_decimal(spark_type: str) -> tuple[int, int] | None:
    return (_DIGITS[spark_type], 0) if is_integer(spark_type) else decimal_parts(spark_type)


def quoted(name: str) -> str:
    """Spark reads dots as struct access unless a name is quoted; a backtick in it is doubled."""
    return "`" + name.replace("`", "``") + "`"
