"""PostgreSQL's types as values: read from their text, and chosen for what a source holds."""

from __future__ import annotations

import re
from dataclasses import dataclass

import pyarrow as pa
from psycopg import sql

from hakiri_dagster.planning.arrow_types import arrow_type
from hakiri_dagster.planning.columns import Column

_ALIASES = {
    "int": "integer", "int4": "integer", "int2": "smallint", "int8": "bigint", "float4": "real",
    "float8": "double precision", "float": "double precision", "bool": "boolean", "decimal": "numeric",
    "varchar": "character varying", "char": "character", "bpchar": "character",
    "timestamptz": "timestamp with time zone", "timestamp": "timestamp without time zone",
    "timetz": "time with time zone", "time": "time without time zone", "varbit": "bit varying",
}  # fmt: skip

_SHAPE = re.compile(
    r"""^\s*
    (?P<name>(?:"[^"\x00]+"|[^\W\d]\w*)(?:\.(?:"[^"\x00]+"|[^\W\d]\w*))?(?:\s+(?:varying|precision))?)
    \s*(?:\(\s*(?P<args>-?\d+(?:\s*,\s*-?\d+)?)\s*\))?
    (?P<zone>\s+with(?:out)?\s+time\s+zone)?
    \s*(?P<array>(?:\[\d*\]\s*)*)$""",
    re.VERBOSE | re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class PgType:
    """`numeric(15,2)[]` is name `numeric`, args (15, 2), dimensions 1."""

    name: str
    args: tuple[int, ...] = ()
    dimensions: int = 0

    @property
    def element(self) -> PgType:
        return PgType(self.name, self.args)

    def __str__(self) -> str:
        args = f"({','.join(map(str, self.args))})" if self.args else ""
        head, zone, tail = self.name.partition(" with")
        return f"{head}{args}{zone}{tail}{'[]' * self.dimensions}"


def parse_type(text: str) -> PgType | None:
    """None for what is not the plain spelling of a type: what passes holds nothing else and is safe in DDL."""
    match = _SHAPE.match(text)
    if match is None:
        return None
    name = match["name"] if '"' in match["name"] else " ".join(match["name"].lower().split())
    args = tuple(int(arg) for arg in match["args"].split(",")) if match["args"] else ()
    if match["zone"]:
        name = f"{name} {' '.join(match['zone'].lower().split())}"
    dimensions = match["array"].count("[")
    if name == "character" or name in ("char", "bpchar"):
        args = args or ((1,) if name != "bpchar" else ())
    if name == "float" and args:
        return PgType("real" if args[0] <= 24 else "double precision", (), dimensions)
    return PgType(_ALIASES.get(name, name), args, dimensions)


def type_in_ddl(text: str) -> sql.SQL:
    if parse_type(text) is None:
        raise ValueError(f"not a type: {text}")
    return sql.SQL(text)  # parse_type lets nothing but a type's spelling pass


_NATURAL: dict[str, str] = {
    "string": "text",
    "tinyint": "smallint",
    "byte": "smallint",
    "smallint": "smallint",
    "short": "smallint",
    "int": "integer",
    "integer": "integer",
    "bigint": "bigint",
    "long": "bigint",
    "float": "real",
    "real": "real",
    "double": "double precision",
    "boolean": "boolean",
    "date": "date",
    "timestamp": "timestamp with time zone",
    "timestamp_ltz": "timestamp with time zone",
    "timestamp_ntz": "timestamp without time zone",
    "binary": "bytea",
    "time": "time without time zone",
    "void": "text",
}


def natural_type(spark_type: str) -> PgType:
    """The type a new target column gets when neither the manifest nor a PostgreSQL source names one."""
    arrow = arrow_type(spark_type)
    if pa.types.is_list(arrow):
        inner = arrow.value_type
        if pa.types.is_nested(inner):
            return PgType("jsonb")
        element = natural_type(spark_type.strip()[6:-1])
        return PgType(element.name, element.args, 1)
    if pa.types.is_struct(arrow):
        return PgType("jsonb")
    if pa.types.is_decimal(arrow):
        return PgType("numeric", (arrow.precision, arrow.scale))
    if pa.types.is_duration(arrow):
        return PgType("interval")
    name = spark_type.strip().lower().partition("(")[0]
    return PgType(_NATURAL.get(name, "text"))


def wanted_type(column: Column, declared: str | None) -> str:
    """The manifest's word, else a PostgreSQL source's own type, else the natural one."""
    return declared or column.native_type or str(natural_type(column.spark_type))
