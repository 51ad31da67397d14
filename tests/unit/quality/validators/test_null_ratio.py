"""null_ratio"""

from __future__ import annotations

from hakiri_dagster.quality.measures import Nulls, Rows
from tests.unit.quality.validators.judging import declared, judged, passes


def test_none_may_be_missing_unless_something_else_is_said() -> None:
    cases = ({Rows(): 10, Nulls("c"): nulls} for nulls in (0, 1, 2))
    assert list(passes(declared("null_ratio", column="c"), *cases)) == [True, False, False]


def test_the_share_itself_passes() -> None:
    cases = ({Rows(): 10, Nulls("c"): nulls} for nulls in (0, 1, 2))
    assert list(passes(declared("null_ratio", column="c", max=0.1), *cases)) == [True, True, False]


def test_no_rows_lack_nothing() -> None:
    assert judged(declared("null_ratio", column="c"), {Rows(): 0, Nulls("c"): 0}).numbers["ratio"] == 0
