from __future__ import annotations

import pyarrow as pa
import pytest

from hakiri_dagster.connectors.files.text_inference import signature, type_of
from hakiri_dagster.connectors.files.types import declared_column, widened


@pytest.mark.parametrize(
    ("one", "other", "both"),
    [
        ("int", "bigint", "bigint"),
        ("tinyint", "smallint", "smallint"),
        ("float", "double", "double"),
        ("int", "double", "double"),
        ("bigint", "double", None),
        ("int", "float", None),
        ("int", "decimal(10,2)", "decimal(12,2)"),
        ("decimal(10,2)", "decimal(8,4)", "decimal(12,4)"),
        ("decimal(38,0)", "decimal(38,10)", None),
        ("decimal(10,2)", "double", None),
        ("date", "timestamp_ntz", "timestamp_ntz"),
        ("date", "timestamp", None),
        ("timestamp", "timestamp_ntz", None),
        ("string", "int", None),
        ("boolean", "int", None),
        ("array<int>", "array<bigint>", None),
    ],
)
def test_two_types_have_a_wider_one_only_if_it_holds_both_exactly(one, other, both):
    assert widened(one, other) == widened(other, one) == both


@pytest.mark.parametrize(
    ("declared", "spark_type"),
    [
        ("integer", "int"),
        ("BIGINT", "bigint"),
        ("numeric(12, 3)", "decimal(12,3)"),
        ("decimal(5)", "decimal(5,0)"),
        ("numeric", "string"),
        ("numeric(50,2)", "string"),
        ("timestamp(3) with time zone", "timestamp"),
        ("timestamptz(6)", "timestamp"),
        ("timestamp without time zone", "timestamp_ntz"),
        ("double  precision", "double"),
        ("varchar(20)", "string"),
        ("uuid", "string"),
    ],
)
def test_a_declared_type_is_kept_and_has_a_type_in_spark(declared, spark_type):
    column = declared_column("c", declared)
    assert (column.spark_type, column.native_type) == (spark_type, declared)


def test_a_column_without_a_single_value_has_no_type():
    assert type_of(0) is None


@pytest.mark.parametrize(
    ("texts", "spark_type"),
    [
        (["1", "2"], "string"),
        (["true"], "string"),
        (["2024-01-02", "1999-12-31"], "date"),
        (["2024-02-30"], "string"),
        (["2024-01-02", "2024-01-02 03:04"], "timestamp_ntz"),
        (["2024-01-02T03:04:05.123456789"], "timestamp_ntz"),
        (["2024-01-02T25:00"], "string"),
        (["2024-01-02 03:04:05+02:00", "2024-01-02T03:04Z"], "timestamp"),
        (["2024-01-02 03:04:05+02:00", "2024-01-02 03:04:05"], "string"),
        (["2024", "2024-01-02"], "string"),
        (["0000-01-01"], "string"),
        (["2024-01-02", "", None], "date"),
    ],
)
def test_the_type_of_a_column_of_texts(texts, spark_type):
    assert type_of(signature(pa.array(texts, pa.string()))) == spark_type
