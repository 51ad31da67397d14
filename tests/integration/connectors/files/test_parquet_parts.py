"""Parquet without Spark's reader. That both ways give the same rows is asserted by `source.rows` in every test."""

from __future__ import annotations

import os
import pickle
from datetime import date, timedelta
from decimal import Decimal

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from hakiri_dagster.connectors.contract import FILE_COLUMN
from hakiri_dagster.errors import SourceError
from hakiri_dagster.planning.chunks import CursorRange, Interval, NullCursor

DAY = 86_400_000_000


def put(source, name, columns, metadata=None, **options):
    path = source.write(name, b"")
    pq.write_table(pa.table(columns).replace_schema_metadata(metadata), path, **options)
    return path


def direct_rows(direct):
    return [row for part in range(direct.parts) for batch in direct.read(part) for row in batch.to_pylist()]


def test_rows_survive_the_way_to_a_worker(source):
    put(source, "a.parquet", {"id": [1, 2], "name": ["x", None]})
    direct = pickle.loads(pickle.dumps(source.read(source.discover()).direct))
    assert direct_rows(direct) == [{"id": 1, "name": "x"}, {"id": 2, "name": None}]


def test_rows_of_many_files_name_theirs(source):
    put(source, "a.parquet", {"id": [1]})
    put(source, "b.parquet", {"id": [2], "more": ["x"]})
    reading = source.read(source.discover())
    by_marker = {origin.marker: origin.path[-9:] for origin in reading.files}
    rows = [(by_marker[row[FILE_COLUMN]], row["id"], row["more"]) for row in direct_rows(reading.direct)]
    assert rows == [("a.parquet", 1, None), ("b.parquet", 2, "x")]
    assert len(source.rows()) == 2


@pytest.mark.parametrize(
    "array",
    [
        pa.array([[1]]),
        pa.array([{"x": 1}]),
        pa.array([1], pa.timestamp("ns")),
        pa.array([2**64 - 1], pa.uint64()),
        pa.array([b"0123456789abcdef"], pa.uuid()),
    ],
    ids=str,
)
def test_what_spark_converts_is_left_to_spark(source, array):
    put(source, "a.parquet", {"id": [1], "c": array})
    assert source.read(source.discover()).direct is None


def test_a_type_that_the_manifest_declares_is_left_to_spark(source):
    source.columns = {"id": "text"}
    put(source, "a.parquet", {"id": [1]})
    assert source.read(source.discover()).direct is None


@pytest.mark.parametrize(
    "metadata",
    [
        {"org.apache.spark.version": "2.4.8"},
        {"org.apache.spark.version": "3.5.1", "org.apache.spark.legacyDateTime": ""},
    ],
)
def test_days_of_the_julian_calendar_are_left_to_spark(source, metadata):
    put(source, "a.parquet", {"day": [date(1500, 3, 1)]}, metadata)
    found = source.discover()
    assert source.read(found).direct is None
    assert source.rows(found)[0].day == date(1500, 2, 20)


def test_row_groups_outside_the_windows_are_not_read(source):
    first = date(2024, 1, 1)
    put(source, "a.parquet", {"day": [first + timedelta(days=n) for n in range(100)]}, row_group_size=10)
    lower = (first - date(1970, 1, 1)).days + 25
    window = CursorRange(Interval(lower * DAY, (lower + 10) * DAY))
    found = source.discover(cursor="day")
    assert len(direct_rows(source.read(found, "day", window).direct)) == 20
    assert len(source.rows(found, "day", window)) == 10


def test_rows_without_a_cursor_are_found_in_their_row_groups(source):
    put(source, "a.parquet", {"n": [1, 2, 3, None], "d": [Decimal("1.5")] * 4}, row_group_size=2)
    found = source.discover(cursor="n")
    assert direct_rows(source.read(found, "n", NullCursor()).direct)[-1] == {"n": None, "d": Decimal("1.5")}
    assert len(direct_rows(source.read(found, "n", NullCursor()).direct)) == 2
    assert [row.n for row in source.rows(found, "n", NullCursor())] == [None]


def test_a_window_that_no_row_group_touches_has_no_rows(source):
    put(source, "a.parquet", {"n": [1, 100]}, row_group_size=1)
    window = CursorRange(Interval(40, 50))
    direct = source.read(source.discover(cursor="n"), "n", window).direct
    assert direct.parts == 1
    assert direct_rows(direct) == []


def test_a_file_is_shared_out_to_several_tasks(source):
    noise = pa.array([bytes(range(256)) * 64] * 1024)
    put(source, "a.parquet", {"c": noise}, row_group_size=64, compression="none", use_dictionary=False)
    put(source, "b.parquet", {"c": noise}, row_group_size=64, compression="none", use_dictionary=False)
    put(source, "c.parquet", {"c": noise}, row_group_size=64, compression="none", use_dictionary=False)
    direct = source.read(source.discover()).direct
    assert direct.parts == 2
    read = [sum(batch.num_rows for batch in direct.read(part)) for part in range(2)]
    assert sum(read) == 3 * 1024
    assert min(read) > 1024  # neither task has one file only


def test_batches_of_wide_rows_are_small(source):
    put(source, "a.parquet", {"c": ["x" * 1_000_000] * 64})
    direct = source.read(source.discover()).direct
    assert max(batch.num_rows for batch in direct.read(0)) <= 16


def test_a_damaged_page_is_told_with_its_file(source):
    path = put(source, "a.parquet", {"id": list(range(100_000))}, use_dictionary=False, compression="snappy")
    found = source.discover()
    reading = source.read(found)
    written = path.stat()
    with path.open("r+b") as file:
        file.seek(64)
        file.write(b"\xff" * 4096)
    os.utime(path, ns=(written.st_atime_ns, written.st_mtime_ns))
    with pytest.raises(SourceError, match=r"a\.parquet cannot be read to its end"):
        direct_rows(reading.direct)


def test_a_file_that_vanishes_is_told(source):
    path = put(source, "a.parquet", {"id": [1]})
    reading = source.read(source.discover())
    path.unlink()
    with pytest.raises(SourceError, match=r"a\.parquet has vanished"):
        direct_rows(reading.direct)


def test_a_file_that_is_rewritten_while_it_is_read_is_told(source):
    path = put(source, "a.parquet", {"id": [1, 2]}, row_group_size=1)
    batches = source.read(source.discover()).direct.read(0)
    next(batches)
    put(source, "b.parquet", {"id": [3]}).rename(path)
    with pytest.raises(SourceError, match=r"a\.parquet has changed since it was looked at"):
        list(batches)
