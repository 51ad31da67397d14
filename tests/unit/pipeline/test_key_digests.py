"""Which keys are equal, and where those that repeat are found."""

from __future__ import annotations

import tempfile
from collections import Counter
from collections.abc import Sequence
from datetime import UTC, date, datetime, time
from decimal import Decimal
from itertools import pairwise
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hakiri_dagster.errors import SourceUnavailable
from hakiri_dagster.pipeline.key_digests import Digests, added, checksums, digests_of, keyed_rows, signed
from hakiri_dagster.pipeline.key_lookup import KeyLookup, RepeatedKeys
from hakiri_dagster.pipeline.key_plan import Key, KeyPlan
from hakiri_dagster.pipeline.key_runs import KeyFile, Merge, Runs, bounds_of, places_of, repeated, write_keys
from hakiri_dagster.pipeline.slices import NO_SLICE, Splitter
from hakiri_dagster.planning.chunks import CursorRange, Interval, WholeTable

SEED = 7


def digests(*columns: pa.Array, rule: int = 0, slices: Sequence[int] | None = None) -> list[tuple[int, int]]:
    given = np.zeros(len(columns[0]), dtype=np.int32) if slices is None else np.array(slices, dtype=np.int32)
    return [(int(one), int(other)) for one, other in digests_of(columns, rule, given, SEED)]


@pytest.mark.parametrize(
    "values",
    [
        pa.array(["a", "A", "", "ä", "a ", "a\0"]),
        pa.array(["a", "b", "c"]).dictionary_encode(),
        pa.array([b"", b"\0", b"\0\0"]),
        pa.array([0, 1, -1, 2**31 - 1], pa.int32()),
        pa.array([0, 2**63 - 1, -(2**63)]),
        pa.array(
            [Decimal("0.00"), Decimal("0.01"), Decimal("-0.01"), Decimal("9999999999999.99")], pa.decimal128(15, 2)
        ),
        pa.array([0.0, 1.0, float("nan"), float("inf"), float("-inf"), 5e-324]),
        pa.array([True, False]),
        pa.array([date(1, 1, 1), date(2024, 1, 31), date(9999, 12, 31)]),
        pa.array([datetime(2024, 1, 1), datetime(2024, 1, 1, 0, 0, 0, 1)], pa.timestamp("us")),
        pa.array([datetime(2024, 1, 1, tzinfo=UTC), datetime(1969, 1, 1, tzinfo=UTC)], pa.timestamp("us", "UTC")),
        pa.array([time(0), time(23, 59)], pa.time64("us")),
    ],
)
def test_values_that_differ_have_digests_that_differ_wherever_they_lie(values: pa.Array) -> None:
    told = digests(values)
    assert len(set(told)) == len(values)
    assert digests(values.slice(1)) == told[1:]
    assert digests(pa.concat_arrays([values, values]).slice(1)) == [*told[1:], *told]


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (pa.array([0.0]), pa.array([-0.0])),
        (pa.array([float("nan")]), pa.array([-float("nan")])),
        (pa.array([1.5], pa.float32()), pa.array([1.5])),
        (pa.array(["a"]), pa.array(["a"], pa.large_string())),
        (pa.array([Decimal("1.00")], pa.decimal128(10, 2)), pa.array([Decimal("1.00")], pa.decimal128(38, 2))),
        (pa.array([1], pa.int8()), pa.array([1])),
    ],
)
def test_values_that_are_the_same_have_the_same_digest(one: pa.Array, other: pa.Array) -> None:
    assert digests(one) == digests(other)


def test_the_fields_of_a_key_do_not_run_into_one_another() -> None:
    one = digests(pa.array(["ab", "a"]), pa.array(["c", "bc"]))
    assert one[0] != one[1]
    assert digests(pa.array(["x"]), pa.array(["y"])) != digests(pa.array(["y"]), pa.array(["x"]))


def test_rules_and_slices_are_told_apart() -> None:
    values = pa.array(["a"])
    assert len({*digests(values), *digests(values, rule=1), *digests(values, slices=[1])}) == 3


def test_a_row_without_a_value_has_no_key() -> None:
    assert keyed_rows([pa.array(["a", None, "c"]), pa.array([1, 2, None])]).tolist() == [True, False, False]


def test_checksums_do_not_depend_on_the_order() -> None:
    found = digests_of([pa.array(["a", "b", "c", "a"])], 0, np.array([0, 0, 1, 0], dtype=np.int32), SEED)
    slices = np.array([0, 0, 1, 0], dtype=np.int32)
    turned = np.array([3, 2, 1, 0])
    assert checksums(found, slices) == checksums(found[turned], slices[turned])
    assert signed(added(2**64 - 1, 2**63)) == 2**63 - 1
    assert added(signed(2**64 - 1), 1) == 0


words = st.integers(0, 3) | st.integers(2**64 - 4, 2**64 - 1) | st.integers(0, 2**64 - 1)
"""Few enough that halves are the same now and then."""


