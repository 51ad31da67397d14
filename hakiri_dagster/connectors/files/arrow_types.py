"""Arrow types, as pyarrow sees a footer, to what Spark must be asked for and how its answer becomes a value."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, assert_never

import pyarrow as pa
from pyspark.sql import Column
from pyspark.sql import functions as F  # noqa: N812  # Spark's own convention

from hakiri_dagster.connectors.files.orc_times import (
    BEFORE_1582,
    BEFORE_1970,
    FIRST_GREGORIAN_DAY,
    orc_nanoseconds,
    orc_timestamp,
)
from hakiri_dagster.connectors.files.types import decimal, quoted

Conversion = Literal[
    "none", "absent", "nanos", "nanos_utc", "int96", "orc", "orc_java", "orc_date", "time", "json", "uuid"
]


@dataclass(frozen=True, slots=True)
class FileColumn:
    """Spark reads `read_type` from the file; after `conversion` the value is of `spark_type`."""

    name: str
    read_type: str
    spark_type: str
    conversion: Conversion = "none"
    native_type: str | None = None

    @property
    def has_nanoseconds(self) -> bool:
        return self.conversion in ("nanos", "nanos_utc", "orc", "orc_java")

    @property
    def may_be_misread(self) -> bool:
        """Some values cannot be told for certain: `misread` says which."""
        return self.conversion in ("orc", "orc_date")


_PLAIN = {
    pa.bool_(): "boolean",
    pa.int8(): "tinyint",
    pa.int16(): "smallint",
    pa.int32(): "int",
    pa.int64(): "bigint",
    pa.uint8(): "smallint",
    pa.uint16(): "int",
    pa.uint32(): "bigint",
    pa.uint64(): "decimal(20,0)",
    pa.float32(): "float",
    pa.float64(): "double",
    pa.date32(): "date",
    pa.date64(): "date",
    pa.string(): "string",
    pa.large_string(): "string",
    pa.string_view(): "string",
    pa.binary(): "binary",
    pa.large_binary(): "binary",
    pa.binary_view(): "binary",
}


def file_column(name: str, arrow: pa.DataType, *, utc: bool = False) -> FileColumn | None:
    """`utc`: timestamps without a zone are instants all the same. None if Spark cannot read the type."""
    if isinstance(arrow, pa.UuidType):
        return FileColumn(name, "binary", "string", "uuid", native_type="uuid")
    if isinstance(arrow, pa.JsonType):
        return FileColumn(name, "string", "string", native_type="jsonb")
    if pa.types.is_null(arrow):
        return FileColumn(name, "int", "string", "absent")
    if pa.types.is_timestamp(arrow) and arrow.unit == "ns":
        instant = utc or arrow.tz is not None
        conversion: Conversion = "nanos_utc" if instant else "nanos"
        return FileColumn(name, "bigint", "timestamp" if instant else "timestamp_ntz", conversion)
    if pa.types.is_time64(arrow) and arrow.unit == "us":
        return FileColumn(name, "bigint", "string", "time", native_type="time")
    spark_type = _spark_type(arrow, utc)
    if spark_type is None:
        return None
    if "map<" in spark_type:
        return FileColumn(name, spark_type, "string", "json", native_type="jsonb")
    return FileColumn(name, spark_type, spark_type)


def alike_in_spark(arrow: pa.DataType) -> bool:
    """A cast within Arrow gives each value as Spark reads it."""
    types = pa.types
    if types.is_dictionary(arrow):
        return alike_in_spark(arrow.value_type)
    if types.is_timestamp(arrow):
        return bool(arrow.unit == "us")
    plain = arrow in _PLAIN and arrow not in (pa.uint64(), pa.date64())
    return plain or bool(types.is_decimal128(arrow))


def converted(column: FileColumn) -> Column:
    value = F.col(quoted(column.name))
    match column.conversion:
        case "none" | "int96" | "orc_date":
            return value
        case "absent":
            return F.lit(None).cast(column.spark_type)
        case "nanos_utc":
            return F.timestamp_micros(_floored_micros(value))
        case "nanos":
            return _epoch() + F.make_dt_interval(secs=_seconds(_floored_micros(value)))
        case "orc" | "orc_java":
            return orc_timestamp(value, by_java=column.conversion == "orc_java")
        case "time":
            return F.substring((_epoch() + F.make_dt_interval(secs=_seconds(value))).cast("string"), 12, 15)
        case "json":
            return as_json(value)
        case "uuid":
            return F.regexp_replace(F.lower(F.hex(value)), "^(.{8})(.{4})(.{4})(.{4})", "$1-$2-$3-$4-")
        case other:
            assert_never(other)


def truncates(column: FileColumn) -> Column | None:
    """Return whether a value has digits beyond microseconds; None for a column that cannot have any."""
    if not column.has_nanoseconds:
        return None
    return F.coalesce(_beyond_micros(column) != 0, F.lit(False))


def misread(column: FileColumn) -> tuple[Column, str] | None:
    """Return which values cannot be told for certain, and why; None for a column that has none of these."""
    value = F.col(quoted(column.name))
    match column.conversion:
        case "orc":
            return F.coalesce((value < 0) & (orc_nanoseconds(value) != 0), F.lit(False)), BEFORE_1970
        case "orc_date":
            return F.coalesce(value < FIRST_GREGORIAN_DAY, F.lit(False)), BEFORE_1582
        case _:
            return None


def with_nanoseconds(column: FileColumn) -> Column:
    """Return the text of a timestamp with all of its digits, for a column that the manifest declares as text."""
    whole = converted(column)
    all_digits = F.concat(
        F.date_format(whole, "yyyy-MM-dd HH:mm:ss.SSSSSS"), F.lpad(_beyond_micros(column).cast("string"), 3, "0")
    )
    return F.when(_beyond_micros(column) != 0, all_digits).otherwise(whole.cast("string"))


def _beyond_micros(column: FileColumn) -> Column:
    value = F.col(quoted(column.name))
    return F.pmod(value if column.conversion in ("nanos", "nanos_utc") else orc_nanoseconds(value), F.lit(1000))


def as_json(value: Column) -> Column:
    """Return a nested value as JSON with all that it holds; by itself Spark leaves out NULLs and cuts times to
    milliseconds."""
    fraction = "yyyy-MM-dd'T'HH:mm:ss.SSSSSS"
    options = {"ignoreNullFields": "false", "timestampFormat": f"{fraction}XXX", "timestampNTZFormat": fraction}
    return F.to_json(value, options)


def _floored_micros(nanos: Column) -> Column:
    """PostgreSQL keeps microseconds. Spark's division truncates towards zero, so before 1970 it would round up."""
    return F.floor(nanos / F.lit(1000).cast("decimal(4,0)")).cast("bigint")


