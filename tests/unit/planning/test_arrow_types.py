from __future__ import annotations

import pytest

from hakiri_dagster.planning.arrow_types import arrow_type, kind_of, type_told
from hakiri_dagster.planning.columns import Column


@pytest.mark.parametrize(
    ("spark", "told"),
    [
        ("string", "text"), ("tinyint", "smallint"), ("int", "integer"), ("bigint", "bigint"), ("float", "real"),
        ("double", "double precision"), ("decimal(15,2)", "numeric(15,2)"), ("boolean", "boolean"), ("date", "date"),
        ("timestamp", "timestamptz"), ("timestamp_ntz", "timestamp"), ("time(6)", "time"), ("binary", "bytea"),
        ("array<int>", "integer[]"), ("struct<a:int>", "jsonb"), ("map<string,int>", "jsonb"),
        ("interval day to second", "interval"), ("void", "always NULL"),
    ],
)  # fmt: skip
def test_a_type_is_told_in_the_words_of_the_target(spark: str, told: str) -> None:
    assert type_told(arrow_type(spark)) == told


def test_a_type_that_spark_lacks_is_told_as_the_source_names_it() -> None:
    assert type_told(kind_of(Column("c", "string", native_type="numeric(50,9)"))) == "numeric(50,9)"
