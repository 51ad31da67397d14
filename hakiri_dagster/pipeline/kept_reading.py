"""Rows out of the quarantine as a reading, which is staged as any other."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from pyspark.sql import SparkSession
from pyspark.sql.pandas.types import to_arrow_type
from pyspark.sql.types import DataType, LongType, StructField, StructType

from hakiri_dagster.connectors.contract import FILE_COLUMN, KEPT_COLUMN, FileOrigin, Reading
from hakiri_dagster.engine.spark_failures import translate_spark_errors
from hakiri_dagster.pipeline.kept_parts import KEPT_DDL, KeptRows, LoadOfKept, WrittenParts
from hakiri_dagster.pipeline.shapes import cursor_of
from hakiri_dagster.pipeline.survey import Survey
from hakiri_dagster.planning.chunks import Bounds, SourceFile
from hakiri_dagster.planning.replays import LiveLoad, ReplayChunk, read_again


def kept_reading(
    spark: SparkSession,
    survey: Survey,
    chunks: Sequence[ReplayChunk],
    beside: Mapping[str, Sequence[LiveLoad]],
    written: WrittenParts,
) -> Reading:
    """`beside`: by chunk, the loads that have rows within its bounds."""
    origins = _origins(survey, chunks, written.sources)
    schema = survey.followed.read
    with translate_spark_errors(survey.table.label):
        types = {column.name: DataType.fromDDL(column.spark_type) for column in schema.columns}
        rows = KeptRows(
            files=written.parts,
            types=tuple(
                (c.name, to_arrow_type(types[c.name], timezone="UTC"), c.native_type or c.spark_type)
                for c in schema.columns
            ),
            loads={
                load_id: LoadOfKept(bounds, read_again(load_id, beside[chunk.key]), _marker(bounds, origins))
                for chunk in chunks
                for load_id, bounds in chunk.loads.items()
            },
            markers={path: origin.marker for (path, _), origin in origins.items()},
            cursor=cursor_of(survey.table),
            renamed=survey.table.renamed,
        )
        fields = [StructField(name, kind) for name, kind in types.items()]
        fields += [StructField(FILE_COLUMN, LongType()), StructField(KEPT_COLUMN, DataType.fromDDL(KEPT_DDL))]
        frame = spark.range(0, rows.parts, 1, rows.parts).mapInArrow(rows, StructType(fields))
    return Reading(frame, schema, files=tuple(origins.values()), direct=rows)


def _origins(
    survey: Survey, chunks: Sequence[ReplayChunk], sources: Iterable[str]
) -> dict[tuple[str, str], FileOrigin]:
    """By path and content. A file's chunk says which content it had; of rows in windows, it is the file that was read
    last under that path."""
    of_chunks = {
        (b.path, b.content_hash) for chunk in chunks for b in chunk.loads.values() if isinstance(b, SourceFile)
    }
    taken_in = {(path, survey.taken_in[path].content_hash) for path in sources if path in survey.taken_in}
    return {
        (path, content): FileOrigin(place, path, bytes.fromhex(content))
        for place, (path, content) in enumerate(sorted(of_chunks | taken_in))
    }


def _marker(bounds: Bounds, origins: Mapping[tuple[str, str], FileOrigin]) -> int | None:
    return origins[bounds.path, bounds.content_hash].marker if isinstance(bounds, SourceFile) else None
