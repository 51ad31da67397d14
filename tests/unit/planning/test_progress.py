"""What a mark leaves to be owed, on ids in windows of ten."""

from __future__ import annotations

from datetime import UTC, datetime

from hakiri_dagster.planning.chunks import Chunk, CursorRange, Extent, Interval
from hakiri_dagster.planning.due import due_slices
from hakiri_dagster.planning.horizon import CursorHistory, Horizon, SourceTransactions
from hakiri_dagster.planning.progress import Progress
from hakiri_dagster.planning.states import ChunkState, committed_cursor

NOW = datetime(2026, 11, 18, tzinfo=UTC)
CHUNKS = [Chunk(f"{lower}", CursorRange(Interval(lower, lower + 10))) for lower in (0, 10, 20)]
SAID = "25/1/None/None/7"


def done(key: int, upper: int, said: str = SAID) -> ChunkState:
    bounds = CursorRange(Interval(key, key + 10))
    return ChunkState(
        str(key), bounds, "done", 1, 1, (Interval(key, upper),), cursor_committed=upper, seen=said, load_id=key + 1
    )


def owed(states: list[ChunkState], progress: Progress | None, recent: int = 7) -> list[tuple[int | None, int | None]]:
    extent = Extent(1, 25, 0, rows_at_upper=1, rows_recent=recent)
    due = due_slices(CHUNKS, states, extent, kind="numeric", now=NOW, progress=progress)
    bounds = [one.slice.bounds for one in due.slices]
    return [(b.interval.lower, b.interval.upper) for b in bounds if isinstance(b, CursorRange)]


def test_windows_before_the_mark_that_no_load_is_known_of_are_not_owed() -> None:
    assert owed([], None) == [(0, 10), (10, 20), (20, 30)]
    assert owed([], Progress(12)) == [(12, 20), (20, 30)]


def test_a_window_before_the_mark_that_was_taken_back_is_owed() -> None:
    taken_back = ChunkState("0", CursorRange(Interval(0, 10)), "pending", 1, 2, load_id=1)
    assert owed([taken_back, done(10, 20), done(20, 25)], Progress(25)) == [(0, 10)]


def test_within_the_lag_nothing_is_owed_while_the_source_says_the_same() -> None:
    assert owed([done(0, 10), done(10, 20), done(20, 25)], Progress(25, lag=12)) == []


def test_within_the_lag_all_is_read_again_when_a_row_has_come_late() -> None:
    states = [done(0, 10), done(10, 20), done(20, 25)]
    assert owed(states, Progress(25, lag=12), recent=8) == [(13, 20), (20, 30)]


def test_what_was_read_again_since_is_not_owed_once_more() -> None:
    states = [done(0, 10), done(10, 20, "25/1/None/None/8"), done(20, 25)]
    assert owed(states, Progress(25, lag=12), recent=8) == [(20, 30)]


class TestALagOfLoadsInAnyOrder:
    """It reaches back from the highest mark of a chunk; what the source says of the stretch shows late rows."""

    SAID = "25/1/None/None"

    def owed(
        self, states: list[ChunkState], stretch: str = "4/1", safe: int = 25
    ) -> list[tuple[int | None, int | None]]:
        extent = Extent(1, 25, 0, rows_at_upper=1, fingerprints=((13, stretch),))
        horizon = Horizon(SourceTransactions(0, "db"), CursorHistory(), safe)
        due = due_slices(CHUNKS, states, extent, kind="numeric", now=NOW, horizon=horizon, lag=12)
        bounds = [one.slice.bounds for one in due.slices]
        return [(b.interval.lower, b.interval.upper) for b in bounds if isinstance(b, CursorRange)]

    def loaded(self, stretch: str) -> list[ChunkState]:
        said = f"{self.SAID}|13:{stretch}"
        return [done(0, 10, said), done(10, 20, said), done(20, 25, said)]

    def test_nothing_is_owed_while_the_stretch_is_as_it_was(self) -> None:
        assert self.owed(self.loaded("4/1")) == []

    def test_what_lies_within_it_is_read_again_when_the_stretch_has_changed(self) -> None:
        assert self.owed(self.loaded("3/1")) == [(13, 20), (20, 30)]

    def test_a_row_dated_beyond_all_windows_does_not_end_the_lag(self) -> None:
        beyond = ChunkState("outside", CursorRange(Interval(30, None)), "done", 1, 1, cursor_committed=30, seen="empty")
        assert self.owed([*self.loaded("3/1"), beyond]) == [(13, 20), (20, 30)]

    def test_a_window_that_open_transactions_may_add_to_is_not_complete(self) -> None:
        extent = Extent(1, 25, 0, rows_at_upper=1)
        horizon = Horizon(SourceTransactions(0, "db"), CursorHistory(), 14)
        due = due_slices(CHUNKS, [], extent, kind="numeric", now=NOW, horizon=horizon)
        assert [(one.key, one.settles, committed_cursor(one, 19)) for one in due.slices] == [
            ("0", True, 10),
            ("10", False, 14),
            ("20", False, 20),
        ]

    def test_where_nothing_is_known_to_be_complete_all_stays_to_be_read_again(self) -> None:
        extent = Extent(1, 25, 0, rows_at_upper=1)
        horizon = Horizon(SourceTransactions(0, "db"), CursorHistory(), None)
        due = due_slices(CHUNKS, [], extent, kind="numeric", now=NOW, horizon=horizon)
        assert [(one.settles, committed_cursor(one, 19)) for one in due.slices] == [
            (False, 0),
            (False, 10),
            (False, 20),
        ]
