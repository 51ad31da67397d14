"""How each PostgreSQL type travels: the Spark type that holds it exactly, else its own text form."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pyarrow as pa
from psycopg import sql

from hakiri_dagster.planning.chunks import CursorKind
from hakiri_dagster.planning.columns import Column

_WIDEST_DECIMAL = 38

_NATIVE = {
    "bool": "boolean",
    "int2": "smallint",
    "int4": "int",
    "int8": "bigint",
    "float4": "float",
    "float8": "double",
    "date": "date",
    "timestamp": "timestamp_ntz",
    "timestamptz": "timestamp",
    "text": "string",
    "varchar": "string",
    "bpchar": "string",
    "bytea": "binary",
}
_CURSORS: dict[str, CursorKind] = {
    "timestamp": "timestamp",
    "timestamptz": "timestamp",
    "date": "date",
    "int2": "numeric",
    "int4": "numeric",
    "int8": "numeric",
    "oid": "numeric",
    "numeric": "numeric",
}
_ARROW = {
    "boolean": pa.bool_(),
    "smallint": pa.int16(),
    "int": pa.int32(),
    "bigint": pa.int64(),
    "float": pa.float32(),
    "double": pa.float64(),
    "date": pa.date32(),
    "timestamp_ntz": pa.timestamp("us"),
    "timestamp": pa.timestamp("us", tz="UTC"),
    "string": pa.string(),
    "binary": pa.binary(),
}


@dataclass(frozen=True, slots=True)
class SourceColumn:
    """A column as the source's catalog tells it. `type` is the base type's name; domains are resolved.

    `builtin` is false for enums and types of extensions.
    """

    name: str
    type: str
    builtin: bool
    native: str
    typmod: int
    nullable: bool

    @classmethod
    def from_row(cls, row: dict[str, Any]) -> SourceColumn:
        return cls(**row)

    @property
    def cursor_kind(self) -> CursorKind | None:
        return _CURSORS.get(self.type) if self.builtin else None

    def as_column(self, *, as_text: bool) -> Column:
        spark_type = "string" if as_text else self._spark_type()
        return Column(self.name, spark_type, self.nullable, self.native)

    def _spark_type(self) -> str:
        if not self.builtin:
            return "string"
        if self.type == "numeric":
            return _decimal(self.typmod)
        return "bigint" if self.type == "oid" else _NATIVE.get(self.type, "string")


def _decimal(typmod: int) -> str:
    """Unconstrained numeric has no scale to keep; a negative scale, or one above the precision, Spark cannot say."""
    precision = ((typmod - 4) >> 16) & 0xFFFF
    scale = (((typmod - 4) & 0x7FF) ^ 0x400) - 0x400
    if typmod < 0 or precision > _WIDEST_DECIMAL or not 0 <= scale <= precision:
        return "string"
    return f"decimal({precision},{scale})"


def selection(column: Column) -> sql.Composable:
    """What is asked of the server for the column.

    Decimals travel as text: ADBC formats binary numerics at a quarter of the speed at which the server does.
    """
    name = sql.Identifier(column.name)
    native = (column.native_type or "").partition("(")[0].partition(" ")[0]
    if column.spark_type.startswith("decimal"):
        return sql.SQL("{}::text").format(name)
    if column.spark_type == "bigint" and native == "oid":
        return sql.SQL("{}::int8").format(name)
    if column.spark_type == "string" and native not in {"text", "character"}:
        return sql.SQL("{}::text").format(name)
    return name


def arrow_type(spark_type: str) -> pa.DataType:
    if spark_type.startswith("decimal"):
        precision, scale = spark_type[len("decimal(") : -1].split(",")
        return pa.decimal128(int(precision), int(scale))
    return _ARROW[spark_type]
