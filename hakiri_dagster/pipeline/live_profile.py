"""A target's columns as everybody sees them, profiled in one pass of Spark: no load, nothing changed. The target is
read as a source is; each task hands back its tallies, which do not grow with the rows."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import pyarrow as pa

from hakiri_dagster.connectors.contract import Known, SourceTable, SparkProvider
from hakiri_dagster.engine.spark_failures import translate_spark_errors
from hakiri_dagster.errors import HakiriError
from hakiri_dagster.pipeline.direct import map_rows
from hakiri_dagster.planning.chunks import WHOLE
from hakiri_dagster.planning.columns import SourceSchema
from hakiri_dagster.quality.measures import Tallied
from hakiri_dagster.quality.numerics import marked, numeric_texts
from hakiri_dagster.quality.profile import ProfiledColumn, TableProfile, measures_of, profile_of
from hakiri_dagster.quality.tallies import Tally, add_up, answers_of, packed, tally, unpacked

_TALLIES_SCHEMA = "rows bigint, tallies binary"
_TALLIES_ARROW = pa.schema([("rows", pa.int64()), ("tallies", pa.binary())])


def live_profile(label: str, target: SourceTable, spark: SparkProvider) -> TableProfile:
    with translate_spark_errors(label):
        schema = target.discover(cursor=None, known=Known(), spark=spark).schema or SourceSchema((), ())
    columns = [ProfiledColumn.of(column) for column in schema.columns]
    measures = measures_of(columns)
    if not columns:
        raise HakiriError("the target has no columns but our own", where=label, hint="there is nothing to profile")
    rows, tallies = _tallied(label, target, spark, schema, measures)
    return profile_of(columns, rows, answers_of(measures, tallies))


def _tallied(
    label: str, target: SourceTable, spark: SparkProvider, schema: SourceSchema, measures: Sequence[Tallied]
) -> tuple[int, list[Tally]]:
    rows, tallies = 0, list[Tally]()
    with translate_spark_errors(label):
        reading = target.read(spark(), schema, None, [WHOLE], {})
    try:
        with translate_spark_errors(label, explain=reading.explain):
            work = _Tallying(tuple(measures), numeric_texts(schema.columns))
            told = map_rows(reading.frame, reading.direct, work, _TALLIES_SCHEMA)
            for found in told.collect():  # one row a task, never data
                rows += found["rows"]
                tallies = add_up(tallies, unpacked(found["tallies"]))
    finally:
        reading.close()
    return rows, tallies


@dataclass(frozen=True, slots=True)
class _Tallying:
    """In Spark's workers."""

    measures: tuple[Tallied, ...]
    numerics: frozenset[str]

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        rows, tallies = 0, list[Tally]()
        for batch in batches:
            if batch.num_rows:
                rows += batch.num_rows
                asked = marked(batch, self.numerics)
                tallies = add_up(tallies, [tally(measure, asked) for measure in self.measures])
        yield pa.RecordBatch.from_pylist([{"rows": rows, "tallies": packed(tallies)}], schema=_TALLIES_ARROW)
