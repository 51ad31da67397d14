from __future__ import annotations

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hakiri_dagster.errors import PlanError
from hakiri_dagster.planning.chunk_plan import FIRST_WINDOW, WindowSettings, plan_chunks, plan_file_chunks
from hakiri_dagster.planning.chunks import CursorRange, Extent, Interval, SourceFile
from hakiri_dagster.planning.intervals import high, low
from hakiri_dagster.planning.windows import DAY, EARLIEST, to_position

NOW = datetime(2026, 11, 18, 12, tzinfo=UTC)
TODAY = to_position(NOW)


def _ranges(extent: Extent, settings: WindowSettings, kind: str = "timestamp") -> list[Interval]:
    chunks = plan_chunks(kind, extent, settings, NOW)  # type: ignore[arg-type]  # a sampled literal
    return [chunk.bounds.interval for chunk in chunks if isinstance(chunk.bounds, CursorRange)]


@st.composite
def _cases(draw: st.DrawFn) -> tuple[str, Extent, WindowSettings]:
    kind = draw(st.sampled_from(["timestamp", "numeric"]))
    if kind == "numeric":
        position = st.integers(-5_000, 5_000)
        window: str | int = draw(st.integers(1, 2_000))
    else:
        position = st.integers(TODAY - 400 * DAY, TODAY + 400 * DAY)
        window = draw(st.sampled_from(["1d", "1w", "30d", "1mo", "5mo", "1y", "2y"]))
    lower, upper = sorted((draw(position), draw(position)))
    settings = WindowSettings.parse(kind, window, None)  # type: ignore[arg-type]  # a sampled literal
    start_from = draw(st.none() | position)
    extent = Extent(lower, upper, nulls=draw(st.integers(0, 2)))
    return kind, extent, WindowSettings(settings.window, start_from)


@given(_cases(), st.data())
def test_a_plan_covers_every_value_from_the_start_on_exactly_once(
    case: tuple[str, Extent, WindowSettings], data: st.DataObject
) -> None:
    kind, extent, settings = case
    assert extent.lower is not None
    assert extent.upper is not None
    ranges = _ranges(extent, settings, kind)
    edges = [edge for r in ranges for edge in (r.lower, r.upper) if edge is not None]
    some = data.draw(st.lists(st.sampled_from(edges), max_size=9)) if edges else []
    values = st.integers(extent.lower, extent.upper)
    for value in (data.draw(values), extent.lower, extent.upper, *edges[:3], *some, *edges[-3:]):
        holders = sum(low(r) <= value < high(r) for r in ranges)
        if settings.start_from is not None and value < settings.start_from:
            assert holders == 0
        elif extent.lower <= value <= extent.upper:
            assert holders == 1
        else:
            assert holders <= 1


@given(_cases())
def test_keys_are_unique_and_in_order_and_nulls_have_a_chunk(case: tuple[str, Extent, WindowSettings]) -> None:
    kind, extent, settings = case
    chunks = plan_chunks(kind, extent, settings, NOW)  # type: ignore[arg-type]  # a sampled literal
    keys = [chunk.key for chunk in chunks]
    windows = [key for key in keys if key not in ("null", "outside")]
    assert windows == sorted(set(windows))
    assert ("null" in keys) == (extent.nulls > 0)


def test_an_empty_source_has_no_chunks() -> None:
    assert plan_chunks("timestamp", Extent(None, None, 0), WindowSettings.parse("timestamp", None, None), NOW) == ()


def test_the_first_window_is_clipped_and_keeps_its_key() -> None:
    settings = WindowSettings.parse("timestamp", "1mo", "2026-10-10")
    extent = Extent(to_position(datetime(2020, 1, 1, tzinfo=UTC)), TODAY, 0)
    first, second = plan_chunks("timestamp", extent, settings, NOW)
    assert (first.key, second.key) == ("2026-10", "2026-11")
    assert first.bounds == CursorRange(Interval(settings.start_from, to_position(datetime(2026, 11, 1, tzinfo=UTC))))


def test_rows_dated_in_the_future_are_outside_and_cost_no_windows() -> None:
    extent = Extent(TODAY - DAY, to_position(datetime(2099, 1, 1, tzinfo=UTC)), 0)
    chunks = plan_chunks("timestamp", extent, WindowSettings.parse("timestamp", "1d", None), NOW)
    assert [chunk.key for chunk in chunks] == ["2026-11-17", "2026-11-18", "outside"]


@pytest.mark.parametrize("earliest", [EARLIEST - 400 * DAY, EARLIEST, FIRST_WINDOW - 1])
def test_rows_of_long_ago_are_in_the_first_window_and_cost_no_others(earliest: int) -> None:
    settings = WindowSettings.parse("timestamp", "1y", None)
    first, *_, last = plan_chunks("timestamp", Extent(earliest, TODAY, 0), settings, NOW)
    assert (first.key, last.key) == ("1970", "2026")
    assert low(first.bounds.interval) == float("-inf")  # type: ignore[union-attr]  # a window
    (only,) = plan_chunks("timestamp", Extent(earliest, earliest + DAY, 0), settings, NOW)
    assert only == first


def test_a_start_of_long_ago_is_kept() -> None:
    settings = WindowSettings.parse("timestamp", "1y", "0900-01-01")
    first, *_ = plan_chunks("timestamp", Extent(EARLIEST, TODAY, 0), settings, NOW)
    assert (first.key, low(first.bounds.interval)) == ("1970", settings.start_from)  # type: ignore[union-attr]


@pytest.mark.parametrize(("window", "better"), [("15m", '"6h"'), ("1h", '"6h"')])
def test_far_too_many_windows_are_refused_with_one_that_fits(window: str, better: str) -> None:
    extent = Extent(to_position(datetime(1800, 1, 1, tzinfo=UTC)), TODAY, 0)
    settings = WindowSettings.parse("timestamp", window, None)
    with pytest.raises(PlanError, match="more than 100,000") as refused:
        plan_chunks("timestamp", extent, settings, NOW)
    assert f"backfill.window to {better}" in str(refused.value)


def test_far_too_many_id_ranges_are_refused() -> None:
    extent = Extent(0, 10**9, 0)
    with pytest.raises(PlanError, match=r"backfill\.window to 100000 "):
        plan_chunks("numeric", extent, WindowSettings.parse("numeric", 1_000, None), NOW)


def test_two_files_of_one_content_are_one_chunk() -> None:
    files = [
        SourceFile("in/b.csv", "aa" * 16),
        SourceFile("in/a b;c.csv", "aa" * 16),
        SourceFile("in/c.csv", "bb" * 16),
    ]
    chunks, warnings = plan_file_chunks(files)
    assert [chunk.key for chunk in chunks] == ["a_b_c.csv-aaaaaaaaaaaa", "c.csv-bbbbbbbbbbbb"]
    assert warnings == ("in/b.csv has the same content as in/a b;c.csv: its rows are loaded once",)
