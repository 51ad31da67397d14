"""Reads one file of JSON lines as far as Spark's Python workers, where rows are staged: the types of its columns are
inferred, and every row is read. By the `files` connector, or by Spark's own reader with an inferred schema.

python bench/read_json.py hakiri|spark FILE
"""

from __future__ import annotations

import json
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from hakiri_dagster.connectors.contract import Known
from hakiri_dagster.connectors.files.connector import FILES
from hakiri_dagster.engine.spark import open_session
from hakiri_dagster.pipeline.direct import map_rows
from hakiri_dagster.planning.chunks import Chunk, Slice, WholeTable
from hakiri_dagster.settings import Settings

_COUNTED = "rows bigint, bytes bigint"
_WARM_UP = '{"id":1,"price":1.10,"day":"2024-01-01"}\n' * 1000


def main(reader: str, file: Path) -> None:
    read = {"hakiri": _read_by_connector, "spark": _read_by_spark}[reader]
    with tempfile.TemporaryDirectory() as folder:
        spark = open_session(Settings(), Path(folder) / "spark")
        warm_up = Path(folder) / "warm-up.jsonl"
        warm_up.write_text(_WARM_UP)
        read(spark, warm_up)
        started = time.perf_counter()
        rows = read(spark, file)
        print(json.dumps({"seconds": time.perf_counter() - started, "rows": rows}))
        spark.stop()


def _read_by_spark(spark: SparkSession, file: Path) -> int:
    return _rows_of(spark.read.json(str(file)).mapInArrow(_count, _COUNTED))


def _read_by_connector(spark: SparkSession, file: Path) -> int:
    table = FILES.table(
        config={"path": str(file.parent)}, name="lines", path=file.name, columns={}, label="bench/lines"
    )
    found = table.discover(cursor=None, known=Known(), spark=lambda: spark)
    assert found.schema is not None
    whole = [Slice(Chunk("all", WholeTable()), WholeTable())]
    reading = table.read(spark, found.schema, None, whole, {state.path: state for state in found.files})
    return _rows_of(map_rows(reading.frame, reading.direct, _count, _COUNTED))


def _count(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        yield pa.record_batch({"rows": [batch.num_rows], "bytes": [batch.nbytes]})


def _rows_of(counted: DataFrame) -> int:
    return sum(row["rows"] for row in counted.collect())


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]))
