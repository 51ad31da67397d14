"""Which keys are there more than once in a slice, found before the rows are staged.

The source is read once more, and first, only for what tells keys and slices. Workers write digests of keys as sorted
runs; for each range of digests a task finds those that the runs hold more than once; whoever stages a row looks its
keys up there. Nothing but names and checksums passes through the driver.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from pyspark.sql import DataFrame, Row, SparkSession

from hakiri_dagster.connectors.contract import DirectRows
from hakiri_dagster.engine.spark import tag_attempt
from hakiri_dagster.engine.spark_failures import Explain, translate_spark_errors
from hakiri_dagster.pipeline.direct import map_rows
from hakiri_dagster.pipeline.key_digests import added
from hakiri_dagster.pipeline.key_lookup import RepeatedKeys
from hakiri_dagster.pipeline.key_plan import SEEN_SCHEMA, KeyPlan
from hakiri_dagster.pipeline.key_runs import FOUND_SCHEMA, Merge, ranges_for
from hakiri_dagster.pipeline.projection import only

_MERGED_HERE = 4
"""Ranges of digests: a job of Spark's for so few takes longer than they do, one after the other."""


def repeated_keys(
    plan: KeyPlan, frame: DataFrame, direct: DirectRows | None, explain: Explain, *, tag: str
) -> RepeatedKeys | None:
    """`frame`: the rows as they will be staged. `direct`: the same, past the JVM."""
    if not plan.keys:
        return None
    spark = frame.sparkSession
    with translate_spark_errors(explain=explain), tag_attempt(spark, tag):
        seen = _seen(plan, frame, direct).collect()
        runs = [row for row in seen if row["file"] is not None]
        files = _merged(spark, plan, runs)
    for run in runs:
        (Path(plan.directory) / run["file"]).unlink(missing_ok=True)
    return RepeatedKeys(plan, files, _checksums(seen))


def _seen(plan: KeyPlan, frame: DataFrame, direct: DirectRows | None) -> DataFrame:
    if direct is None:
        return map_rows(only(frame, plan.columns), None, plan, SEEN_SCHEMA)
    return map_rows(frame, direct.only(plan.columns), plan, SEEN_SCHEMA)


def _merged(spark: SparkSession, plan: KeyPlan, runs: Sequence[Row]) -> tuple[str | None, ...]:
    if not runs:
        return ()
    ranges = ranges_for(sum(run["rows"] for run in runs))
    merge = Merge(plan.directory, tuple(run["file"] for run in runs), ranges)
    if ranges <= _MERGED_HERE:
        return tuple(merge.repeated(place) for place in range(ranges))
    found = spark.range(0, ranges, 1, ranges).mapInArrow(merge, FOUND_SCHEMA).collect()
    by_place = {row["place"]: row["file"] for row in found}
    return tuple(by_place[place] for place in range(ranges))


def _checksums(seen: Sequence[Row]) -> dict[int, int]:
    sums: dict[int, int] = {}
    for row in seen:
        if row["slice"] is not None:
            sums[row["slice"]] = added(sums.get(row["slice"], 0), row["checksum"])
    return sums
