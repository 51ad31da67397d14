"""Members of records for which there is no column."""

from __future__ import annotations

import pyarrow as pa

from hakiri_dagster.connectors.contract import UNSEEN_COLUMN
from hakiri_dagster.pipeline.unseen import added_up, packed, told_of, unpacked, unseen_in


def rows(*unseen: list[str] | None) -> pa.RecordBatch:
    return pa.record_batch({UNSEEN_COLUMN: pa.array(unseen, pa.list_(pa.string()))})


def test_values_are_counted_by_the_names_of_their_members() -> None:
    assert unseen_in(rows(["a", "b"], None, ["a"])) == {"a": 2, "b": 1}
    assert unseen_in(rows(None)) == {}
    assert unseen_in(pa.record_batch({"id": pa.array([1])})) == {}


def test_they_add_up_over_tasks_and_made_up_names_do_not_fill_memory() -> None:
    total = added_up({"a": 1}, unpacked(packed({"a": 2, "b": 1})))
    assert total == {"a": 3, "b": 1}
    many = added_up(total, {f"n{n}": 1 for n in range(10_000)})
    assert len(many) <= 201
    assert sum(many.values()) == 10_004


def test_they_are_told_with_the_most_frequent_first() -> None:
    assert told_of({}) is None
    told = told_of({"rare": 1, "often\n": 20} | {f"n{n}": 2 for n in range(10)})
    assert told is not None
    assert told.startswith("41 value(s) were not loaded, as their members have no column: `often ` (20), `n0` (2)")
    assert "`n8` (2) and 2 more; declare them under `columns`" in told
