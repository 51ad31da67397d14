"""When a file is complete, told by listings alone."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

from hakiri_dagster.planning.arrivals import Arrived, Stamp, Watched, arrived

NOON = datetime(2024, 3, 5, 12, 0, tzinfo=UTC)
SETTLE = timedelta(seconds=10)


def file(path: str, changed: float, size: int = 100) -> Stamp:
    """`changed`: how many seconds before noon."""
    return Stamp(path, size, int((NOON.timestamp() - changed) * 1e9))


def look(files: Sequence[Stamp], after: float = 0, before: Arrived | None = None) -> Arrived:
    watched = Watched() if before is None else Watched(before.complete, before.recent)
    return arrived(watched, files, NOON + timedelta(seconds=after), SETTLE)


def test_a_file_that_has_not_changed_for_long_is_complete_at_the_first_look() -> None:
    found = look([file("a.csv", 10), file("b.csv", 3600)])
    assert (found.waiting, found.recent) == (frozenset(), {})


def test_a_file_that_has_just_changed_is_waited_for_and_the_others_are_not() -> None:
    found = look([file("a.csv", 3600), file("b.csv", 9)])
    assert found.waiting == {"b.csv"}
    assert found.complete == look([file("a.csv", 3600)]).complete


def test_it_is_complete_when_it_has_settled() -> None:
    files = [file("a.csv", 2)]
    first = look(files)
    found = look(files, after=8, before=first)
    assert (found.waiting, found.recent) == (frozenset(), {})
    assert found.complete != first.complete == look([]).complete


def test_as_long_as_it_grows_it_is_waited_for() -> None:
    found = look([file("a.csv", 0, size=1)])
    for second in range(5, 60, 5):
        found = look([file("a.csv", -second, size=second)], after=second, before=found)
        assert found.waiting == {"a.csv"}


def test_a_file_from_a_clock_that_is_ahead_is_complete_once_it_was_seen_unchanged_for_long_enough() -> None:
    ahead = [file("a.csv", -3600)]
    first = look(ahead)
    second = look(ahead, after=9, before=first)
    third = look(ahead, after=10, before=second)
    assert [bool(found.waiting) for found in (first, second, third)] == [True, True, False]
    assert look(ahead, after=15, before=third).complete == third.complete


def test_what_is_written_anew_or_goes_is_told_from_what_was_there() -> None:
    complete = look([file("a.csv", 3600), file("b.csv", 3600)]).complete
    assert look([file("a.csv", 3600), file("b.csv", 1800)]).complete != complete
    assert look([file("a.csv", 3600), file("b.csv", 3600, size=7)]).complete != complete
    assert look([file("a.csv", 3600)]).complete != complete
