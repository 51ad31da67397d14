"""Sums, products and quotients over columns."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from hakiri_dagster.quality.columnar.values import NotInArrow
from tests.unit.quality.columnar.asking import cells_of, failing, value_of

MOST, LEAST = 2**63 - 1, -(2**63)
LONGS = pa.array([MOST, LEAST, 3, None])
CENTS = pa.array([Decimal("9.99"), Decimal("-9.99"), Decimal("1.50"), None], pa.decimal128(3, 2))
FLOATS = pa.array([7.5, -7.5, float("nan"), float("inf"), 0.0, None])


@pytest.mark.parametrize(
    ("text", "cells", "fails"),
    [
        ("v + 1", [None, LEAST + 1, 4, None], [0]),
        ("v - 1", [MOST - 1, None, 2, None], [1]),
        ("v * 2", [None, None, 6, None], [0, 1]),
        ("v * -1", [-MOST, None, -3, None], [1]),
        ("-1 * v", [-MOST, None, -3, None], [1]),
        ("v * 4611686018427387904", [None, None, None, None], [0, 1, 2]),
        ("-v", [-MOST, None, -3, None], [1]),
        ("v % 2", [1, 0, 1, None], []),
        ("v % -1", [0, 0, 0, None], []),
        ("v % 0", [None] * 4, [0, 1, 2]),
        ("v / 0", [None] * 4, [0, 1, 2]),
        ("v / 2", [2.0**62, -(2.0**62), 1.5, None], []),
        ("abs(v)", [Decimal(MOST), Decimal(-LEAST), Decimal(3), None], []),
    ],
)
def test_what_64_bits_do_not_hold_is_null_and_fails(text: str, cells: list[Any], fails: list[int]) -> None:
    assert (cells_of(text, v=LONGS), failing(text, v=LONGS)) == (cells, fails)


def test_a_product_whose_bits_wrap_to_a_plausible_number_fails() -> None:
    wrapping = pa.array([2**32 + 1, 2**32, 3_037_000_499, 3_037_000_500, -(2**31)])
    assert failing("v * v", v=wrapping) == [0, 1, 3]


@pytest.mark.parametrize("kind", [pa.int8(), pa.int16(), pa.int32()])
def test_integers_are_computed_in_their_own_width(kind: pa.DataType) -> None:
    most = 2 ** (kind.bit_width - 1) - 1
    values = pa.array([most, -most - 1, 1], kind)
    assert value_of("v + v", v=values).type == kind
    assert failing("v + v", v=values) == [0, 1]
    assert failing("v * v", v=values) == [0, 1]


def test_a_written_number_is_an_int_and_widens_what_is_shorter() -> None:
    assert cells_of("v + 1", v=pa.array([127], pa.int8())) == [128]


def test_decimals_are_exact_and_as_long_as_sparks() -> None:
    product = value_of("p * (1 - o)", p=pa.array([Decimal("9.99")], pa.decimal128(15, 2)), o=CENTS[:1])
    assert product.type == pa.decimal128(20, 4)
    assert cells_of("v * v", v=CENTS) == [Decimal("99.8001"), Decimal("99.8001"), Decimal("2.2500"), None]


@pytest.mark.parametrize("text", ["v * v", "v + 1", "v - w", "-v", "abs(v)"])
def test_decimals_of_which_spark_would_give_digits_up_are_left_to_it(text: str) -> None:
    long = pa.array([Decimal(1)], pa.decimal128(38, 2))
    with pytest.raises(NotInArrow):
        value_of(text, v=long, w=CENTS[:1])


@pytest.mark.parametrize("sign", ["/", "%"])
def test_quotients_of_decimals_are_left_to_spark(sign: str) -> None:
    with pytest.raises(NotInArrow):
        value_of(f"v {sign} 2", v=CENTS)


def test_floats_divide_as_java_does() -> None:
    assert cells_of("v % 2", v=FLOATS)[:2] == [1.5, -1.5]
    assert str(cells_of("v % 2", v=FLOATS)[2:4]) == "[nan, nan]"
    assert failing("v / 0e0", v=FLOATS) == [0, 1, 2, 3, 4]
    assert failing("1e0 / v", v=FLOATS) == [4]


def test_floor_and_ceil_of_decimals_have_room_for_one_digit_more() -> None:
    assert cells_of("floor(v)", v=CENTS) == [Decimal(9), Decimal(-10), Decimal(1), None]
    assert cells_of("ceil(v)", v=CENTS) == [Decimal(10), Decimal(-9), Decimal(2), None]


def test_floats_that_no_bigint_holds_cannot_be_rounded() -> None:
    assert cells_of("floor(v)", v=FLOATS) == [7, -8, None, None, 0, None]
    assert failing("ceiling(v)", v=FLOATS) == [2, 3]
