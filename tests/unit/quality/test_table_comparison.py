"""How the hashes of two sides are compared, and how chunks are cut into queries."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from hakiri_dagster.planning.chunks import CursorRange, Interval, NullCursor
from hakiri_dagster.planning.verification import ComparableChunk
from hakiri_dagster.quality.table_comparison import RowHash, compare_hashes, cut_into_batches

Rows = Sequence[tuple[int, int] | tuple[int, int, bool]]


@pytest.mark.parametrize(
    ("source", "target", "merges", "expected"),
    [
        pytest.param([(1, 1), (2, 2)], [(1, 1), (2, 2)], False, {}, id="the same"),
        pytest.param([(1, 1), (3, 3)], [(2, 2), (3, 9)], False, {"missing": 1, "surplus": 1, "changed": 1}, id="all"),
        pytest.param([(1, 1), (1, 1)], [(1, 1)], False, {"missing": 1}, id="one of two is lost"),
        pytest.param([(1, 1)], [(1, 1), (1, 1)], False, {"extra": 1}, id="doubled"),
        pytest.param([(1, 1), (1, 2)], [(1, 2), (1, 3)], False, {"changed": 1}, id="one of two changed"),
        pytest.param([(1, 1), (1, 2)], [(1, 2)], True, {}, id="merged: the last of a key stands for all"),
        pytest.param([(1, 1), (1, 2), (2, 1)], [], True, {"missing": 2}, id="merged: keys are missing, not rows"),
        pytest.param([(1, 1)], [(1, 1, False)], True, {}, id="merged: an equal row of others will do"),
        pytest.param([(1, 1)], [(1, 1, False)], False, {"missing": 1}, id="a row of others is not ours"),
        pytest.param([], [(1, 1, False), (2, 2)], False, {"surplus": 1}, id="rows of others are no surplus"),
        pytest.param([(-5, 0)], [(-5, 0), (7, 0)], False, {"surplus": 1}, id="hashes have signs"),
    ],
)
def test_what_differs_is_counted(source: Rows, target: Rows, merges: bool, expected: dict[str, int]) -> None:
    ours, theirs = ([RowHash(*row) for row in side] for side in (source, target))
    found = compare_hashes(ours, theirs, merges_by_key=merges, most_hashes=10)
    numbers = ("missing", "surplus", "extra", "changed")
    assert {name: getattr(found, name) for name in numbers if getattr(found, name)} == expected
    own = [row for row in theirs if row.is_own]
    assert (found.source_rows, found.target_rows) == (len(source), len(own))


def test_the_hashes_that_are_looked_up_elsewhere_are_bounded() -> None:
    found = compare_hashes([RowHash(n, 0) for n in range(9)], [], merges_by_key=False, most_hashes=4)
    assert (found.missing, found.missing_hashes) == (9, [0, 1, 2, 3])


WINDOWS = [ComparableChunk(str(n), (CursorRange(Interval(n, n + 1)),)) for n in range(10)]


def test_chunks_are_cut_into_batches_where_an_index_makes_each_cheap() -> None:
    chunks = [*reversed(WINDOWS), ComparableChunk("null", (NullCursor(),))]
    indexed = cut_into_batches(chunks, 4, lambda some: float(len(some)))
    assert [[chunk.key for chunk in batch] for batch in indexed] == [
        ["0", "1", "2", "3"], ["4", "5", "6", "7"], ["8", "9"], ["null"],
    ]  # fmt: skip
    scanned = cut_into_batches(chunks, 4, lambda _some: 100.0)
    assert [len(batch) for batch in scanned] == [10, 1], "each batch would read the whole table"
