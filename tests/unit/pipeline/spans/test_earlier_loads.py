"""Which loads the rows of a chunk came with until now."""

from __future__ import annotations

from datetime import UTC, datetime

from hakiri_dagster.destinations.contract import LedgerEntry
from hakiri_dagster.pipeline.spans.earlier_loads import EarlierLoads
from hakiri_dagster.planning.chunks import Bounds, Chunk, CursorRange, Interval, Slice, SourceFile, WholeTable
from hakiri_dagster.planning.states import ChunkState, DueSlice

TEN = CursorRange(Interval(0, 10))


def entry(load_id: int, key: str, bounds: Bounds) -> LedgerEntry:
    return LedgerEntry(load_id, key, bounds, 1, 1, None, f"run-{load_id}", 1, datetime(2024, 1, 1, tzinfo=UTC), False)


def replaced(states: list[ChunkState], ledger: list[LedgerEntry], due: DueSlice) -> list[int]:
    earlier = EarlierLoads({state.key: state for state in states}, {one.load_id: one for one in ledger})
    return [one.load_id for one in earlier.replaced_by(due)]


def due(key: str, bounds: Bounds, slice_bounds: Bounds | None = None, supersedes: tuple[str, ...] = ()) -> DueSlice:
    return DueSlice(Slice(Chunk(key, bounds), slice_bounds or bounds), supersedes=supersedes)


def test_a_first_load_replaces_none() -> None:
    assert replaced([ChunkState("a", TEN)], [entry(1, "b", TEN)], due("a", TEN)) == []


def test_a_chunk_that_is_loaded_again_replaces_its_load() -> None:
    assert replaced([ChunkState("a", TEN, load_id=1)], [entry(1, "a", TEN)], due("a", TEN)) == [1]


def test_a_slice_that_goes_on_from_a_mark_replaces_none() -> None:
    rest = CursorRange(Interval(7, 10))
    assert replaced([ChunkState("a", TEN, load_id=1)], [entry(1, "a", TEN)], due("a", TEN, rest)) == []


def test_a_chunk_of_a_new_plan_replaces_the_loads_that_it_took_over() -> None:
    halves = [entry(1, "a", CursorRange(Interval(0, 5))), entry(2, "b", CursorRange(Interval(5, 10)))]
    assert replaced([ChunkState("ab", TEN, load_id=9, carried_from=(1, 2))], halves, due("ab", TEN)) == [1, 2]


def test_a_rewritten_file_replaces_the_load_of_what_it_was() -> None:
    old, new = SourceFile("a.csv", "0" * 32), SourceFile("a.csv", "1" * 32)
    states = [ChunkState("a.csv-0", old, load_id=1), ChunkState("a.csv-1", new)]
    assert replaced(states, [entry(1, "a.csv-0", old)], due("a.csv-1", new, supersedes=("a.csv-0",))) == [1]


def test_a_load_that_the_destination_has_named_is_named() -> None:
    """It has counted the rows that went: of a chunk that was taken back the audit DB may know no load any more."""
    known = {1: entry(1, "a", CursorRange(Interval(0, 20)))}
    assert [one.load_id for one in EarlierLoads({}, known).replaced_by(due("a", TEN), [1, 2])] == [1]


def test_a_load_that_the_ledger_does_not_know_is_not_named() -> None:
    assert replaced([ChunkState("full", WholeTable(), load_id=1)], [], due("full", WholeTable())) == []
