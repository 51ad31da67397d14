"""row_count_matches_source"""

from __future__ import annotations

from hakiri_dagster.quality.measures import Rows, RowsAtSource, RowsSetAside
from tests.unit.quality.validators.judging import declared, judged

RECONCILED = declared("row_count_matches_source")


def test_rows_that_were_set_aside_count_as_well() -> None:
    verdict = judged(RECONCILED, {Rows(): 8, RowsSetAside(): 2, RowsAtSource(): 10})
    assert (verdict.passed, verdict.observed) == (True, "8 row(s) here and 2 set aside, 10 at the source")


def test_a_row_too_few_or_too_many_does_not_pass() -> None:
    for there in (9, 11):
        assert not judged(RECONCILED, {Rows(): 10, RowsSetAside(): 0, RowsAtSource(): there}).passed
