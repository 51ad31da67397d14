from __future__ import annotations

from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from hakiri_dagster.engine.spark_failures import translate_spark_errors
from hakiri_dagster.errors import SourceError
from hakiri_dagster.planning.columns import Column

from .conftest import Source

TYPES = (
    # column type, value, Spark's type, what the frame holds
    ("boolean", "true", "boolean", True),
    ("smallint", "-32768", "smallint", -32768),
    ("integer", "2147483647", "int", 2147483647),
    ("bigint", "9223372036854775807", "bigint", 9223372036854775807),
    ("oid", "4294967295", "bigint", 4294967295),
    ("real", "'nan'", "float", "nan"),
    ("double precision", "0.1", "double", 0.1),
    ("numeric(15,2)", "-12345.67", "decimal(15,2)", Decimal("-12345.67")),
    ("numeric(38,10)", "1234567890123456789012345678.0123456789", "decimal(38,10)",
     Decimal("1234567890123456789012345678.0123456789")),
    ("numeric(5,0)", "12", "decimal(5,0)", Decimal("12")),
    ("numeric(39,1)", "1.5", "string", "1.5"),
    ("numeric(3,-2)", "12300", "string", "12300"),
    ("numeric", "'NaN'", "string", "NaN"),
    ("numeric", "1.10", "string", "1.10"),
    ("money", "1234.5", "string", "$1,234.50"),
    ("date", "'0044-03-15 BC'", "date", -735160),
    ("date", "'2024-02-29'", "date", date(2024, 2, 29)),
    ("timestamp without time zone", "'2024-02-29 23:59:59.999999'", "timestamp_ntz",
     datetime(2024, 2, 29, 23, 59, 59, 999999)),
    ("timestamp with time zone", "'2024-02-29 23:59:59.999999+05'", "timestamp",
     datetime(2024, 2, 29, 18, 59, 59, 999999, tzinfo=UTC)),
    ("time without time zone", "'24:00'", "string", "24:00:00"),
    ("time with time zone", "'12:00+05:30'", "string", "12:00:00+05:30"),
    ("interval", "'1 mon 2 days 03:04:05.000006'", "string", "1 mon 2 days 03:04:05.000006"),
    ("text", "E'a\\nb\\tü€𝄞'", "string", "a\nb\tü€𝄞"),
    ("text", "''", "string", ""),
    ("character varying(20)", "'x'", "string", "x"),
    ("character(5)", "'x'", "string", "x    "),
    ('"char"', "'x'", "string", "x"),
    ("name", "'x'", "string", "x"),
    ("bytea", "'\\x00ff'", "binary", b"\x00\xff"),
    ("uuid", "'a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11'", "string", "a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11"),
    ("json", "'{\"a\":  1, \"a\": 2}'", "string", '{"a":  1, "a": 2}'),
    ("jsonb", "'{\"a\": 1e400}'", "string", '{"a": 1' + "0" * 400 + "}"),
    ("inet", "'10.0.0.1/8'", "string", "10.0.0.1/8"),
    ("cidr", "'10.0.0.0/8'", "string", "10.0.0.0/8"),
    ("macaddr", "'08:00:2b:01:02:03'", "string", "08:00:2b:01:02:03"),
    ("tstzrange", "'[2024-01-01 00:00+05,)'", "string", '["2023-12-31 19:00:00+00",)'),
    ("int4range", "'[1,5)'", "string", "[1,5)"),
    ("tsvector", "'a fat cat'", "string", "'a' 'cat' 'fat'"),
    ("bit(3)", "'101'", "string", "101"),
    ("point", "'(1,2)'", "string", "(1,2)"),
    ("integer[]", "'{{1,NULL},{3,4}}'", "string", "{{1,NULL},{3,4}}"),
    ("text[]", "ARRAY['a,b', NULL, 'NULL', '', '\"']", "string", '{"a,b",NULL,"NULL","","\\""}'),
    ("timestamp with time zone[]", "ARRAY['infinity'::timestamptz, '2024-01-01 00:00+01']", "string",
     '{infinity,"2023-12-31 23:00:00+00"}'),
)  # fmt: skip


def _value(array: pa.ChunkedArray) -> Any:
    if pa.types.is_date(array.type) and array.cast(pa.int32()).to_pylist()[0] < -719162:
        return array.cast(pa.int32()).to_pylist()[0]  # before Python's first year
    value = array.to_pylist()[0]
    return "nan" if value != value else value


