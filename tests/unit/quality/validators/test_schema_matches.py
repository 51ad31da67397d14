"""schema_matches"""

from __future__ import annotations

from hakiri_dagster.quality.measures import ColumnsFound, ColumnTypes
from tests.unit.quality.validators.judging import declared, judged

QUESTION = ColumnTypes((("id", "bigint"), ("name", "text")))
COLUMNS = {"id": "bigint", "name": "text"}


def test_columns_that_differ_or_are_missing_are_named() -> None:
    found = ColumnsFound((("id", "integer"), ("name", None)), ())
    verdict = judged(declared("schema_matches", columns=COLUMNS), {QUESTION: found})
    assert (verdict.passed, verdict.observed) == (False, "id is integer, not bigint; there is no name")


def test_other_columns_are_refused_unless_they_are_allowed() -> None:
    found = ColumnsFound((), ("note",))
    strict, open_ = (declared("schema_matches", columns=COLUMNS, others=word) for word in ("refuse", "allow"))
    assert judged(strict, {QUESTION: found}).observed == "note is not expected"
    assert judged(open_, {QUESTION: found}).passed
