"""Types that meet."""

from __future__ import annotations

import pyarrow as pa
import pytest

from hakiri_dagster.quality.columnar.types import common, decimal_of, settled
from hakiri_dagster.quality.columnar.values import NotInArrow

FLOAT, DOUBLE = pa.float32(), pa.float64()


@pytest.mark.parametrize(
    ("types", "kind"),
    [
        ((pa.int8(), pa.int64(), pa.int32()), pa.int64()),
        ((pa.int8(), FLOAT), DOUBLE),
        ((FLOAT, FLOAT), FLOAT),
        ((pa.decimal128(5, 2), FLOAT), DOUBLE),
        ((pa.int32(), pa.decimal128(5, 2)), pa.decimal128(12, 2)),
        ((pa.int64(), pa.decimal128(5, 2)), pa.decimal128(22, 2)),
        ((pa.decimal128(5, 2), pa.decimal128(4, 4)), pa.decimal128(7, 4)),
        ((pa.null(), pa.bool_()), pa.bool_()),
        ((pa.timestamp("us"), pa.timestamp("us", "UTC")), pa.timestamp("us", "UTC")),
    ],
)
def test_what_values_become_when_they_meet(types: tuple[pa.DataType, ...], kind: pa.DataType) -> None:
    assert common(types) == kind
    assert common(types[::-1]) == kind


@pytest.mark.parametrize(
    "types", [(pa.decimal128(38, 0), pa.decimal128(38, 1)), (pa.list_(pa.int8()),), (pa.null(),), (pa.struct([]),)]
)
def test_what_has_no_common_type_is_left_to_spark(types: tuple[pa.DataType, ...]) -> None:
    with pytest.raises(NotInArrow):
        common(types)


@pytest.mark.parametrize(
    ("digits", "precision", "scale"),
    [("1.50", 3, 2), ("0.001", 3, 3), (".5", 1, 1), ("5.", 1, 0), ("00.50", 2, 2), ("-0.00", 2, 2), ("100", 3, 0),
     ("0", 1, 0)],
)  # fmt: skip
def test_a_written_number_is_as_long_as_spark_takes_it_for(digits: str, precision: int, scale: int) -> None:
    assert decimal_of(digits) == pa.decimal128(precision, scale)


def test_each_kind_has_one_type_whatever_a_source_calls_it() -> None:
    assert {settled(kind) for kind in (pa.string(), pa.large_string(), pa.string_view())} == {pa.large_string()}
    assert {settled(kind) for kind in (pa.binary(), pa.binary(4), pa.large_binary())} == {pa.large_binary()}
    assert settled(pa.timestamp("ms", "Europe/Paris")) == pa.timestamp("us", "UTC")
    assert settled(pa.timestamp("s")) == pa.timestamp("us")
