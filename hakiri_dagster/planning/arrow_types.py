"""What a source's columns hold in Arrow, by Spark's words for their types, and which types are of one kind; asked
without a Spark."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import pyarrow as pa
import pyarrow.types as at

from hakiri_dagster.planning.columns import Column

_SCALARS: Mapping[str, pa.DataType] = {
    "string": pa.string(),
    "tinyint": pa.int8(),
    "byte": pa.int8(),
    "smallint": pa.int16(),
    "short": pa.int16(),
    "int": pa.int32(),
    "integer": pa.int32(),
    "bigint": pa.int64(),
    "long": pa.int64(),
    "float": pa.float32(),
    "real": pa.float32(),
    "double": pa.float64(),
    "boolean": pa.bool_(),
    "date": pa.date32(),
    "timestamp": pa.timestamp("us", "UTC"),
    "timestamp_ltz": pa.timestamp("us", "UTC"),
    "timestamp_ntz": pa.timestamp("us"),
    "binary": pa.binary(),
    "time": pa.time64("us"),
    "void": pa.null(),
}


def arrow_type(spark_type: str) -> pa.DataType:
    """What a column of a Spark DDL type holds in Arrow; structs and maps as an empty struct."""
    text = spark_type.strip().lower()
    if text.startswith("array<"):
        return pa.list_(arrow_type(text[6:-1]))
    if text.startswith(("struct<", "map<", "variant")):
        return pa.struct([])
    if text.startswith("interval"):
        return pa.duration("us")
    name, _, args = text.partition("(")
    if name in ("decimal", "dec", "numeric"):
        precision, _, scale = args.rstrip(")").partition(",")
        return pa.decimal128(int(precision or 10), int(scale or 0))
    return _SCALARS.get(name, pa.string())


def kinds_of(columns: Iterable[Column]) -> dict[str, pa.DataType]:
    return {column.name: arrow_type(column.spark_type) for column in columns}


def is_text(kind: pa.DataType) -> bool:
    return bool(at.is_string(kind) or at.is_large_string(kind) or at.is_string_view(kind))


def is_bytes(kind: pa.DataType) -> bool:
    return bool(
        at.is_binary(kind) or at.is_large_binary(kind) or at.is_fixed_size_binary(kind) or at.is_binary_view(kind)
    )


def is_number(kind: pa.DataType) -> bool:
    return bool(at.is_integer(kind) or at.is_floating(kind) or at.is_decimal(kind))


def is_list(kind: pa.DataType) -> bool:
    return bool(at.is_list(kind) or at.is_large_list(kind) or at.is_fixed_size_list(kind))


def is_time(kind: pa.DataType) -> bool:
    return bool(at.is_date(kind) or at.is_timestamp(kind))


def is_scalar(kind: pa.DataType) -> bool:
    """A value that is one thing, which can be told from another by its bytes."""
    return (
        is_text(kind)
        or is_bytes(kind)
        or is_number(kind)
        or is_time(kind)
        or bool(at.is_boolean(kind) or at.is_time(kind))
    )
