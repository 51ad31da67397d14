"""Numbers that travel as texts, beside Python's decimals, which are exact."""

from __future__ import annotations

import math
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from hakiri_dagster.manifest.rule_spec import Comparison
from hakiri_dagster.planning.columns import Column
from hakiri_dagster.quality import comparable, numerics
from hakiri_dagster.quality.readable_as import unreadable

FINITE = st.decimals(allow_nan=False, allow_infinity=False, places=3) | st.decimals(
    allow_nan=False, allow_infinity=False, min_value=-(10**45), max_value=10**45
)
TEXTS = FINITE.map(lambda number: format(number, "f")) | st.sampled_from(
    ["NaN", "Infinity", "-Infinity", "1.0", "1.00", "1", "0.1", "0.10", "9" * 40, "9" * 39 + "8", "1" + "0" * 400]
)
OPS: dict[Comparison, Any] = {
    "<": lambda sign: sign < 0, "<=": lambda sign: sign <= 0, "=": lambda sign: sign == 0,
    "!=": lambda sign: sign != 0, ">=": lambda sign: sign >= 0, ">": lambda sign: sign > 0,
}  # fmt: skip


def column(texts: list[str | None]) -> pa.Array:
    return numerics.marked(pa.record_batch({"v": pa.array(texts, pa.string())}), {"v"}).column(0)


def place(text: str) -> tuple[bool, Decimal]:
    number = Decimal(text)
    return (True, Decimal(0)) if number.is_nan() else (False, number)


@given(st.lists(st.tuples(st.none() | TEXTS, st.none() | TEXTS), min_size=1), st.sampled_from(list(OPS)))
@example([("9", "10")], "<=")
def test_two_of_them_compare_as_the_numbers_they_are(
    pairs: list[tuple[str | None, str | None]], op: Comparison
) -> None:
    ones, others = zip(*pairs, strict=True)
    expected = [
        None if one is None or other is None else not OPS[op]((place(one) > place(other)) - (place(one) < place(other)))
        for one, other in pairs
    ]
    assert comparable.breaks(column(list(ones)), op, column(list(others))).to_pylist() == expected


@given(st.lists(st.none() | TEXTS), st.floats(allow_nan=False, allow_infinity=False) | st.integers(-(2**70), 2**70))
@example(["0.1", "0.1000000000000000055511151231257827", "0.10000000000000000000001"], 0.1)
def test_a_range_of_them_is_exact(texts: list[str | None], bound: float) -> None:
    exact = Decimal(repr(bound))
    numbers = [None if text is None else Decimal(text) for text in texts]
    low = [None if one is None else one.is_nan() or one < exact for one in numbers]
    high = [None if one is None else one.is_nan() or one > exact for one in numbers]
    assert comparable.outside(column(texts), bound, None).to_pylist() == low
    assert comparable.outside(column(texts), None, bound).to_pylist() == high


@given(st.lists(TEXTS))
def test_equal_numbers_have_one_text_and_others_have_others(texts: list[str]) -> None:
    told = numerics.shortest(column(texts)).to_pylist()
    assert [place(text) for text in told] == [place(text) for text in texts]
    assert len(set(told)) == len({place(text) for text in texts})


def test_a_number_of_many_digits_has_a_short_text_however_it_is_written() -> None:
    long = "1" + "0" * 400
    told = numerics.shortest(column([long, "1e400", "10.0e399", "1e131071", "-2.50e-16000", "0e99999"])).to_pylist()
    assert told == ["1e400", "1e400", "1e400", "1e131071", "-25e-16001", "0"]
    assert numerics.shortest(column(["1e60", "1" + "0" * 60])).to_pylist() == ["1" + "0" * 60] * 2
    found = unreadable(column(["1e400", long, "1e-400", "12.50e1"]), "integer")
    assert found is not None
    assert found.to_pylist() == [False, False, True, False]


@given(st.lists(st.none() | TEXTS))
def test_the_first_the_last_and_the_sum_are_exact(texts: list[str | None]) -> None:
    known = [text for text in texts if text is not None]
    lowest, highest = (numerics.extreme(column(texts), highest=highest) for highest in (False, True))
    if not known:
        assert (lowest, highest, numerics.total(column(texts))) == (None, None, None)
        return
    assert place(str(lowest)) == min(map(place, known))
    assert place(str(highest)) == max(map(place, known))


@given(st.lists(st.decimals(allow_nan=False, allow_infinity=False, places=20, min_value=-(10**40), max_value=10**40)))
def test_sums_have_all_their_digits(numbers: list[Decimal]) -> None:
    found = numerics.total(column([format(number, "f") for number in numbers]))
    expected = None
    for number in numbers:
        expected = numerics.EXACTLY.add(expected or Decimal(0), number)
    assert found == expected


@pytest.mark.parametrize(
    ("op", "other", "broken"),
    [
        ("=", pa.array([1, 10, 0, None]), [False, False, True, None]),
        ("=", pa.array(["1", "10", "0.0000001"]).cast(pa.decimal128(15, 7)), [False, False, False]),
        ("=", pa.array([1.0, 10.0, 0.0000001]), [False, False, False]),
        ("<", pa.array([math.nan, 11.0, -1.0]), [False, False, True]),
    ],
)
def test_they_compare_to_other_numbers(op: Comparison, other: pa.Array, broken: list[bool | None]) -> None:
    texts: list[str | None] = ["1.0", "10.00", "0.00000010", "7"]
    assert comparable.breaks(column(texts[: len(other)]), op, other).to_pylist() == broken
    mirrored: dict[Comparison, Comparison] = {"=": "=", "<": ">"}
    assert comparable.breaks(other, mirrored[op], column(texts[: len(other)])).to_pylist() == broken


def test_what_is_no_number_breaks_a_rule_and_no_load() -> None:
    values = column(["x", " 1.50 ", "1e3", "+007", "\uff11", "1_0", None])
    broken = [True, False, False, False, True, True, None]
    assert comparable.outside(values, 1, 1000).to_pylist() == broken
    assert comparable.breaks(values, "=", values).to_pylist() == broken
    assert comparable.among(values, [1.5, 1000, 7]).to_pylist() == [False, True, True, True, False, False, False]


def test_they_are_told_by_the_type_they_have_in_postgresql() -> None:
    columns = [
        Column("a", "string", native_type="numeric"),
        Column("b", "decimal(9,2)", native_type="numeric(9,2)"),
        Column("c", "string", native_type="numeric(50,2)"),
        Column("d", "string", native_type="numeric[]"),
        Column("e", "string", native_type="text"),
        Column("f", "string"),
    ]
    assert numerics.numeric_texts(columns) == {"a", "c"}
