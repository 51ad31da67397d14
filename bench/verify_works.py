"""What it costs to compare a target with its source, beside the GROUP BY that a careful person would write."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager

import pyarrow.parquet as pq
from load_works import postgres_origin
from measuring import BY_HAND, Bench, Row, applied_warm, ratio
from pipelines import FROM_POSTGRES_IN_WINDOWS
from projects import SCHEMA, Project
from questions import query_seconds

from hakiri_dagster.manifest.project import load_project
from hakiri_dagster.manifest.tables import Table
from hakiri_dagster.pipeline.runtime import Runtime
from hakiri_dagster.pipeline.verification import VerifyOptions
from hakiri_dagster.pipeline.verification import verify as verify_table
from hakiri_dagster.settings import Settings

_COUNTS = "SELECT date_trunc('month', l_shipdate), count(*) FROM {}.lineitem GROUP BY 1"
_VALUES = """
SELECT date_trunc('month', l_shipdate), count(*), sum(hash_record_extended(ROW(l_orderkey, l_partkey, l_suppkey,
       l_linenumber, l_quantity, l_extendedprice, l_discount, l_tax, l_returnflag, l_linestatus, l_shipdate,
       l_commitdate, l_receiptdate, l_shipinstruct, l_shipmode, l_comment), 0)::numeric)
FROM {}.lineitem GROUP BY 1
"""


def verify(bench: Bench) -> Iterator[Row]:
    """84 chunks of a source whose cursor has an index. The target has none on it."""
    manifest = FROM_POSTGRES_IN_WINDOWS.replace("WINDOW", "1mo")
    expected = pq.ParquetFile(bench.data.parquet("lineitem")).metadata.num_rows
    with postgres_origin(bench, "CREATE INDEX ON origin.lineitem (l_shipdate)"), bench.project(manifest) as project:
        applied_warm(project, expected)
        bench.warehouse.analyze("origin", "lineitem")
        bench.warehouse.analyze(SCHEMA, "lineitem")
        with _opened(project) as (runtime, table):
            for title, by_hand, digest, at_most in (
                ("lineitem: `verify` of 84 monthly chunks by count", _COUNTS, False, 1.2),
                ("the same with `--digest`", _VALUES, True, None),
            ):
                seconds, reference = bench.interleaved(
                    lambda digest=digest: _verified_seconds(runtime, table, expected, digest=digest),
                    BY_HAND,
                    lambda by_hand=by_hand: sum(
                        query_seconds(bench.warehouse, by_hand.format(schema)) for schema in ("origin", SCHEMA)
                    ),
                )
                yield ratio(title, seconds, f"GROUP BY of both {BY_HAND}", reference, at_most)


@contextmanager
def _opened(project: Project) -> Iterator[tuple[Runtime, Table]]:
    opened = load_project(project.folder, env={**os.environ, **project.env})
    (table,) = [table for table in opened.tables if table.name == "lineitem"]
    with Runtime(opened, Settings.from_env()) as runtime:
        yield runtime, table


def _verified_seconds(runtime: Runtime, table: Table, expected: int, *, digest: bool) -> float:
    started = time.perf_counter()
    found = verify_table(runtime, table, VerifyOptions(digest=digest))
    seconds = time.perf_counter() - started
    covered = sum(chunk.target_rows for chunk in found.chunks)
    if found.drifted or not 0.99 * expected < covered <= expected:  # rows at the mark of the last window are left out
        raise SystemExit(f"{covered} rows of {len(found.chunks)} chunks are the same, {expected} expected")
    return seconds
