from __future__ import annotations

import pyarrow as pa
import pytest

from hakiri_dagster.destinations.postgres.catalog import stored_name
from hakiri_dagster.destinations.postgres.types import PgType, natural_type, parse_type
from hakiri_dagster.planning.arrow_types import arrow_type


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("numeric(15, 2)", PgType("numeric", (15, 2))),
        ("INT4", PgType("integer")),
        ("varchar(10)[]", PgType("character varying", (10,), 1)),
        ("timestamp(3) with time zone", PgType("timestamp with time zone", (3,))),
        ("double  precision", PgType("double precision")),
        ("char", PgType("character", (1,))),
        ("integer[][]", PgType("integer", (), 2)),
        ('app."Mood of day"', PgType('app."Mood of day"')),
    ],
)
def test_types_are_read_as_postgresql_spells_them(text: str, expected: PgType) -> None:
    assert parse_type(text) == expected


@pytest.mark.parametrize(
    "text",
    ["", "text; DROP TABLE x", "text DEFAULT 1", "text)", "int, evil int", "text --", "text/**/", "a.b.c", "numeric(x)",
     'text" int', "text\x00", "text NOT NULL", "text COLLATE x"],
)  # fmt: skip
def test_nothing_but_a_type_passes_for_a_type(text: str) -> None:
    assert parse_type(text) is None


@pytest.mark.parametrize(
    ("spark_type", "expected"),
    [
        ("string", "text"), ("tinyint", "smallint"), ("int", "integer"), ("bigint", "bigint"), ("float", "real"),
        ("double", "double precision"), ("decimal(15,2)", "numeric(15,2)"), ("boolean", "boolean"), ("date", "date"),
        ("timestamp", "timestamp with time zone"), ("timestamp_ntz", "timestamp without time zone"),
        ("binary", "bytea"), ("array<int>", "integer[]"), ("array<decimal(10,2)>", "numeric(10,2)[]"),
        ("array<array<int>>", "jsonb"), ("map<string,int>", "jsonb"), ("struct<a:int>", "jsonb"),
        ("array<struct<a:int>>", "jsonb"), ("varchar(10)", "text"), ("interval day to second", "interval"),
    ],
)  # fmt: skip
def test_each_spark_type_has_a_natural_home(spark_type: str, expected: str) -> None:
    assert str(natural_type(spark_type)) == expected


def test_spark_types_as_arrow() -> None:
    assert arrow_type("DECIMAL(38,18)") == pa.decimal128(38, 18)
    assert arrow_type("array<string>") == pa.list_(pa.string())


def test_names_are_cut_where_postgresql_cuts_them() -> None:
    assert stored_name("a" * 70) == "a" * 63
    assert stored_name("a" * 62 + "é") == "a" * 62
