"""The publisher's half on real Spark jobs."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from hakiri_dagster.errors import HakiriError
from hakiri_dagster.pipeline.candidate import Staging
from hakiri_dagster.pipeline.row_lines import RowLines
from hakiri_dagster.pipeline.slice_files import REPORT_SCHEMA
from hakiri_dagster.planning.chunks import WholeTable
from tests.unit.pipeline.test_staging import staging


def test_a_reading_that_nobody_waits_for_any_more_is_ended(spark: SparkSession, tmp_path: Path) -> None:
    begun = tmp_path / "begun"
    directory = tmp_path / "attempt-1"
    directory.mkdir()

    def endless(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        yield from ()
        begun.touch()
        while True:
            time.sleep(0.01)

    job = spark.range(1).mapInArrow(endless, REPORT_SCHEMA)
    reading = Staging(job, staging(directory, [WholeTable()]), tag="run", explain=lambda _: None, lines=RowLines(None))
    while not begun.exists():
        reading.wait_a_moment()
    reading.close()
    with pytest.raises(HakiriError):
        reading.reports()
    assert not directory.exists()
