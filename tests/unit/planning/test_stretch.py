from __future__ import annotations

import pytest

from hakiri_dagster.errors import UsageError
from hakiri_dagster.planning.chunks import CursorKind, Interval
from hakiri_dagster.planning.stretch import parse_stretch
from hakiri_dagster.planning.windows import DAY, HOUR

JANUARY_2 = DAY


def stretch(lower: str, upper: str, kind: CursorKind) -> Interval:
    return parse_stretch(lower, upper, kind, "shop/orders")


def test_times_are_utc_unless_they_say_otherwise_and_ids_are_whole_numbers() -> None:
    assert stretch("1970-01-02", "1970-01-02T06:00", "timestamp") == Interval(JANUARY_2, JANUARY_2 + 6 * HOUR)
    assert stretch("1970-01-02T02:00+02:00", "1970-01-02T06:00Z", "timestamp") == Interval(DAY, DAY + 6 * HOUR)
    assert stretch("1970-01-02", "1970-01-03", "date") == Interval(DAY, 2 * DAY)
    assert stretch("-5", "1000000000000000000", "numeric") == Interval(-5, 10**18)


@pytest.mark.parametrize(
    "text",
    [
        "", " ", "x", "'; DROP TABLE x; --", "2024-02-30", "2024-", "1e5", "٣", "infinity", "NaN", "2024-01-01T24:00",
        "9" * 5000, "\ud800", "1.5", "0x10", "1_000", "-",
    ],
)  # fmt: skip
@pytest.mark.parametrize("kind", ["timestamp", "date", "numeric"])
def test_what_is_no_place_on_the_cursor_is_told_with_an_example(text: str, kind: CursorKind) -> None:
    good = "5" if kind == "numeric" else "2024-01-01"
    for option, pair in (("--from", (text, good)), ("--to", (good, text))):
        with pytest.raises(UsageError) as told:
            stretch(*pair, kind)
        assert told.value.what.startswith(option)
        assert told.value.hint is not None
        assert len(str(told.value)) < 400


@pytest.mark.parametrize(
    ("lower", "upper", "kind", "what"),
    [
        ("2024-02-01", "2024-02-01", "date", "is not before --to"),
        ("7", "3", "numeric", "is not before --to"),
        ("2024-02-01T12:00", "2024-03-01", "date", "has a time of day, and the cursor is a date"),
        ("2024-02-01", "2024-03-01", "numeric", "is no number, and the cursor is one"),
        ("250000", "260000", "timestamp", "is no date or time, and the cursor is one"),
        ("0", "9223372036854775808", "numeric", "is beyond 64 bits"),
    ],
)
def test_what_does_not_fit_is_told(lower: str, upper: str, kind: CursorKind, what: str) -> None:
    with pytest.raises(UsageError, match=what) as told:
        stretch(lower, upper, kind)
    assert told.value.exit_code == 2
