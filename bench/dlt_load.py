"""Loads one Parquet file with dlt; run by dlt's own Python. Prints the seconds, imports not counted."""

from __future__ import annotations

import json
import os
import sys
import tempfile
import time
from collections.abc import Iterator

import dlt
import pyarrow as pa
import pyarrow.parquet as pq


def main(path: str, table: str) -> None:
    @dlt.resource(name=table, write_disposition="replace", file_format="parquet")
    def rows() -> Iterator[pa.Table]:
        for batch in pq.ParquetFile(path).iter_batches(batch_size=500_000):
            yield pa.Table.from_batches([batch])

    with tempfile.TemporaryDirectory() as state:
        pipeline = dlt.pipeline(
            "bench",
            pipelines_dir=state,
            destination=dlt.destinations.postgres(os.environ["BENCH_URL"]),
            dataset_name="by_dlt",
        )
        started = time.perf_counter()
        info = pipeline.run(rows())
        seconds = time.perf_counter() - started
        info.raise_on_failed_jobs()
    print(json.dumps({"seconds": seconds}))


main(*sys.argv[1:])