@settings(deadline=None)  # it writes files
@given(st.lists(st.tuples(words, words), max_size=60), st.integers(1, 5), st.integers(1, 4))
def test_what_several_runs_hold_more_than_once_is_found_range_by_range(
    keys: list[tuple[int, int]], ranges: int, runs: int
) -> None:
    with tempfile.TemporaryDirectory() as folder:
        directory = Path(folder)
        names = tuple(
            write_keys(directory, "run", _sorted(keys[place::runs])) for place in range(runs) if keys[place::runs]
        )
        (found,) = (
            Merge(folder, names, ranges)(iter([pa.record_batch({"id": list(range(ranges))})])) if names else ([],)
        )
        files = [row["file"] for row in found.to_pylist()] if names else [None] * ranges
        asked = _array(keys)
        places = places_of(asked, ranges)
        again = {key for key, count in Counter(keys).items() if count > 1}
        for key, digest, place in zip(keys, asked, places.tolist(), strict=True):
            file = files[place]
            held = file is not None and bool(KeyFile.open(directory / file).holds(digest.reshape(1, 2))[0])
            assert held is (key in again)


def _array(keys: Sequence[tuple[int, int]]) -> Digests:
    return np.array(keys, dtype=np.uint64).reshape(-1, 2)


def _sorted(keys: Sequence[tuple[int, int]]) -> Digests:
    return _array(sorted(keys))


def test_ranges_cover_all_digests_once() -> None:
    for ranges in (1, 2, 3, 7):
        bounds = [bounds_of(place, ranges) for place in range(ranges)]
        assert bounds[0][0] == 0
        assert bounds[-1][1] == 2**64
        assert all(one[1] == other[0] for one, other in pairwise(bounds))


def test_nothing_repeats_in_nothing() -> None:
    assert len(repeated(_array([]))) == 0
    assert len(repeated(_array([(1, 1)]))) == 0
    assert repeated(_array([(1, 2), (1, 1), (1, 2), (1, 2)])).tolist() == [[1, 2]]


def seen(folder: Path, splitter: Splitter, *batches: pa.RecordBatch) -> RepeatedKeys:
    keys = (Key(0, ("k",), "once"), Key(1, ("k", "n"), "pair"))
    plan = KeyPlan(str(folder), keys, splitter, "n" if not splitter.single else None, False, SEED, run_rows=3)
    (told,) = plan(iter(batches))
    rows = told.to_pylist()
    names = tuple(row["file"] for row in rows if row["file"])
    (found,) = Merge(str(folder), names, 2)(iter([pa.record_batch({"id": [0, 1]})]))
    sums: dict[int, int] = {}
    for row in rows:
        if row["slice"] is not None:
            sums[row["slice"]] = added(sums.get(row["slice"], 0), row["checksum"])
    return RepeatedKeys(plan, tuple(row["file"] for row in found.to_pylist()), sums)


def test_every_row_of_a_group_is_marked_in_its_own_slice(tmp_path: Path) -> None:
    batch = pa.record_batch(
        {"k": ["a", "b", "a", None, None, "c", "a", "c", "b"], "n": [1, 1, 1, 1, 1, 15, 15, 15, 15]}
    )
    splitter = Splitter.of([CursorRange(Interval(0, 10)), CursorRange(Interval(10, 20))], {})
    repeated_keys = seen(tmp_path, splitter, batch.slice(0, 4), batch.slice(4))
    slices = splitter.assign(batch.num_rows, batch.column("n"), None)
    judged, sums = KeyLookup(repeated_keys).judged(batch, slices)
    assert judged.column("once").to_pylist() == [False, True, False, True, True, False, True, False, True]
    assert judged.column("pair").to_pylist() == judged.column("once").to_pylist()
    repeated_keys.refuse_others(sums)


def test_a_key_that_all_rows_have_takes_no_more_room_than_one_that_repeats(tmp_path: Path) -> None:
    runs = Runs(tmp_path, run_rows=1000)
    for _ in range(3):
        runs.add(_array([(7, 7)] * 998 + [(7, 8), (9, 9)]))
    assert [rows for _, rows in runs.written] == [4, 4, 4]
    merge = Merge(str(tmp_path), tuple(name for name, _ in runs.written), 1)
    file = merge.repeated(0)
    assert file is not None
    assert KeyFile.open(tmp_path / file).digests.tolist() == [[7, 7], [7, 8], [9, 9]]


def test_rows_of_chunks_that_are_not_loaded_do_not_count(tmp_path: Path) -> None:
    batch = pa.record_batch({"k": ["a", "a"], "n": [1, 15]})
    splitter = Splitter.of([CursorRange(Interval(0, 10)), CursorRange(Interval(30, 40))], {})
    assert splitter.assign(2, batch.column("n"), None).tolist() == [0, NO_SLICE]
    repeated_keys = seen(tmp_path, splitter, batch)
    assert repeated_keys.files == (None, None)


def test_rows_that_come_between_the_readings_are_told(tmp_path: Path) -> None:
    splitter = Splitter.of([WholeTable()], {})
    batch = pa.record_batch({"k": ["a", "b"], "n": [1, 2]})
    repeated_keys = seen(tmp_path, splitter, batch)
    more = pa.record_batch({"k": ["a", "b", "b"], "n": [1, 2, 3]})
    _, sums = KeyLookup(repeated_keys).judged(more, np.zeros(3, dtype=np.int32))
    with pytest.raises(SourceUnavailable, match="changed between the two readings"):
        repeated_keys.refuse_others(sums)
    with pytest.raises(SourceUnavailable, match="changed between the two readings"):
        repeated_keys.refuse_others({})
