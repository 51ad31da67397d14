"""freshness"""

from __future__ import annotations

from datetime import UTC, datetime

import pyarrow as pa

from hakiri_dagster.quality.measures import Highest, Instant
from tests.unit.quality.validators.judging import declared, judged, misfits

AGED = declared("freshness", withinHours=24, column="at")


def test_the_newest_row_may_be_as_old_as_was_said() -> None:
    day_before = Instant.of(datetime(2024, 1, 1, 12, tzinfo=UTC))
    verdict = judged(AGED, {Highest("at"): day_before})
    assert (verdict.passed, verdict.numbers) == (True, {"hours": 24.0})
    verdict = judged(AGED, {Highest("at"): Instant(day_before.microseconds - 1_000_000)})
    assert not verdict.passed
    assert verdict.observed == "the newest is of 2024-01-01T11:59:59Z, 24.0 hours ago"


def test_rows_dated_after_now_are_fresh() -> None:
    assert judged(AGED, {Highest("at"): Instant.of(datetime(2030, 1, 1, tzinfo=UTC))}).passed


def test_no_time_at_all_is_not_fresh() -> None:
    assert judged(AGED, {Highest("at"): None}).observed == "no row has a time in at"


def test_it_is_asked_of_times() -> None:
    assert misfits(AGED, at=pa.date32()) == []
    assert misfits(AGED, at=pa.string()) == ["validator freshness_at: at is text, which is no time"]
    absent = "validator freshness_at is about at, which the source does not have"
    assert misfits(AGED) == [absent]
    assert misfits(AGED, AT=pa.date32(), other=pa.date32()) == [f"{absent}; did you mean AT?"]
