"""A tick of the planner looks at few sources, in turn, and not for long."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from hakiri_dagster.manifest.rates import Rate
from hakiri_dagster.planning.looks import EVERY, EVERY_OF_APIS, Look, spell, within_budget

NOW = datetime(2024, 3, 5, 12, 0, tzinfo=UTC)
A, B, C = ("shop", "a"), ("shop", "b"), ("shop", "c")


def ago(seconds: float, failures: int = 0) -> Look:
    return Look(NOW - timedelta(seconds=seconds), failures=failures)


def test_what_was_looked_at_within_the_minute_is_left_alone() -> None:
    assert spell({A: EVERY, B: EVERY}, {A: ago(59), B: ago(60)}, NOW).tables == (B,)


def test_each_is_looked_at_as_often_as_it_asks_for() -> None:
    assert spell({A: timedelta(seconds=5), B: timedelta(hours=1)}, {A: ago(6), B: ago(3000)}, NOW).tables == (A,)


@pytest.mark.parametrize(
    ("requests", "budget", "minutes"),
    [(6, "60/h", 24), (418, "5000/h", 20.07), (2, "60/min", 5), (2, "25/s", 5), (3, "4/d", 3 * 24 * 60)],
)
def test_looks_spend_a_quarter_of_the_budget_at_most(requests: int, budget: str, minutes: float) -> None:
    rate = Rate.parse(budget)
    every = within_budget(EVERY_OF_APIS, requests, rate)
    assert every.total_seconds() / 60 == pytest.approx(minutes, abs=0.01)
    assert requests / every.total_seconds() <= rate.count / rate.seconds / 4
    assert within_budget(EVERY_OF_APIS, requests, None) == EVERY_OF_APIS


def test_what_waits_longest_comes_first_and_before_it_what_nobody_looked_at_yet() -> None:
    assert spell(dict.fromkeys((A, B, C), EVERY), {A: ago(70), B: ago(90)}, NOW).tables == (C, B, A)


def test_a_table_that_has_left_the_manifest_is_looked_at_no_more() -> None:
    assert spell({A: EVERY}, {A: ago(70), B: ago(900)}, NOW).tables == (A,)


def test_a_source_that_is_down_is_asked_less_and_less_often_up_to_a_limit() -> None:
    pauses = [(ago(0, failures).next(EVERY) - NOW).total_seconds() / 60 for failures in (0, 1, 2, 3, 4, 50)]
    assert pauses == [1, 2, 4, 8, 16, 16]
    assert ago(0, failures=3).next(timedelta(hours=1)) - NOW == timedelta(hours=1)


def test_a_tick_takes_a_fraction_of_a_second_and_longer_only_where_looks_are_late() -> None:
    for seconds, spent in ((61, 0.5), (100, 4.0), (10_000, 20.0)):
        assert spell({A: EVERY}, {A: ago(seconds)}, NOW).seconds == spent
    assert spell({A: EVERY}, {}, NOW).seconds == 20.0
    assert spell({}, {}, NOW).seconds == 0.5


def test_everything_is_planned_now_and_then_however_little_the_source_says() -> None:
    assert Look(NOW, surveyed_at=None).is_old(NOW)
    assert Look(NOW, surveyed_at=NOW - timedelta(minutes=10)).is_old(NOW)
    assert not Look(NOW, surveyed_at=NOW - timedelta(minutes=9)).is_old(NOW)