def _seconds(micros: Column) -> Column:
    return (micros.cast("decimal(20,0)") / F.lit(1_000_000).cast("decimal(7,0)")).cast("decimal(18,6)")


def _epoch() -> Column:
    return F.lit("1970-01-01 00:00:00").cast("timestamp_ntz")


def _spark_type(arrow: pa.DataType, utc: bool) -> str | None:
    types = pa.types
    if arrow in _PLAIN:
        return _PLAIN[arrow]
    if types.is_dictionary(arrow):
        return _spark_type(arrow.value_type, utc)
    if types.is_decimal128(arrow) or types.is_decimal32(arrow) or types.is_decimal64(arrow):
        return decimal(arrow.precision, arrow.scale)
    if types.is_timestamp(arrow):
        return ("timestamp" if utc or arrow.tz is not None else "timestamp_ntz") if arrow.unit != "ns" else None
    if types.is_duration(arrow):
        return "bigint"
    if types.is_fixed_size_binary(arrow):
        return "binary"
    return _nested_type(arrow, utc)


def _nested_type(arrow: pa.DataType, utc: bool) -> str | None:
    types = pa.types
    if types.is_list(arrow) or types.is_large_list(arrow) or types.is_fixed_size_list(arrow):
        inner = _spark_type(arrow.value_type, utc)
        return f"array<{inner}>" if inner else None
    if types.is_map(arrow):
        key, item = _spark_type(arrow.key_type, utc), _spark_type(arrow.item_type, utc)
        return f"map<{key},{item}>" if key and item else None
    if types.is_struct(arrow):
        fields = [(field.name, _spark_type(field.type, utc)) for field in arrow]
        if all(inner for _, inner in fields):
            return "struct<" + ",".join(f"{quoted(name)}:{inner}" for name, inner in fields) + ">"
    return None
