"""Timestamps that lost digits beyond microseconds."""

from __future__ import annotations

import pyarrow as pa

from hakiri_dagster.connectors.contract import TRUNCATED_COLUMN
from hakiri_dagster.pipeline.truncated_timestamps import count_truncated, truncation_warning


def test_they_are_counted_by_column() -> None:
    marks = pa.array([["at", "seen"], None, ["at"]], pa.list_(pa.string()))
    assert count_truncated(pa.record_batch({TRUNCATED_COLUMN: marks})) == {"at": 2, "seen": 1}
    assert count_truncated(pa.record_batch({TRUNCATED_COLUMN: marks.slice(1, 1)})) == {}
    assert count_truncated(pa.record_batch({"id": pa.array([1])})) == {}


def test_the_warning_counts_them_and_names_the_ways_out() -> None:
    assert truncation_warning({"seen": 1, "at": 1200}) == (
        "1,201 timestamp(s) had digits beyond microseconds, which were cut: `at` (1,200), `seen` (1); "
        '`load.sub_microseconds = "quarantine"` quarantines their rows, '
        '`columns = { "at" = "timestamp(6)" }` permits it, and `"text"` keeps all digits'
    )