def test_every_type_arrives_exactly_and_with_its_name(source: Source) -> None:
    columns = ", ".join(f"c{n} {kind}" for n, (kind, *_) in enumerate(TYPES))
    values = ", ".join(value for _, value, *_ in TYPES)
    nulls = ", ".join("NULL" for _ in TYPES)
    source.run(f"CREATE TABLE every ({columns})", f"INSERT INTO every VALUES ({values}), ({nulls})")

    schema = source.discover("every").schema
    rows = source.rows("every")

    assert schema is not None
    assert [(c.native_type, c.spark_type) for c in schema.columns] == [(t[0], t[2]) for t in TYPES]
    assert [_value(rows.column(n)) for n in range(len(TYPES))] == [t[3] for t in TYPES]
    assert rows.slice(1).to_pylist() == [{f"c{n}": None for n in range(len(TYPES))}]
    assert [f"{f.name} {f.dataType.simpleString()}" for f in source.read("every").frame.schema.fields] == [
        f"c{n} {t[2]}" for n, t in enumerate(TYPES)
    ]


def test_text_forms_do_not_depend_on_how_the_role_likes_them(source: Source) -> None:
    source.run(
        "CREATE TABLE t AS SELECT '1 mon'::interval AS i, '{2024-02-01 12:00+00}'::timestamptz[] AS a",
        "DO $$ BEGIN EXECUTE format('ALTER DATABASE %I SET intervalstyle = iso_8601', current_database()); END $$",
        "DO $$ BEGIN EXECUTE format('ALTER DATABASE %I SET datestyle = german', current_database()); END $$",
        "DO $$ BEGIN EXECUTE format('ALTER DATABASE %I SET timezone = ''Asia/Tokyo''', current_database()); END $$",
    )
    assert source.rows("t").to_pylist() == [{"i": "1 mon", "a": '{"2024-02-01 12:00:00+00"}'}]


def test_domains_are_what_they_are_made_of_and_foreign_types_travel_as_text(source: Source) -> None:
    source.run(
        "CREATE DOMAIN price AS numeric(10,2) NOT NULL",
        "CREATE DOMAIN net_price AS price CHECK (VALUE > 0)",
        "CREATE TYPE mood AS ENUM ('sad', 'ok')",
        "CREATE TYPE pair AS (a int, b text)",
        "CREATE TABLE t (p net_price, m mood, ms mood[], c pair)",
        "INSERT INTO t VALUES (1.5, 'ok', '{sad,NULL}', ROW(1, 'x y'))",
    )
    schema = source.discover("t").schema
    assert schema is not None
    assert schema.columns == (
        Column("p", "decimal(10,2)", True, "numeric(10,2)"),
        Column("m", "string", True, "public.mood"),
        Column("ms", "string", True, "public.mood[]"),
        Column("c", "string", True, "public.pair"),
    )
    assert source.rows("t").to_pylist() == [{"p": Decimal("1.50"), "m": "ok", "ms": "{sad,NULL}", "c": '(1,"x y")'}]


@pytest.mark.parametrize(
    ("kind", "value"),
    [
        ("timestamptz", "infinity"),
        ("timestamptz", "-infinity"),
        ("timestamp", "infinity"),
        ("date", "infinity"),
        ("date", "-infinity"),
        ("numeric(10,2)", "NaN"),
    ],
)
def test_a_value_that_spark_cannot_hold_stops_the_reading_or_travels_as_text(
    source: Source, kind: str, value: str
) -> None:
    source.run(f"CREATE TABLE t (id int, v {kind})", f"INSERT INTO t VALUES (1, NULL), (2, '{value}')")

    with (
        pytest.raises(SourceError, match=r"shop/orders: column 'v' .* holds") as raised,
        translate_spark_errors("shop/orders"),
    ):
        source.rows("t")
    assert raised.value.hint is not None
    assert 'text_columns = ["v"]' in raised.value.hint

    schema = source.discover("t", text_columns=["v"]).schema
    assert schema is not None
    assert schema.columns[1].spark_type == "string"
    assert source.rows("t", text_columns=["v"]).to_pylist() == [{"id": 1, "v": None}, {"id": 2, "v": value}]


@pytest.mark.parametrize(
    "value", ["4713-01-01 00:00:00 BC", "0001-01-01 00:00:00", "9999-12-31 23:59:59.999999", "294246-12-31 00:00:00"]
)
def test_times_outside_of_the_calendar_of_spark_arrive_as_the_same_instant(source: Source, value: str) -> None:
    source.run(f"CREATE TABLE t AS SELECT '{value}+00'::timestamptz AS at, '{value}'::timestamp AS plain")
    [(expected,)] = source.ask("SELECT (extract(epoch FROM at) * 1000000)::bigint FROM t")
    rows = source.rows("t")
    assert rows.column("at").cast(pa.int64()).to_pylist() == [expected]
    assert rows.column("plain").cast(pa.int64()).to_pylist() == [expected]
