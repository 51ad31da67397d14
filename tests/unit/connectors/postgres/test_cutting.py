"""Cutting a table into parts loses no block and no cursor, and joining slices adds none."""

from __future__ import annotations

import re
from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st
from psycopg import sql

from hakiri_dagster.connectors.postgres.cursors import Cursor, merged
from hakiri_dagster.connectors.postgres.partitions import block_ranges, cursor_ranges
from hakiri_dagster.planning.chunks import Interval

NUMBER = Cursor("n", "int8", "numeric")
positions = st.integers(-50, 50)
edges = st.none() | positions


def holds(interval: Interval, position: int) -> bool:
    above = interval.lower is None or interval.lower <= position
    return above and (interval.upper is None or position < interval.upper)


def text(condition: sql.Composable | None) -> str:
    return "" if condition is None else condition.as_string()


@given(st.lists(st.integers(0, 500), min_size=1, max_size=5), st.integers(1, 16))
def test_block_ranges_follow_each_other_from_the_first_block_to_no_end(blocks: list[int], count: int) -> None:
    ranges = [text(one) for one in block_ranges(blocks, count)]
    if ranges == [""]:
        return
    bounds = [[int(n) for n in re.findall(r"\((\d+),0\)", one)] for one in ranges]
    assert bounds[0][0] == 0
    assert len(bounds[-1]) == 1, "rows that came since the table was measured belong to the last part"
    assert all(upper == following[0] for (_, upper), following in pairwise(bounds))
    assert all(lower < upper for lower, upper in bounds[:-1])
    assert len(ranges) <= count


@given(st.lists(st.integers(100, 500), min_size=1, max_size=5), st.integers(2, 8))
def test_block_ranges_are_of_about_the_same_size(blocks: list[int], count: int) -> None:
    ranges = [[int(n) for n in re.findall(r"\((\d+),0\)", text(one))] for one in block_ranges(blocks, count)]
    sizes = [sum(max(0, min(heap, upper) - lower) for heap in blocks) for lower, upper in ranges[:-1]]
    assert all(abs(size - sum(blocks) / count) <= len(blocks) + 1 for size in sizes)


@given(positions, st.integers(0, 100), st.integers(2, 12))
def test_cursor_ranges_take_every_position_once(lowest: int, width: int, count: int) -> None:
    ranges = [text(one) for one in cursor_ranges(NUMBER, lowest, lowest + width, count)]
    assert "IS NULL" in ranges[0]
    assert not any("IS NULL" in one for one in ranges[1:])
    if len(ranges) == 1:
        return
    uppers = [int(re.findall(r'"n" < +(-?\d+)', one)[0]) for one in ranges[:-1]]
    lowers = [int(re.findall(r'"n" >= +(-?\d+)', one)[0]) for one in ranges[1:]]
    assert uppers == lowers == sorted(set(lowers))


@given(st.lists(st.builds(Interval, edges, edges), max_size=6), st.integers(-60, 60))
def test_joined_slices_hold_the_same_positions_each_once(intervals: list[Interval], position: int) -> None:
    proper = [i for i in intervals if i.lower is None or i.upper is None or i.lower < i.upper]
    joined = merged(proper)
    assert sum(holds(one, position) for one in joined) == any(holds(one, position) for one in proper)


@given(st.sampled_from(["timestamp", "timestamptz"]), st.integers(-(10**17), 10**17))
def test_a_position_in_time_is_written_without_rounding(kind: str, position: int) -> None:
    literal = Cursor("at", kind, "timestamp").literal(position).as_string()
    found = re.search(r"'(-?\d+) days (\d+)(?:\.(\d{1,6}))? seconds'", literal)
    assert found is not None
    days, seconds, fraction = found.groups(default="0")
    assert (int(days) * 86_400 + int(seconds)) * 1_000_000 + int(fraction.ljust(6, "0")) == position
