"""The frame as the destination takes it: explicit columns, empty strings as NULL, the row hash, and what only Spark can
say of a row."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence

import pyarrow as pa
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812  # Spark's own convention
from pyspark.sql.pandas.types import to_arrow_type
from pyspark.sql.types import StringType

from hakiri_dagster.connectors.contract import (
    FILE_COLUMN,
    KEPT_COLUMN,
    MALFORMED_COLUMN,
    ONWARD_COLUMN,
    RECORD_COLUMN,
    SLICE_COLUMN,
    SPLIT_COLUMN,
    TRUNCATED_COLUMN,
    UNSEEN_COLUMN,
    Reading,
)
from hakiri_dagster.destinations.contract import KEPT_ID_COLUMN, ROW_HASH_COLUMN
from hakiri_dagster.manifest.rule_spec import ExpressionRule
from hakiri_dagster.planning.arrow_types import arrow_type
from hakiri_dagster.planning.columns import SourceSchema
from hakiri_dagster.quality.expression_rules import condition
from hakiri_dagster.quality.verdicts import verdict_of


def project(reading: Reading, loaded: SourceSchema, *, empty_as_null: bool, with_row_hash: bool) -> DataFrame:
    """`loaded`: the columns that have a place in the target. The others are looked at."""
    names = [column.name for column in reading.schema.columns]
    texts = {field.name for field in reading.frame.schema.fields if isinstance(field.dataType, StringType)}
    columns = [_value(name, empty_as_null and name in texts) for name in names]
    if with_row_hash:
        columns.append(F.xxhash64(*[quoted(column.name) for column in loaded.columns]).alias(ROW_HASH_COLUMN))
    marks = (
        MALFORMED_COLUMN,
        FILE_COLUMN,
        SPLIT_COLUMN,
        RECORD_COLUMN,
        SLICE_COLUMN,
        KEPT_COLUMN,
        UNSEEN_COLUMN,
        TRUNCATED_COLUMN,
        ONWARD_COLUMN,
    )
    markers = [name for name in marks if name in reading.frame.columns]
    return reading.frame.select(*columns, *markers)


def with_verdicts(frame: DataFrame, rules: Sequence[ExpressionRule], read: SourceSchema) -> DataFrame:
    """A column for each rule that says whether the row passes. Its condition names columns by their places, for a name
    may hold what Spark reads as something else."""
    if not rules:
        return frame
    kept = [quoted(name) for name in frame.columns]
    places = {column.name: f"_hakiri_value_{place}" for place, column in enumerate(read.columns)}
    columns = {column.name: (places[column.name], arrow_type(column.spark_type)) for column in read.columns}
    placed = frame.select(*kept, *[quoted(name).alias(place) for name, place in places.items()])
    return placed.select(*kept, *[F.expr(condition(rule, columns)).alias(verdict_of(rule)) for rule in rules])


def only(frame: DataFrame, names: Collection[str]) -> DataFrame:
    return frame.select(*[quoted(name) for name in frame.columns if name in names])


def _value(name: str, empty_as_null: bool) -> Column:
    column = quoted(name)
    return F.nullif(column, F.lit("")).alias(name) if empty_as_null else column


def quoted(name: str) -> Column:
    """Spark reads dots as struct access unless the name is quoted; a backtick in it is doubled."""
    return F.col("`" + name.replace("`", "``") + "`")


def arrow_columns(frame: DataFrame, schema: SourceSchema) -> Mapping[str, pa.DataType]:
    """The Arrow types in which the workers will see the columns."""
    wanted = {column.name for column in schema.columns} | {ROW_HASH_COLUMN}
    kept = {KEPT_ID_COLUMN: pa.int64()} if KEPT_COLUMN in frame.columns else {}
    return dict(_arrow_fields(frame, wanted)) | kept


def _arrow_fields(frame: DataFrame, wanted: set[str]) -> Iterator[tuple[str, pa.DataType]]:
    for field in frame.schema.fields:
        if field.name in wanted:
            yield field.name, to_arrow_type(field.dataType, timezone="UTC")
