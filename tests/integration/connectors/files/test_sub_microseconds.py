"""Timestamps with more digits than PostgreSQL keeps: marked, quarantined or permitted, in every format."""

from __future__ import annotations

from datetime import datetime

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from hakiri_dagster.errors import SourceError

NANOS = [1_714_979_289_123_456_789, 1_714_979_289_123_456_000, -1, None, 1_714_979_289_000_000_100]
"""Three of them have digits beyond microseconds."""
TEXTS = [
    "2024-05-06 07:08:09.123456789",
    "2024-05-06T07:08:09.1234560",
    "1969-12-31 23:59:59.999999999",
    "",
    "2024-05-06 07:08:09.0000001",
]
FAR = datetime(9999, 12, 31)
CUT = sorted(
    [
        datetime(2024, 5, 6, 7, 8, 9, 123456),
        datetime(2024, 5, 6, 7, 8, 9, 123456),
        datetime(1969, 12, 31, 23, 59, 59, 999999),
        datetime(2024, 5, 6, 7, 8, 9),
    ]
)


def parquet(source):
    path = source.write("a.parquet", b"")
    columns = {name: pa.array(NANOS, pa.timestamp("ns", zone)) for name, zone in (("at", None), ("seen", "UTC"))}
    pq.write_table(pa.table({"id": range(5), **columns, "us": pa.array([0] * 5, pa.timestamp("us"))}), path)


def csv(source):
    lines = [f"{number},{text},{text and text + 'Z'},2024-01-02 03:04:05.123456" for number, text in enumerate(TEXTS)]
    source.write("a.csv", "\n".join(["id,at,seen,us", *lines]) + "\n")


def json_lines(source):
    lines = [f'{{"id":{n},"at":"{t}","seen":"{t and t + "Z"}","us":"2024-01-02"}}' for n, t in enumerate(TEXTS)]
    source.write("a.jsonl", "\n".join(lines) + "\n")


FORMATS = pytest.mark.parametrize("write", [parquet, csv, json_lines])


@FORMATS
def test_each_value_that_is_cut_is_marked_with_its_column(source, write, values):
    write(source)
    found = source.discover()
    assert (source.types(found)["at"], source.types(found)["seen"]) == ("timestamp_ntz", "timestamp")
    assert source.truncated(found) == {"at": 3, "seen": 3}
    assert [value for value in values(source.rows(found), "at") if value] == CUT


@FORMATS
def test_their_rows_are_quarantined_as_they_were_where_that_is_declared(source, write):
    source.sub_microseconds = "quarantine"
    write(source)
    found = source.discover()
    assert sorted(row.id for row in source.rows(found)) == [1, 3]
    assert source.reasons(found) == {"`at` has digits beyond microseconds"}
    first = source.malformed(found)[0]
    assert "789" in first, "with the digits that were not loaded"
    assert source.truncated(found) == {}


@FORMATS
@pytest.mark.parametrize("on_sub_microseconds", ["warn", "quarantine"])
def test_a_declared_precision_permits_the_cut(source, write, on_sub_microseconds):
    source.sub_microseconds = on_sub_microseconds
    source.columns = {"at": "timestamp(6)", "seen": "timestamp (3) with time zone"}
    write(source)
    found = source.discover()
    assert source.truncated(found) == {}
    assert len(source.rows(found)) == 5


@FORMATS
def test_a_column_that_is_declared_as_text_keeps_all_digits(source, write, values):
    source.columns = {"at": "text", "seen": "timestamptz(6)"}
    write(source)
    found = source.discover()
    assert source.truncated(found) == {}
    assert TEXTS[0] in values(source.rows(found), "at")
    assert TEXTS[2] in values(source.rows(found), "at")


def test_files_with_and_without_nanoseconds_are_read_together(source):
    for name, unit in (("a", "us"), ("b", "ns")):
        pq.write_table(pa.table({"at": pa.array([1_001], pa.timestamp(unit))}), source.write(f"{name}.parquet", b""))
    assert source.truncated() == {"at": 1}
    assert len(source.rows()) == 2


def int96(source, name, nanos):
    columns = {"at": pa.array(nanos, pa.timestamp("ns")), "far": pa.array([FAR] * len(nanos), pa.timestamp("us"))}
    pq.write_table(pa.table(columns), source.write(name, b""), use_deprecated_int96_timestamps=True)


def test_old_96_bit_timestamps_are_counted_by_file_as_spark_cannot_tell_their_rows_apart(source):
    int96(source, "a.parquet", NANOS)
    int96(source, "b.parquet", [1_000])
    reading = source.read(source.discover())
    (warning,) = reading.warnings
    assert warning.endswith("a.parquet: 96-bit timestamps had digits beyond microseconds, which were cut: `at` (3)")
    source.sub_microseconds = "quarantine"
    with pytest.raises(SourceError, match=r"a\.parquet: 96-bit timestamps have digits beyond microseconds: `at` \(3\)"):
        source.read(source.discover())
    source.columns = {"at": "timestamptz(6)"}
    assert source.read(source.discover()).warnings == ()
