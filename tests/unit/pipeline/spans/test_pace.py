"""When a backfill will be done."""

from __future__ import annotations

from hakiri_dagster.pipeline.spans.pace import Pace


def test_it_is_what_is_left_at_the_pace_so_far() -> None:
    pace = Pace(4, now=100.0)
    assert [pace.settled(now) for now in (110.0, 120.0, 150.0, 160.0)] == [30, 20, 17, 0]


def test_only_the_last_chunks_count() -> None:
    pace = Pace(1_000, now=0.0)
    for second in range(100):
        pace.settled(now=1000.0 + second)  # after a start that took long
    assert pace.settled(now=1100.0) == 899


def test_a_run_may_settle_more_than_was_owed() -> None:
    pace = Pace(0, now=0.0)
    assert pace.settled(now=5.0) == 0
