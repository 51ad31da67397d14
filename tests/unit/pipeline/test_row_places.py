"""Where rows came from: told once for those that follow one another and have it in common."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from hakiri_dagster.connectors.contract import FILE_COLUMN, RECORD_COLUMN, SPLIT_COLUMN, FileOrigin
from hakiri_dagster.pipeline.row_places import Place, Places

FILES = (FileOrigin(11, "a.csv", b"a"), FileOrigin(22, "b.csv", b"b"))


def runs(places: Places, slices: list[int], **columns: pa.Array | list[int]) -> list[tuple[int, int, Place]]:
    rows = pa.record_batch({"v": list(range(len(slices))), **columns})
    places.note(rows)
    return list(places.runs(rows, np.array(slices, dtype=np.int32)))


def test_rows_of_the_only_file_are_told_together_slice_by_slice() -> None:
    assert runs(Places(FILES[:1]), [0, 0, 1, 1, 1, 0]) == [
        (0, 2, Place("a.csv")),
        (2, 5, Place("a.csv")),
        (5, 6, Place("a.csv")),
    ]


def test_rows_of_several_files_are_told_file_by_file() -> None:
    assert runs(Places(FILES), [0, 0, 0, 0], **{FILE_COLUMN: [11, 22, 22, 11]}) == [
        (0, 1, Place("a.csv")),
        (1, 3, Place("b.csv")),
        (3, 4, Place("a.csv")),
    ]


def test_rows_of_no_file_are_told_together() -> None:
    assert runs(Places(()), [3, 3]) == [(0, 2, Place())]
    markers = pa.array([None, None, 22], pa.int64())
    assert runs(Places(FILES), [3, 3, 3], **{FILE_COLUMN: markers}) == [(0, 2, Place()), (2, 3, Place("b.csv"))]


def test_never_are_too_many_rows_told_together() -> None:
    told = runs(Places(FILES[:1]), [0] * 2500)
    assert [(begin, end) for begin, end, _ in told] == [(0, 1000), (1000, 2000), (2000, 2500)]


def test_each_line_of_a_split_has_a_place_of_its_own() -> None:
    places = Places(FILES[:1])
    first = {SPLIT_COLUMN: [5, 5, 9], RECORD_COLUMN: [100, 101, 300]}
    assert runs(places, [0, 0, 0], **first) == [
        (0, 1, Place("a.csv", 5, 0)),
        (1, 2, Place("a.csv", 5, 1)),
        (2, 3, Place("a.csv", 9, 0)),
    ]
    assert runs(places, [0], **{SPLIT_COLUMN: [9], RECORD_COLUMN: [302]}) == [(0, 1, Place("a.csv", 9, 2))]
