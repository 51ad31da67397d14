from __future__ import annotations

from pathlib import Path

import pytest

from hakiri_dagster.connectors.contract import FileState, RecordPlace
from hakiri_dagster.connectors.files.markers import marker_of
from hakiri_dagster.connectors.files.source_lines import Lookup, SourceLines
from hakiri_dagster.connectors.files.splits import Splits
from hakiri_dagster.errors import SourceError


def lines_of(folder: Path, path: Path, splits: Splits | None = None, *, passes_over: bool = False) -> SourceLines:
    """Of a file whose records begin on every second line."""
    path.write_text("x")
    status = path.stat()
    state = FileState(str(path), f"{status.st_size}-{status.st_mtime_ns}", "00")

    def asked() -> Splits:
        if splits is None:
            raise SourceError("the files are gone")
        return splits

    begins = iter([2, 4, 6, 8, 10])
    return Lookup(lambda _: begins, {str(path): state}, asked, passes_over, "shop/orders").in_folder(folder)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "a.csv"


def test_the_first_split_of_a_file_that_is_read_whole_needs_nothing_but_the_file(tmp_path: Path, path: Path) -> None:
    lines = lines_of(tmp_path, path)
    assert [lines(RecordPlace(str(path), 0, after)) for after in (0, 4, 5)] == [2, 10, None]
    assert lines(RecordPlace(str(path), 100, 0)) is None, "nobody knows what comes before it"


def test_records_before_a_split_and_those_that_were_passed_over_count(tmp_path: Path, path: Path) -> None:
    marker = marker_of(str(path))
    splits = Splits({(marker, 0): 1, (marker, 100): 3}, {marker: 5})
    lines = lines_of(tmp_path, path, splits, passes_over=True)
    assert lines(RecordPlace(str(path), 0, 0)) == 4
    assert lines(RecordPlace(str(path), 100, 1)) == 10
    assert lines(RecordPlace(str(path), 70, 0)) is None, "Spark has cut the file elsewhere this time"


def test_no_line_is_told_if_spark_has_counted_other_records(tmp_path: Path, path: Path) -> None:
    marker = marker_of(str(path))
    lines = lines_of(tmp_path, path, Splits({(marker, 100): 3}, {marker: 6}))
    assert lines(RecordPlace(str(path), 100, 0)) is None


def test_no_line_is_told_of_a_file_that_has_changed(tmp_path: Path, path: Path) -> None:
    lines = lines_of(tmp_path, path)
    path.write_text("longer")
    assert lines(RecordPlace(str(path), 0, 0)) is None
