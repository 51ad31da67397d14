"""What an Arrow column becomes on the wire for a target type: one table of what fits into what.

`plan` reads it to refuse a load before any row moves, the workers read it to cast the rows; so the two cannot drift.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

import pyarrow as pa
import pyarrow.types as at

from hakiri_dagster.destinations.postgres.types import PgType
from hakiri_dagster.planning.arrow_types import is_bytes, is_list, is_number, is_text

Kind = Literal[
    "integer", "float", "numeric", "boolean", "text", "date", "timestamp", "timestamptz", "bytea", "uuid", "json",
    "interval", "time", "other",
]  # fmt: skip

KINDS: Mapping[str, Kind] = {
    "smallint": "integer", "integer": "integer", "bigint": "integer",
    "real": "float", "double precision": "float",
    "numeric": "numeric", "boolean": "boolean",
    "text": "text", "character varying": "text", "character": "text", "name": "text", "citext": "text",
    "enum": "text", "date": "date", "bytea": "bytea", "uuid": "uuid", "json": "json", "jsonb": "json",
    "timestamp without time zone": "timestamp", "timestamp with time zone": "timestamptz",
    "interval": "interval", "time without time zone": "time",
}  # fmt: skip

_INTEGERS: Mapping[str, pa.DataType] = {"smallint": pa.int16(), "integer": pa.int32(), "bigint": pa.int64()}

_ARROW_DIGITS = 38
INTEGER_AS_DECIMAL = pa.decimal128(20, 0)

# pgpq writes the element type's oid with an array, and PostgreSQL compares it: no varchar[], no timestamptz[]
_BINARY_ELEMENTS = frozenset(
    {"smallint", "integer", "bigint", "real", "double precision", "boolean", "text", "numeric", "date", "bytea",
     "timestamp without time zone"}
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Wire:
    """The Arrow type handed to the encoder, and whether binary COPY carries it exactly."""

    type: pa.DataType
    binary: bool = True


def kind_of(target: PgType) -> Kind:
    return KINDS.get(target.name, "other")


def wire_for(source: pa.DataType, target: PgType) -> Wire | None:
    """None when values of the source's type cannot be stored in the target's."""
    if at.is_dictionary(source):
        source = source.value_type
    if target.dimensions:
        return _array_wire(source, target)
    if at.is_null(source):
        return wire_for(pa.string(), target)
    match kind_of(target):
        case "integer":
            return Wire(_INTEGERS[target.name]) if is_number(source) or is_text(source) else None
        case "float":
            wire = pa.float32() if target.name == "real" else pa.float64()
            return Wire(wire) if is_number(source) or is_text(source) else None
        case "numeric":
            return _numeric_wire(source, target)
        case "boolean":
            return Wire(pa.bool_()) if at.is_boolean(source) or is_text(source) else None
        case "text":
            return Wire(pa.string()) if not is_bytes(source) else None
        case "date":
            return Wire(pa.date32()) if at.is_date(source) or at.is_timestamp(source) or is_text(source) else None
        case "timestamp" | "timestamptz" as kind:
            stamp = pa.timestamp("us", "UTC" if kind == "timestamptz" else None)
            return Wire(stamp) if at.is_date(source) or at.is_timestamp(source) or is_text(source) else None
        case "bytea":
            return Wire(pa.binary()) if is_bytes(source) else None
        case "uuid":
            return Wire(pa.binary(16)) if is_text(source) or source == pa.binary(16) else None
        case "json":
            return Wire(pa.string()) if not (is_bytes(source) or at.is_temporal(source)) else None
        case "interval":
            if at.is_duration(source):
                return Wire(pa.duration("us"))
            return Wire(pa.string(), binary=False) if is_text(source) else None
        case "time":
            if at.is_time(source):
                return Wire(pa.time64("us"))
            return Wire(pa.string(), binary=False) if is_text(source) else None
        case "other":
            return Wire(pa.string(), binary=False) if not (is_bytes(source) or at.is_nested(source)) else None


def _numeric_wire(source: pa.DataType, target: PgType) -> Wire | None:
    if at.is_decimal128(source) or at.is_integer(source):
        exact = INTEGER_AS_DECIMAL if at.is_integer(source) else source
        if not target.args:
            return Wire(exact)
        precision, scale = precision_and_scale(target)
        if precision <= _ARROW_DIGITS:
            return Wire(pa.decimal128(precision, scale))
        return Wire(pa.decimal128(_ARROW_DIGITS, min(scale, exact.scale)))
    if is_number(source) or is_text(source):
        return Wire(pa.string(), binary=False)
    return None


def _array_wire(source: pa.DataType, target: PgType) -> Wire | None:
    if is_text(source) or at.is_null(source):
        return Wire(pa.string(), binary=False)
    if not is_list(source):
        return None
    innermost = source.value_type
    inner = _array_wire(innermost, target) if is_list(innermost) else wire_for(innermost, target.element)
    if inner is None:
        return None
    binary = inner.binary and target.name in _BINARY_ELEMENTS and not is_list(innermost)
    return Wire(pa.list_(inner.type), binary)


def precision_and_scale(target: PgType) -> tuple[int, int]:
    return (target.args[0], target.args[1] if len(target.args) > 1 else 0)
