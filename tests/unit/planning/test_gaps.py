from __future__ import annotations

from hakiri_dagster.planning.chunks import Chunk, CursorRange, Interval, NullCursor, SourceFile, WholeTable
from hakiri_dagster.planning.gaps import Vanished, stretches, to_be_there
from tests.unit.planning.ledger_rows import PublishedSlice


def load(load_id: int, lower: int | None, upper: int | None, rows: int = 1) -> PublishedSlice:
    return PublishedSlice(f"{lower}", CursorRange(Interval(lower, upper)), rows, upper, load_id, 1)


def ids(*ledger: PublishedSlice) -> list[int]:
    return [row.load_id for row in to_be_there(ledger)]


def test_a_load_that_no_later_one_reaches_into_has_its_rows_in_the_target() -> None:
    assert ids(load(1, None, 10), load(2, 10, 20), load(3, 20, 30)) == [1, 2, 3]
    assert ids(load(1, 0, 10, rows=0), load(2, 10, 20)) == [2], "one without rows has none to lose"


def test_of_two_that_overlap_the_later_one_may_have_taken_all_rows_of_the_earlier() -> None:
    assert ids(load(1, 0, 30), load(2, 25, 30), load(3, 30, 40)) == [2, 3]
    assert ids(load(5, 0, 30), load(2, 25, 30)) == [5]
    assert ids(load(1, 0, None), load(2, 10, 20), load(3, 15, 16)) == [3]


def test_rows_without_a_cursor_are_overlapped_by_no_window() -> None:
    assert ids(load(2, 0, 10), PublishedSlice("null", NullCursor(), 1, None, 1, 1)) == [2, 1]


def test_what_was_loaded_otherwise_before_may_have_been_replaced_in_any_part() -> None:
    file = PublishedSlice("a", SourceFile("a", "1" * 32), 1, None, 1, 1)
    whole = PublishedSlice("full", WholeTable(), 1, None, 2, 1)
    assert ids(file, whole) == [1, 2]
    assert ids(file, whole, load(3, 0, 10)) == [3]
    assert ids(load(1, 0, 10), PublishedSlice("a", SourceFile("a", "1" * 32), 1, None, 2, 1)) == [2]


def test_windows_that_touch_are_told_together() -> None:
    windows = [Chunk(str(n), CursorRange(Interval(n, n + 10))) for n in (30, 0, 10)]
    null = Chunk("null", NullCursor())
    assert stretches([*windows, null]) == (
        Vanished(("0", "10"), Interval(0, 20)),
        Vanished(("30",), Interval(30, 40)),
        Vanished(("null",), None),
    )
