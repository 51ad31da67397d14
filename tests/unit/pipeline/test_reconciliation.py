"""What a task reports of the rows that it counts once more: sums, whatever the batches."""

from __future__ import annotations

from collections.abc import Iterable

import pyarrow as pa
import pytest

from hakiri_dagster.pipeline.reconciliation import _DIGEST, _HALF, _Tallying
from hakiri_dagster.pipeline.slices import Splitter
from hakiri_dagster.planning.chunks import Bounds, CursorRange, Interval, WholeTable

HIGH = 2**60 - 1
"""As large as a row's digest gets: nine of them are more than 64 bits."""


def told(bounds: Iterable[Bounds], *batches: list[tuple[int, int | None]]) -> dict[int, tuple[int, int]]:
    """Rows and digest by slice, of rows with a cursor and a digest."""
    splitter = Splitter.of(list(bounds), {})
    tallying = _Tallying(splitter, None if splitter.single else "n")
    arrow = [
        pa.record_batch({"n": [n for n, _ in batch], _DIGEST: pa.array([one for _, one in batch], pa.int64())})
        for batch in batches
    ]
    (report,) = tallying(iter(arrow))
    return {row["slice"]: (row["rows"], (row["high"] << _HALF) + row["low"]) for row in report.to_pylist()}


@pytest.mark.parametrize("rows", [1, 9, 40_000])
def test_sums_are_exact_beyond_64_bits(rows: int) -> None:
    assert told([WholeTable()], [(1, HIGH)] * rows) == {0: (rows, rows * HIGH)}


def test_batches_add_up_to_one_row_a_slice() -> None:
    first, second = CursorRange(Interval(0, 10)), CursorRange(Interval(10, 20))
    batches = [(1, 5), (11, 7), (99, 1)], [], [(12, HIGH), (3, None), (13, HIGH)]
    assert told([first, second], *batches) == {0: (2, 5), 1: (3, 7 + 2 * HIGH)}


def test_a_task_without_rows_reports_none() -> None:
    assert told([WholeTable()]) == {}
