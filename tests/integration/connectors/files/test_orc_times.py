"""Dates and timestamps of ORC, which its libraries write in two ways: each as it was written, or not at all."""

from __future__ import annotations

import shutil

import pyarrow as pa
import pyarrow.orc as orc
from pyspark.sql import functions as F  # noqa: N812  # Spark's own convention

from hakiri_dagster.connectors.contract import MALFORMED_COLUMN

DAYS = ["0001-01-01", "0500-03-01", "1000-03-01", "1500-02-28", "1582-10-04", "1582-10-15", "1899-12-31", "9999-12-31"]
NANOS = [1_714_979_289_123_456_789, 1_714_979_289_123_456_000, 1, -1_000_000_000, None]


def write_by_cpp(source, columns):
    orc.write_table(pa.table(columns), source.write("a.orc", b""))


def texts(source, name):
    """As texts, for Python has no time before the year 1 and pandas few before 1677."""
    frame = source.read(source.discover()).frame
    return sorted(row[0] for row in frame.where(f"{name} is not null").select(F.col(name).cast("string")).collect())


def test_nanoseconds_of_orc_are_marked_or_quarantined(source):
    write_by_cpp(source, {"id": range(5), "at": pa.array(NANOS, pa.timestamp("ns"))})
    assert source.truncated() == {"at": 2}
    assert texts(source, "at") == [
        "1969-12-31 23:59:59",
        "1970-01-01 00:00:00",
        "2024-05-06 07:08:09.123456",
        "2024-05-06 07:08:09.123456",
    ]
    source.sub_microseconds = "quarantine"
    assert source.malformed() == ['{"id":0,"at":1714979289.123456789}', '{"id":2,"at":1E-9}']
    source.columns = {"at": "text"}
    assert texts(source, "at")[-1] == "2024-05-06 07:08:09.123456789"


def test_days_and_times_that_spark_wrote_are_what_they_were(source):
    moments = [*(f"{day} 00:00:00" for day in DAYS), "1915-08-28 16:51:50.876544", "1969-12-30 23:59:59.5"]
    rows = source.spark.createDataFrame([(text,) for text in moments], "text string")
    written = rows.select(F.col("text").cast("timestamp").alias("at"), F.col("text").cast("date").alias("day"))
    folder = source.folder / "by_spark"
    written.coalesce(1).write.orc(str(folder))
    (file,) = folder.glob("*.orc")
    shutil.copy(file, source.write("a.orc", b""))
    assert texts(source, "at") == sorted(text.removesuffix(".0") for text in moments)
    assert texts(source, "day") == sorted(text[:10] for text in moments)
    frame = source.read(source.discover()).frame
    assert MALFORMED_COLUMN not in frame.columns


def test_times_of_other_writers_are_exact_and_what_spark_misreads_is_quarantined(source):
    seconds = pa.array(DAYS).cast(pa.timestamp("s"))
    write_by_cpp(source, {"at": seconds})
    assert texts(source, "at") == [f"{day} 00:00:00" for day in DAYS]
    write_by_cpp(source, {"id": range(len(DAYS)), "day": seconds.cast(pa.date32())})
    assert texts(source, "day") == [day for day in DAYS if day >= "1582-10-15"]
    assert source.reasons() == {"`day` is before 1582-10-15, which Spark misreads in ORC that Java has not written"}
    write_by_cpp(source, {"id": [1, 2], "at": pa.array([-1_500_000_000, 1_500_000_000], pa.timestamp("ns"))})
    assert texts(source, "at") == ["1970-01-01 00:00:01.5"]
    assert source.reasons() == {
        "`at` is before 1970 with a fraction of a second, which Spark misreads in ORC that Java has not written"
    }
