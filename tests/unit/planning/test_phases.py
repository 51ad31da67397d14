"""planning, backfilling, streaming: how what is owed and how far the source reaches make a phase."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from hakiri_dagster.planning.chunks import CursorRange as Range
from hakiri_dagster.planning.chunks import Extent, Interval, NullCursor
from hakiri_dagster.planning.phases import (
    Owed,
    Phase,
    Sla,
    Standing,
    pipeline_phase,
    source_upper,
    table_phase,
)
from hakiri_dagster.planning.states import ChunkState
from hakiri_dagster.planning.windows import to_position

NOON = datetime(2024, 3, 5, 12, 0, tzinfo=UTC)
HOUR = Sla(timedelta(hours=1))
EVERY_15M = Sla.of(None, "every 15m", "UTC")


def at(hour: int, minute: int = 0) -> int:
    return to_position(NOON.replace(hour=hour, minute=minute))


def standing(*owed: Owed, upper: int = at(12)) -> Standing:
    return Standing(40, owed, "timestamp", upper, NOON)


def new_since(mark: int) -> Owed:
    """Of a window that was loaded up to there."""
    return Owed(mark, never_loaded=False, again=False)


def never_loaded(lower: int | None) -> Owed:
    return Owed(lower, never_loaded=True, again=False)


def test_a_table_of_which_nothing_is_planned_is_planning() -> None:
    assert table_phase(Standing(0, ()), HOUR) == "planning"


def test_a_table_that_owes_nothing_is_streaming() -> None:
    assert table_phase(standing(), HOUR) == table_phase(standing(), None) == "streaming"


@pytest.mark.parametrize(("mark", "phase"), [(at(11), "streaming"), (at(10, 59), "backfilling")])
def test_it_streams_while_the_cursor_is_within_the_sla_of_the_sources_newest(mark: int, phase: Phase) -> None:
    assert table_phase(standing(new_since(mark)), HOUR) == phase


def test_the_farthest_behind_of_what_is_owed_counts() -> None:
    assert table_phase(standing(new_since(at(11, 50)), never_loaded(at(2))), HOUR) == "backfilling"


def test_a_window_that_has_just_begun_ends_no_streaming() -> None:
    assert table_phase(standing(never_loaded(at(11, 30))), HOUR) == "streaming"


def test_the_first_load_of_all_is_a_backfill() -> None:
    assert table_phase(standing(never_loaded(None)), HOUR) == "backfilling"


def test_what_is_rewound_or_lost_is_a_backfill_however_young_it_is() -> None:
    assert table_phase(standing(replace(new_since(at(12)), again=True)), HOUR) == "backfilling"


def test_without_an_sla_or_a_cursor_of_time_it_streams_once_everything_was_loaded_before() -> None:
    for found, sla in (
        (standing(new_since(at(1))), None),
        (Standing(2, (new_since(5),), "numeric", 9_000, NOON), HOUR),
    ):
        assert table_phase(found, sla) == "streaming"
    for found, sla in ((standing(never_loaded(at(12))), None), (Standing(2, (never_loaded(5),), None), HOUR)):
        assert table_phase(found, sla) == "backfilling"


def test_of_days_nobody_tells_the_hour_so_the_newest_day_is_not_behind_the_one_before() -> None:
    midnight = NOON.replace(hour=0)
    day = Standing(2, (new_since(to_position(midnight - timedelta(days=1))),), "date", to_position(midnight), NOON)
    assert (day.behind, table_phase(day, HOUR)) == (timedelta(), "streaming")
    older = replace(day, owed=(new_since(to_position(midnight - timedelta(days=2))),))
    assert (older.behind, table_phase(older, HOUR)) == (timedelta(days=1), "backfilling")


def test_by_default_it_may_be_behind_by_a_period_of_the_schedule_and_what_came_since_the_last_tick() -> None:
    """Else a table that every tick loads would be called late at each of them."""
    late = NOON.replace(minute=20)
    found = Standing(2, (new_since(at(12)),), "timestamp", at(12, 20), late)
    assert table_phase(found, EVERY_15M) == "streaming"
    missed = replace(found, owed=(new_since(at(11, 59)),))
    assert table_phase(missed, EVERY_15M) == "backfilling"


def test_what_is_declared_is_meant_as_it_is_written() -> None:
    declared = Sla.of("30m", "every 1d", "UTC")
    assert declared is not None
    assert declared.allowed(NOON) == timedelta(minutes=30)
    assert Sla.of(None, None, "UTC") is None


@pytest.mark.parametrize(
    ("phases", "phase"),
    [
        ([], "planning"),
        (["planning", "planning"], "planning"),
        (["streaming", "planning"], "streaming"),
        (["streaming", "backfilling", "planning"], "backfilling"),
    ],
)
def test_a_pipeline_is_where_the_last_of_its_tables_is(phases: list[Phase], phase: Phase) -> None:
    assert pipeline_phase(phases) == phase


def test_what_a_chunk_owes_begins_at_its_mark_and_else_at_its_lower_end() -> None:
    window = ChunkState("2024-03", Range(Interval(at(0), at(23))))
    assert Owed.of(window) == never_loaded(at(0))
    assert Owed.of(replace(window, cursor_committed=at(7), load_id=4)) == new_since(at(7))
    assert Owed.of(replace(window, load_id=4, rewind=2)) == Owed(at(0), never_loaded=False, again=True)
    asleep = replace(window, cursor_committed=at(7), load_id=4, completed_at=NOON + timedelta(days=400))
    assert Owed.of(asleep) == new_since(to_position(NOON + timedelta(days=400))), "no row came in more than a year"
    assert Owed.of(replace(asleep, rewind=2)) == Owed(at(7), never_loaded=False, again=True)
    assert Owed.of(ChunkState("null", NullCursor(), gap=True)) == Owed(None, never_loaded=True, again=True)


def test_a_row_dated_in_the_future_does_not_tell_how_far_the_source_has_come() -> None:
    ahead = Extent(at(1), at(23), 0, upper_by_now=at(11), rows_at_upper_by_now=1)
    assert source_upper(ahead, "timestamp", NOON) == at(11)
    assert source_upper(replace(ahead, upper=at(12)), "timestamp", NOON) == at(12)
    assert source_upper(replace(ahead, upper=10**9), "numeric", NOON) == 10**9
    assert source_upper(None, None, NOON) is None
