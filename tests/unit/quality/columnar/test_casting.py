"""CAST of columns."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from hakiri_dagster.quality.columnar.values import NotInArrow
from tests.unit.quality.columnar.asking import cells_of, failing, value_of

FLOATS = [127.9, -128.9, 1e300, float("nan"), 2.0**63, -(2.0**63), None]


@pytest.mark.parametrize(
    ("type_", "cells", "fails"),
    [
        ("TINYINT", [127, -128, None, None], [2]),
        ("SMALLINT", [127, -128, 128, None], []),
        ("DECIMAL(4, 1)", [Decimal(127), Decimal(-128), Decimal(128), None], []),
        ("DECIMAL(3, 1)", [None, None, None, None], [0, 1, 2]),
        ("DOUBLE", [127.0, -128.0, 128.0, None], []),
        ("STRING", ["127", "-128", "128", None], []),
        ("BOOLEAN", [True, True, True, None], []),
    ],
)
def test_integers(type_: str, cells: list[Any], fails: list[int]) -> None:
    given = pa.array([127, -128, 128, None])
    assert (cells_of(f"CAST(v AS {type_})", v=given), failing(f"CAST(v AS {type_})", v=given)) == (cells, fails)
    assert (cells_of(f"TRY_CAST(v AS {type_})", v=given), failing(f"TRY_CAST(v AS {type_})", v=given)) == (cells, [])


@pytest.mark.parametrize(
    ("type_", "cells"),
    [
        ("TINYINT", [127, -128, None, None, None, None, None]),
        ("INT", [127, -128, None, None, None, None, None]),
        ("BIGINT", [127, -128, None, None, 2**63 - 1, -(2**63), None]),
        ("BOOLEAN", [True, True, True, True, True, True, None]),
    ],
)
def test_floats_are_cut_off_where_they_fit(type_: str, cells: list[Any]) -> None:
    assert cells_of(f"CAST(v AS {type_})", v=FLOATS) == cells


def test_decimals_get_places_and_lose_none() -> None:
    given = pa.array([Decimal("9.99"), Decimal("-99.99"), Decimal("100.00"), None], pa.decimal128(5, 2))
    assert cells_of("CAST(v AS DECIMAL(5, 3))", v=given) == [Decimal("9.990"), Decimal("-99.990"), None, None]
    assert failing("CAST(v AS DECIMAL(5, 3))", v=given) == [2]
    assert cells_of("CAST(v AS DOUBLE)", v=given) == [9.99, -99.99, 100.0, None]
    assert cells_of("CAST(v AS BOOLEAN)", v=given) == [True, True, True, None]


def test_truths() -> None:
    given = [True, False, None]
    assert cells_of("CAST(v AS INT)", v=given) == [1, 0, None]
    assert cells_of("CAST(v AS STRING)", v=given) == ["true", "false", None]
    assert failing("CAST(v AS DECIMAL(2, 2))", v=given) == [0]


def test_nothing_is_cast_to_nothing() -> None:
    assert cells_of("CAST(NULL AS DECIMAL(5, 2)) + v", v=[1]) == [None]
    assert failing("CAST(NULL AS INT) + v", v=[1]) == []


CENTS = pa.array([Decimal("1.50")], pa.decimal128(5, 2))


@pytest.mark.parametrize(
    ("type_", "given"),
    [
        ("INT", ["1"]), ("DATE", ["2024-01-01"]), ("DECIMAL(5, 1)", CENTS), ("INT", CENTS), ("FLOAT", CENTS),
        ("STRING", CENTS), ("STRING", [1.5]), ("DECIMAL(5, 1)", [1.5]), ("FLOAT", [1]), ("DECIMAL(38, 30)", [1]),
    ],
)  # fmt: skip
def test_what_arrow_would_cast_otherwise_is_left_to_spark(type_: str, given: Any) -> None:
    with pytest.raises(NotInArrow):
        value_of(f"TRY_CAST(v AS {type_})", v=given)
