"""What every format's reader gives: typed rows, the text of malformed lines, the marker of each row's file."""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce

from pyspark.sql import Column, DataFrame, DataFrameReader, SparkSession

from hakiri_dagster.connectors.files.types import quoted
from hakiri_dagster.planning.columns import Column as SchemaColumn


def reader(spark: SparkSession) -> DataFrameReader:
    """Paths are taken as they are written (`a[1].csv` is a name, not a glob), and damaged files are errors."""
    return spark.read.options(
        __globPaths__="false", ignoreCorruptFiles="false", ignoreMissingFiles="false", recursiveFileLookup="false"
    )


def read_schema(columns: Sequence[tuple[str, str]]) -> str:
    return ", ".join(f"{quoted(name)} {type_}" for name, type_ in columns)


def stacked(frames: Sequence[DataFrame]) -> DataFrame:
    """Frames with the same columns, one below the other."""
    return reduce(DataFrame.union, frames)


def named(values: Sequence[tuple[SchemaColumn, Column]]) -> list[Column]:
    return [value.alias(column.name) for column, value in values]
