"""Values one of which is chosen."""

from __future__ import annotations

from datetime import date
from decimal import Decimal

import pyarrow as pa
import pytest

from hakiri_dagster.quality.columnar.values import NotInArrow
from tests.unit.quality.columnar.asking import cells_of, failing, value_of

NONE = pa.array([None, None, None], pa.int64())


def test_the_first_branch_that_holds_is_taken_and_null_does_not_hold() -> None:
    text = "CASE WHEN v > 1 THEN 'more' WHEN v = 1 THEN 'one' END"
    assert cells_of(text, v=[2, 1, 0, None]) == ["more", "one", None, None]
    assert cells_of("if(v > 1, v, 0)", v=[2, 1, None]) == [2, 0, 0]
    assert cells_of("nvl2(v, 'known', 'not')", v=[1, None]) == ["known", "not"]


def test_a_branch_that_is_not_taken_fails_nothing() -> None:
    text = "CASE WHEN w = 0 THEN v WHEN v / w > 1 THEN v + 9223372036854775807 ELSE -1 END"
    assert failing(text, v=[5, 4, 1], w=[0, 2, 2]) == [1]


def test_a_condition_that_cannot_be_computed_fails_unless_an_earlier_one_holds() -> None:
    assert failing("CASE WHEN v = 0 THEN 1 WHEN 1 / w > 0 THEN 2 ELSE 3 END", v=[0, 1], w=[0, 0]) == [1]


def test_what_comes_after_the_first_that_is_known_fails_nothing() -> None:
    assert failing("coalesce(v, 1 / w)", v=[1.0, None, None], w=[0, 0, 1]) == [1]
    assert failing("coalesce(1 / w, v)", v=[1.0, None, None], w=[0, 0, 1]) == [0, 1]
    assert cells_of("ifnull(v, w)", v=NONE, w=[1, None, 2]) == [1, None, 2]


def test_values_of_several_types_become_of_one() -> None:
    assert value_of("coalesce(v, 1.5)", v=pa.array([1], pa.int32())).type == pa.decimal128(11, 1)
    assert value_of("coalesce(v, 1.5)", v=[1.5]).type == pa.float64()
    assert cells_of("coalesce(v, '2024-01-31')", v=pa.array([None], pa.date32())) == [date(2024, 1, 31)]


def test_what_is_the_other_is_null() -> None:
    assert cells_of("nullif(v, w)", v=[1, 2, None], w=[1, 1, 1]) == [None, 2, None]
    assert cells_of("nullif(v, 1.0)", v=[1, 2, None]) == [None, 2, None]


def test_the_greatest_of_those_that_are_known() -> None:
    nan = float("nan")
    assert cells_of("greatest(v, w)", v=[1, None, None], w=[2, 3, None]) == [2, 3, None]
    assert cells_of("least(v, w, 1.5)", v=[1, None], w=[2, 3]) == [Decimal("1.0"), Decimal("1.5")]
    assert str(cells_of("greatest(v, w)", v=[nan, 1.0], w=[1.0, None])) == "[nan, 1.0]"
    assert cells_of("least(v, w)", v=[nan, 1.0], w=[1.0, None]) == [1.0, 1.0]


def test_what_is_no_single_value_can_only_be_asked_whether_it_is_there() -> None:
    lists = pa.array([[1], None])
    assert cells_of("isnull(v)", v=lists) == [False, True]
    assert cells_of("isnotnull(v)", v=lists) == [True, False]
    with pytest.raises(NotInArrow):
        value_of("isnull(coalesce(v, v))", v=lists)
