"""The types that sources speak of, as values: Spark's and PostgreSQL's words for one type are one, and some types hold
all values of others."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from hakiri_dagster.planning.columns import Column

_SHAPE: Final = re.compile(
    r"""^(?P<name>[^()\[\]]+?)\s*
    (?:\(\s*(?P<size>\d+)\s*(?:,\s*(?P<scale>-?\d+)\s*)?\))?
    (?P<zone>\s+with(?:out)?\s+time\s+zone)?
    \s*(?P<array>(?:\[\d*\]\s*)*)$""",
    re.VERBOSE | re.IGNORECASE,
)

_POSTGRES: Final[Mapping[str, str]] = {
    "int": "integer", "int4": "integer", "serial": "integer", "int2": "smallint", "int8": "bigint",
    "bigserial": "bigint", "float4": "real", "float8": "double precision", "float": "double precision",
    "bool": "boolean", "decimal": "numeric", "varchar": "character varying", "char": "character",
    "bpchar": "character", "timestamptz": "timestamp with time zone", "timestamp": "timestamp without time zone",
    "timetz": "time with time zone", "time": "time without time zone", "varbit": "bit varying",
}  # fmt: skip
_SPARK: Final[Mapping[str, str]] = {
    "string": "text", "void": "text", "tinyint": "smallint", "byte": "smallint", "short": "smallint",
    "int": "integer", "long": "bigint", "float": "real", "double": "double precision", "decimal": "numeric",
    "dec": "numeric", "binary": "bytea", "timestamp": "timestamp with time zone",
    "timestamp_ltz": "timestamp with time zone", "timestamp_ntz": "timestamp without time zone",
    "time": "time without time zone",
}  # fmt: skip
_INTEGER_DIGITS: Final[Mapping[str, int]] = {"smallint": 5, "integer": 10, "bigint": 19}
_EXACT_IN: Final[Mapping[str, frozenset[str]]] = {
    "real": frozenset({"smallint"}),
    "double precision": frozenset({"smallint", "integer", "real"}),
    "timestamp without time zone": frozenset({"date"}),
    "text": frozenset({"character varying", "character"}),
    "character varying": frozenset({"character"}),
    "inet": frozenset({"cidr"}),
    "bit varying": frozenset({"bit"}),
}
_SECONDS_DIGITS: Final = 6
_REAL_BITS: Final = 24
_TIMED: Final = ("timestamp", "time", "interval")


@dataclass(frozen=True, slots=True)
class SourceType:
    """`name` is PostgreSQL's; `size` are characters, digits or digits of seconds, None where nothing bounds them."""

    name: str
    size: int | None = None
    scale: int = 0
    is_array: bool = False

    def __str__(self) -> str:
        sized = (
            "" if self.size is None else f"({self.size},{self.scale})" if self.name == "numeric" else f"({self.size})"
        )
        head, zone, tail = self.name.partition(" with")
        return f"{head}{sized}{zone}{tail}{'[]' if self.is_array else ''}"


def type_of(column: Column) -> SourceType:
    return postgres_type(column.native_type) if column.native_type else spark_type(column.spark_type)


def postgres_type(text: str) -> SourceType:
    """What is no plain spelling is a type of its own, which holds itself alone."""
    return _parsed(text, _POSTGRES)


def spark_type(text: str) -> SourceType:
    """Spark's nested types are documents to us."""
    plain = text.strip().lower()
    if plain.startswith("array<"):
        inner = spark_type(plain[len("array<") : -1])
        return inner if inner.name == "jsonb" else SourceType(inner.name, inner.size, inner.scale, is_array=True)
    if plain.startswith(("struct<", "map<", "variant")):
        return SourceType("jsonb")
    if plain.startswith("interval"):
        return SourceType("interval")
    return _parsed(plain, _SPARK)


def _parsed(text: str, words: Mapping[str, str]) -> SourceType:
    found = _SHAPE.match(text.strip())
    if found is None or '"' in text:
        return SourceType(text.strip())
    written = " ".join(found["name"].lower().split())
    if found["zone"]:
        written = f"{written} {' '.join(found['zone'].lower().split())}"
    name = words.get(written, written)
    size = None if found["size"] is None else int(found["size"])
    scale = int(found["scale"] or 0)
    is_array = bool(found["array"])
    if written in ("char", "character", "bit") and size is None:
        size = 1
    if name in ("real", "double precision") and size is not None:
        return SourceType("real" if size <= _REAL_BITS else "double precision", is_array=is_array)
    if name.startswith(_TIMED) and size == _SECONDS_DIGITS:
        size = None
    return SourceType(name, size, scale if name == "numeric" else 0, is_array)


def holds(wide: SourceType, narrow: SourceType) -> bool:
    """Every value of the narrow type is a value of the wide one, exactly and with the same meaning."""
    if wide.is_array != narrow.is_array:
        return False
    if wide.name == narrow.name:
        return _as_large(wide, narrow)
    if wide.name in _INTEGER_DIGITS and narrow.name in _INTEGER_DIGITS:
        return _INTEGER_DIGITS[wide.name] >= _INTEGER_DIGITS[narrow.name]
    if wide.name == "numeric" and narrow.name in _INTEGER_DIGITS:
        return wide.size is None or wide.size - wide.scale >= _INTEGER_DIGITS[narrow.name]
    if {wide.name, narrow.name} == {"json", "jsonb"}:
        return True
    if narrow.name not in _EXACT_IN.get(wide.name, ()):
        return False
    return wide.size is None or narrow.name == "date" or (narrow.size is not None and narrow.size <= wide.size)


def _as_large(wide: SourceType, narrow: SourceType) -> bool:
    if wide.size is None:
        return True
    if narrow.size is None:
        return False
    if wide.name == "numeric":
        return wide.scale >= narrow.scale and wide.size - wide.scale >= narrow.size - narrow.scale
    return wide.size == narrow.size if wide.name == "bit" else wide.size >= narrow.size
