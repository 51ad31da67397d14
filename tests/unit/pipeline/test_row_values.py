"""What `row_json` writes, `row_values` reads as it was; what cannot have been a value of a type is told."""

from __future__ import annotations

import json
import math
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from hakiri_dagster.pipeline.row_json import rows_as_json
from hakiri_dagster.pipeline.row_values import ValueLost, column_of

MOMENTS = [0, -1, 1_700_000_000_123_456, 9 * 10**17, -62_135_596_800_000_001]
VALUES: list[tuple[pa.DataType, list[Any]]] = [
    (pa.bool_(), [True, False, None]),
    (pa.int16(), [-(2**15), 2**15 - 1, None]),
    (pa.int64(), [-(2**63), 2**63 - 1, None]),
    (pa.float64(), [math.nan, math.inf, -math.inf, -0.0, 0.0, 0.1, 1e300, 5e-324, None]),
    (pa.float32(), [0.1, math.nan, -math.inf, 3.4e38, None]),
    (pa.decimal128(38, 10), [Decimal("1E-10"), Decimal("-1234567890123456789012345678.5"), Decimal(0), None]),
    (pa.string(), ['a"b\\n\n\t', "", "NaN", "ünï", None]),
    (pa.binary(), [b"", b"\x00\xff", None]),
    (pa.date32(), [-1_000_000, 5_000_000, 0, None]),
    (pa.timestamp("us"), [*MOMENTS, None]),
    (pa.timestamp("us", "UTC"), [*MOMENTS, None]),
    (pa.timestamp("us", "UTC"), [0, 1, None]),
    (pa.time64("us"), [0, 1, 86_399_999_999, None]),
    (pa.duration("us"), [-1, 0, 5, 3 * 86_400_000_000, None]),
    (pa.list_(pa.date32()), [[0, None], [], None]),
    (
        pa.struct([("a", pa.int32()), ("b", pa.list_(pa.timestamp("us")))]),
        [{"a": 1, "b": [0]}, {"a": None, "b": None}, None],
    ),
    (pa.map_(pa.string(), pa.float64()), [[("k", -0.0), ("z", None)], [], None]),
]


@pytest.mark.parametrize(("kind", "values"), VALUES, ids=str)
def test_values_come_back_as_they_were(kind: pa.DataType, values: list[Any]) -> None:
    column = pa.array(values, kind)
    rows = [json.loads(row) for row in rows_as_json(pa.RecordBatch.from_arrays([column], names=["v"]))]
    back, failed = column_of([row["v"] for row in rows], kind)
    assert failed == {}
    assert str(back) == str(column)  # NaN is not equal to itself, and zero to its negative


@pytest.mark.parametrize(
    ("kind", "value"),
    [
        (pa.string(), 7),
        (pa.int32(), 2**31),
        (pa.int32(), True),
        (pa.int32(), 1.0),
        (pa.int32(), "1"),
        (pa.bool_(), 1),
        (pa.float32(), 0.1 + 1e-10),
        (pa.float64(), "1.5"),
        (pa.decimal128(5, 2), "1.005"),
        (pa.decimal128(5, 2), "1000"),
        (pa.decimal128(5, 2), "NaN"),
        (pa.decimal128(5, 2), 1.5),
        (pa.date32(), "2024-01-01 00:00:00"),
        (pa.date32(), "2024-13-01"),
        (pa.timestamp("us"), "2024-01-01 00:00:00+00:00"),
        (pa.timestamp("us", "UTC"), "2024-01-01 00:00:00"),
        (pa.binary(), "0"),
        (pa.list_(pa.int32()), [1, "x"]),
        (pa.struct([("a", pa.int32())]), {"a": 1, "gone": 2}),
    ],
    ids=str,
)
def test_a_value_of_another_type_is_refused_rather_than_changed(kind: pa.DataType, value: Any) -> None:
    column, failed = column_of([value, None], kind)
    assert list(failed) == [0]
    assert column.null_count == 2


def test_text_that_may_have_held_a_nul_is_told_apart() -> None:
    (row,) = rows_as_json(pa.RecordBatch.from_arrays([pa.array(["a\0b"])], names=["v"]))
    _, failed = column_of([json.loads(row)["v"]], pa.string())
    assert isinstance(failed[0], ValueLost)
