from __future__ import annotations

from hakiri_dagster.planning.chunks import Bounds, Chunk, CursorRange, Interval, NullCursor, Part, Slice
from hakiri_dagster.planning.states import DueSlice
from hakiri_dagster.planning.turns import Turns, turns


def due(key: str, bounds: Bounds) -> DueSlice:
    return DueSlice(Slice(Chunk(key, bounds), bounds))


A, B, C = (due(key, CursorRange(Interval(at, at + 10))) for key, at in (("a", 0), ("b", 10), ("c", 20)))
NULLS = due("null", NullCursor())


def test_all_that_is_owed_is_loaded_in_the_order_of_the_cursor() -> None:
    assert turns([C, NULLS, B, A], {"a", "b", "c", "null"}) == Turns((A, B, C, NULLS))


def test_what_comes_after_a_chunk_that_is_owed_and_not_wanted_waits() -> None:
    assert turns([A, B, C], {"a", "c"}) == Turns((A,), (C,), {"c": "b"})


def test_rows_without_a_cursor_wait_for_nobody() -> None:
    assert turns([A, B, NULLS], {"b", "null"}) == Turns((NULLS,), (B,), {"b": "a"})


def test_nobody_waits_for_rows_without_a_cursor_or_for_what_comes_later() -> None:
    assert turns([A, B, NULLS], {"a"}) == Turns((A,))


def test_parts_go_side_by_side_and_wait_for_their_own_chunks_only() -> None:
    one, other = Part("stream", "x"), Part("stream", "y")
    owed = [
        due(f"{part.value}|{at}", CursorRange(Interval(at, at + 10), part)) for part in (one, other) for at in (10, 0)
    ]
    found = turns(owed, {"x|0", "x|10", "y|10"})
    assert [each.key for each in found.ready] == ["x|0", "x|10"]
    assert (found.waiting[0].key, found.on) == ("y|10", {"y|10": "y|0"})
    assert [each.key for each in turns(owed, {each.key for each in owed}).ready] == ["x|0", "y|0", "x|10", "y|10"]
