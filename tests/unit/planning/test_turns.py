from __future__ import annotations

from hakiri_dagster.planning.chunks import Bounds, Chunk, CursorRange, Interval, NullCursor, Slice
from hakiri_dagster.planning.states import DueSlice
from hakiri_dagster.planning.turns import Turns, turns


def due(key: str, bounds: Bounds) -> DueSlice:
    return DueSlice(Slice(Chunk(key, bounds), bounds))


A, B, C = (due(key, CursorRange(Interval(at, at + 10))) for key, at in (("a", 0), ("b", 10), ("c", 20)))
NULLS = due("null", NullCursor())


def test_all_that_is_owed_is_loaded_in_the_order_of_the_cursor() -> None:
    assert turns([C, NULLS, B, A], {"a", "b", "c", "null"}) == Turns((A, B, C, NULLS))


def test_what_comes_after_a_chunk_that_is_owed_and_not_wanted_waits() -> None:
    assert turns([A, B, C], {"a", "c"}) == Turns((A,), (C,), "b")


def test_rows_without_a_cursor_wait_for_nobody() -> None:
    assert turns([A, B, NULLS], {"b", "null"}) == Turns((NULLS,), (B,), "a")


def test_nobody_waits_for_rows_without_a_cursor_or_for_what_comes_later() -> None:
    assert turns([A, B, NULLS], {"a"}) == Turns((A,))
