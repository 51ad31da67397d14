"""Timestamps whose digits beyond microseconds were cut: counted where rows are staged, reported once a run."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

import pyarrow as pa
import pyarrow.compute as pc

from hakiri_dagster.connectors.contract import TRUNCATED_COLUMN


def count_truncated(rows: pa.RecordBatch) -> Counter[str]:
    """Return how many values of each column were cut."""
    if TRUNCATED_COLUMN not in rows.schema.names:
        return Counter()
    names = rows.column(TRUNCATED_COLUMN).drop_null()
    if not len(names):
        return Counter()
    return Counter({one["values"]: one["counts"] for one in pc.value_counts(names.flatten()).to_pylist()})


def truncation_warning(truncated: Mapping[str, int]) -> str:
    names = ", ".join(f"`{name}` ({values:,})" for name, values in sorted(truncated.items()))
    first = min(truncated)
    return (
        f"{sum(truncated.values()):,} timestamp(s) had digits beyond microseconds, which were cut: {names}; "
        f'`load.sub_microseconds = "quarantine"` quarantines their rows, '
        f'`columns = {{ "{first}" = "timestamp(6)" }}` permits it, and `"text"` keeps all digits'
    )
