from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hakiri_dagster.planning.columns import Column
from hakiri_dagster.planning.source_types import holds, postgres_type, spark_type, type_of

WIDER = [
    ("smallint", "integer"), ("integer", "bigint"), ("smallint", "bigint"), ("bigint", "numeric(19,0)"),
    ("integer", "numeric(12,2)"), ("bigint", "numeric"), ("real", "double precision"), ("integer", "double precision"),
    ("numeric(10,2)", "numeric(12,2)"), ("numeric(10,2)", "numeric(12,4)"), ("numeric(10,2)", "numeric"),
    ("varchar(10)", "varchar(20)"), ("varchar(10)", "text"), ("varchar(10)", "varchar"), ("char(3)", "varchar(3)"),
    ("date", "timestamp"), ("timestamp(3)", "timestamp"), ("timestamp(0) with time zone", "timestamptz"),
    ("time(3)", "time"), ("cidr", "inet"), ("bit(4)", "varbit(8)"), ("integer[]", "bigint[]"), ("char(3)", "char(5)"),
]  # fmt: skip
APART = [
    ("bigint", "text"), ("uuid", "text"), ("timestamp", "timestamptz"), ("date", "timestamptz"), ("boolean", "integer"),
    ("bigint", "double precision"), ("numeric(10,2)", "double precision"), ("numeric(10,4)", "numeric(12,2)"),
    ("integer", "integer[]"), ("jsonb", "text"), ("public.mood", "text"), ("bytea", "text"), ("bit(4)", "bit(8)"),
    ("bigint", "numeric(18,0)"), ('"We ird"', "text"),
]  # fmt: skip


@pytest.mark.parametrize(("narrow", "wide"), WIDER)
def test_a_wider_type_holds_a_narrower_one_and_not_the_reverse(narrow: str, wide: str) -> None:
    assert holds(postgres_type(wide), postgres_type(narrow))
    assert not holds(postgres_type(narrow), postgres_type(wide))


@pytest.mark.parametrize(("one", "other"), APART)
def test_types_that_mean_something_else_hold_nothing_of_each_other(one: str, other: str) -> None:
    assert not holds(postgres_type(one), postgres_type(other))
    assert not holds(postgres_type(other), postgres_type(one))


@pytest.mark.parametrize(
    ("spark", "postgres"),
    [
        ("string", "text"), ("int", "int4"), ("bigint", "int8"), ("float", "real"), ("double", "float8"),
        ("decimal(15,2)", "numeric(15,2)"), ("timestamp", "timestamptz"), ("timestamp_ntz", "timestamp(6)"),
        ("array<int>", "integer[]"), ("struct<a:int>", "jsonb"), ("map<string,int>", "json"), ("binary", "bytea"),
        ("array<struct<a:int>>", "jsonb"), ("tinyint", "smallint"), ("interval day to second", "interval"),
    ],
)  # fmt: skip
def test_spark_and_postgresql_have_two_words_for_one_type(spark: str, postgres: str) -> None:
    one, other = spark_type(spark), postgres_type(postgres)
    assert holds(one, other)
    assert holds(other, one)


def test_the_type_that_the_source_itself_names_counts() -> None:
    assert str(type_of(Column("c", "string", native_type="numeric(50,3)"))) == "numeric(50,3)"


@pytest.mark.parametrize("text", [*{name for pair in (*WIDER, *APART) for name in pair}, "character", "float(24)"])
def test_a_type_as_it_is_written_down_is_read_as_the_same(text: str) -> None:
    kind = postgres_type(text)
    assert postgres_type(str(kind)) == kind


sized = st.tuples(st.integers(1, 38), st.integers(0, 38)).filter(lambda size: size[1] <= size[0])


@given(sized, sized, sized)
def test_of_numbers_what_holds_what_is_an_order(
    one: tuple[int, int], two: tuple[int, int], three: tuple[int, int]
) -> None:
    a, b, c = (postgres_type(f"numeric({precision},{scale})") for precision, scale in (one, two, three))
    assert holds(a, a)
    assert not (holds(a, b) and holds(b, a)) or a == b
    assert holds(a, c) or not (holds(a, b) and holds(b, c))
