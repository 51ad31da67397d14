"""What a source's columns hold in Arrow, by Spark's words for their types, and which types are of one kind; asked
without a Spark."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

import pyarrow as pa
import pyarrow.types as at

from hakiri_dagster.planning.columns import Column

_PRECISION_OF_TIME = re.compile(r"^(timestamp(?:tz)?)\s*\(\s*\d\s*\)")
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

_TEXTS = frozenset({
    "text", "varchar", "character varying", "char", "character", "bpchar", '"char"', "citext", "name",
})  # fmt: skip
_NUMERICS = frozenset({"numeric", "decimal", "dec"})
_SEVERAL_TEXTS_A_VALUE = frozenset({
    "interval", "json", "jsonb", "xml", "point", "line", "lseg", "box", "path", "polygon", "circle", "tsquery",
    "numrange", "nummultirange",
})  # fmt: skip
_ARGUMENTS = re.compile(r"\([^)]*\)")


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
    return {column.name: kind_of(column) for column in columns}


def kind_of(column: Column) -> pa.DataType:
    """As the source has it: text that only stands for values of another type is not taken for text."""
    kind, native = arrow_type(column.spark_type), NativeText(column.native_type or "text")
    return native if is_text(kind) and native.base not in _TEXTS else kind


_WORDS: Mapping[pa.DataType, str] = {
    pa.bool_(): "boolean",
    pa.int8(): "smallint",
    pa.int16(): "smallint",
    pa.int32(): "integer",
    pa.int64(): "bigint",
    pa.float32(): "real",
    pa.float64(): "double precision",
    pa.null(): "always NULL",
}


def type_told(kind: pa.DataType) -> str:
    """In PostgreSQL's words, which are those of the target as well."""
    if isinstance(kind, NativeText):
        return kind.native
    if is_text(kind):
        return "text"
    if is_bytes(kind):
        return "bytea"
    if at.is_decimal(kind):
        return f"numeric({kind.precision},{kind.scale})"
    if at.is_timestamp(kind):
        return "timestamp" if kind.tz is None else "timestamptz"
    if at.is_date(kind):
        return "date"
    if at.is_time(kind):
        return "time"
    if at.is_duration(kind):
        return "interval"
    if is_list(kind):
        return f"{type_told(kind.value_type)}[]"
    return _WORDS.get(kind, "jsonb")


class NativeText(pa.ExtensionType):  # type: ignore[misc]  # pyarrow tells no types
    """Values of a PostgreSQL type that Spark lacks, as PostgreSQL writes them."""

    def __init__(self, native: str) -> None:
        self.native = native
        super().__init__(pa.string(), "hakiri.native_text")

    def __arrow_ext_serialize__(self) -> bytes:
        return self.native.encode()

    @classmethod
    def __arrow_ext_deserialize__(cls, storage_type: pa.DataType, serialized: bytes) -> NativeText:
        return cls(serialized.decode())

    @property
    def base(self) -> str:
        """Without its length or digits. That of an array ends with brackets."""
        name = _ARGUMENTS.sub("", self.native.lower()).strip()
        return "citext" if name.endswith(".citext") else name

    @property
    def has_one_text_a_value(self) -> bool:
        """Equal values are written alike. Types of one's own are taken for enums."""
        return self.base not in _SEVERAL_TEXTS_A_VALUE and not self.base.endswith("]")


def is_numeric_text(kind: pa.DataType) -> bool:
    """PostgreSQL's `numeric`, where it has more digits than Spark's decimals, or any number of them."""
    return isinstance(kind, NativeText) and kind.base in _NUMERICS


def has_texts(kind: pa.DataType) -> bool:
    """Of which each value is there as a text, whatever it stands for."""
    return is_text(kind) or isinstance(kind, NativeText)


def is_text(kind: pa.DataType) -> bool:
    return bool(at.is_string(kind) or at.is_large_string(kind) or at.is_string_view(kind))


def is_bytes(kind: pa.DataType) -> bool:
    return bool(
        at.is_binary(kind) or at.is_large_binary(kind) or at.is_fixed_size_binary(kind) or at.is_binary_view(kind)
    )


def is_number(kind: pa.DataType) -> bool:
    return bool(at.is_integer(kind) or at.is_floating(kind) or at.is_decimal(kind)) or is_numeric_text(kind)


def is_list(kind: pa.DataType) -> bool:
    return bool(at.is_list(kind) or at.is_large_list(kind) or at.is_fixed_size_list(kind))


def is_time(kind: pa.DataType) -> bool:
    return bool(at.is_date(kind) or at.is_timestamp(kind))


def is_scalar(kind: pa.DataType) -> bool:
    """A value that is one thing, which can be told from another by its bytes."""
    return (
        has_texts(kind)
        or is_bytes(kind)
        or is_number(kind)
        or is_time(kind)
        or bool(at.is_boolean(kind) or at.is_time(kind))
    )


def declares_precision(column: Column) -> bool:
    """Whether the manifest says to how many digits a timestamp is kept: `timestamp(3)`, `timestamptz(6)`."""
    return _PRECISION_OF_TIME.match(" ".join((column.native_type or "").lower().split())) is not None
