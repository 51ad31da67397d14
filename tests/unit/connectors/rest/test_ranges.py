from __future__ import annotations

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hakiri_dagster.connectors.rest.ranges import CursorParams, Format, PositionOf, as_position
from hakiri_dagster.errors import SourceError
from hakiri_dagster.planning.chunks import CursorKind, Interval
from tests.unit.connectors.rest.records import record


def at(text: str) -> int:
    return as_position(datetime.fromisoformat(text))


JANUARY = Interval(at("2024-01-01T00:00:00+00:00"), at("2024-02-01T00:00:00+00:00"))


@pytest.mark.parametrize(
    ("format_", "inclusive", "expected"),
    [
        ("iso8601", True, ("2024-01-01T00:00:00Z", "2024-02-01T00:00:00Z")),
        ("iso8601", False, ("2023-12-31T23:59:59Z", "2024-02-01T00:00:00Z")),
        ("date", True, ("2024-01-01", "2024-02-01")),
        ("date", False, ("2023-12-31", "2024-02-01")),
        ("epoch", True, ("1704067200", "1706745600")),
        ("epoch", False, ("1704067199", "1706745600")),
        ("epoch_ms", False, ("1704067199999", "1706745600000")),
    ],
)
def test_a_window_is_asked_for_as_the_api_writes_it(
    format_: Format, inclusive: bool, expected: tuple[str, str]
) -> None:
    asked = CursorParams("since", "until", format_, inclusive)
    assert asked.asked(JANUARY) == (("since", expected[0]), ("until", expected[1]))


def test_ids_are_asked_for_as_they_are() -> None:
    assert CursorParams("after", None, "number").asked(Interval(100, 200)) == (("after", "99"),)
    assert CursorParams("from", "to", "number", inclusive=True).asked(Interval(100, 200)) == (
        ("from", "100"),
        ("to", "200"),
    )


def test_what_has_no_bound_is_not_asked_for() -> None:
    asked = CursorParams("since", "until")
    assert asked.asked(Interval(None, None)) == ()
    assert asked.asked(Interval(-(2**63), 2**63 - 1)) == ()
    assert CursorParams("since", format="epoch").asked(Interval(0, None)) == ()


TIMES = st.datetimes(datetime(1971, 1, 1), datetime(9000, 1, 1), timezones=st.just(UTC)).map(as_position)


@given(TIMES, st.integers(1, 10**13), st.sampled_from(["iso8601", "date", "epoch", "epoch_ms"]), st.booleans())
def test_an_api_that_does_as_it_is_asked_gives_all_of_the_range(
    lower: int, width: int, format_: Format, inclusive: bool
) -> None:
    """Whether it takes the lower value with it, and whether it takes the upper one."""
    upper = lower + width
    params = dict(CursorParams("a", "b", format_, inclusive).asked(Interval(lower, upper)))
    low, high = read_by_the_api(params["a"], format_), read_by_the_api(params["b"], format_)
    assert low <= lower if inclusive else low < lower
    assert upper - 1 < high


def read_by_the_api(text: str, format_: Format) -> int:
    match format_:
        case "epoch":
            return int(text) * 1_000_000
        case "epoch_ms":
            return int(text) * 1_000
        case _:
            moment = datetime.fromisoformat(text)
            return as_position(moment)


@pytest.mark.parametrize(
    ("kind", "value", "expected"),
    [
        ("timestamp", '"1970-01-01T00:00:01Z"', 1_000_000),
        ("timestamp", '"1970-01-01T01:00:00.5+01:00"', 500_000),
        ("timestamp", '"1970-01-01 00:00:01"', 1_000_000),
        ("timestamp", '"soon"', None),
        ("timestamp", "5", None),
        ("date", '"1970-01-02"', 86_400_000_000),
        ("date", '"1970-01-02T10:00:00Z"', 86_400_000_000),
        ("numeric", "7", 7),
        ("numeric", "-7.5", -8),
        ("numeric", '"7"', 7),
        ("numeric", '"x"', None),
        ("numeric", "true", None),
        ("numeric", "null", None),
        ("numeric", '{"a":1}', None),
        ("numeric", "1e999", None),
        ("numeric", '"1e308"', 10**308),
        ("numeric", '"1e999999999"', None),
        ("numeric", '"1e-999999999"', 0),
        ("numeric", '"-1e-999999999"', -1),
        ("numeric", '"nan"', None),
        ("numeric", '"inf"', None),
    ],
)
def test_a_record_lies_where_its_cursor_says(kind: CursorKind, value: str, expected: int | None) -> None:
    assert PositionOf("c", kind)(record(f'{{"c":{value}}}')) == expected


@pytest.mark.parametrize("text", ["5", "[]", '{"d":1}'])
def test_a_record_without_a_cursor_lies_nowhere(text: str) -> None:
    assert PositionOf("c", "numeric")(record(text)) is None


@pytest.mark.parametrize(("kind", "format_"), [("numeric", "epoch"), ("timestamp", "number"), ("date", "number")])
def test_a_format_that_does_not_fit_the_cursor_is_refused(kind: CursorKind, format_: Format) -> None:
    with pytest.raises(SourceError, match=r"`cursor_params\.format` is"):
        CursorParams("since", format=format_).refuse_misfit(kind, "p/t")
