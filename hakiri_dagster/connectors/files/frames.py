"""What every format's reader gives: typed rows, the text of malformed lines, the marker of each row's file."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import reduce

from pyspark.sql import Column, DataFrame, DataFrameReader, SparkSession
from pyspark.sql import functions as F  # noqa: N812  # Spark's own convention

from hakiri_dagster.connectors.contract import (
    FILE_COLUMN,
    MALFORMED_COLUMN,
    RECORD_COLUMN,
    SPLIT_COLUMN,
    TRUNCATED_COLUMN,
)
from hakiri_dagster.connectors.files.text_values import Parsed
from hakiri_dagster.connectors.files.types import is_timestamp, quoted
from hakiri_dagster.manifest.load_spec import SubMicroseconds
from hakiri_dagster.planning.arrow_types import declares_precision
from hakiri_dagster.planning.columns import Column as SchemaColumn

PLACE = (FILE_COLUMN, SPLIT_COLUMN, RECORD_COLUMN)
"""Columns that tell where a row of a text format came from."""

_LIKE_A_GLOB = re.compile(r"[{}\[\]*?\\]")


def reader(spark: SparkSession) -> DataFrameReader:
    """Paths are taken as they are written (`a[1].csv` is a name, not a glob), and damaged files are errors."""
    return spark.read.options(
        __globPaths__="false", ignoreCorruptFiles="false", ignoreMissingFiles="false", recursiveFileLookup="false"
    )


def readable_together(paths: Sequence[str]) -> list[list[str]]:
    """Spark, told to expand no globs, reads all paths once more for each path that looks like one: those go alone."""
    plain = [path for path in paths if not _LIKE_A_GLOB.search(path)]
    alone = [[path] for path in paths if _LIKE_A_GLOB.search(path)]
    return [plain, *alone] if plain else alone


def read_schema(columns: Sequence[tuple[str, str]]) -> str:
    return ", ".join(f"{quoted(name)} {type_}" for name, type_ in columns)


def malformed(line: Column, broken: Column | None, misfits: Sequence[Column]) -> Column:
    """`MALFORMED_COLUMN`: `broken` says why the whole line cannot be read, `misfits` why a value cannot; else NULL."""
    readable = F.lit(True) if broken is None else broken.isNull()
    reason = F.coalesce(*([] if broken is None else [broken]), *misfits)
    told = F.when(reason.isNotNull(), F.struct(line.alias("line"), reason.alias("reason"), readable.alias("readable")))
    return told.alias(MALFORMED_COLUMN)


def none_malformed() -> Column:
    return F.lit(None).cast("struct<line:string,reason:string,readable:boolean>").alias(MALFORMED_COLUMN)


def misfit(column: SchemaColumn, failed: Column, reason: str | None = None) -> Column:
    """The reason, where a value does not fit its column."""
    told = reason or f"is no {column.native_type or column.spark_type}"
    return F.when(failed, F.lit(f"`{column.name}` {told}"))


def stacked(frames: Sequence[DataFrame]) -> DataFrame:
    """Frames with the same columns, one below the other."""
    return reduce(DataFrame.union, frames)


@dataclass(frozen=True, slots=True)
class TypedColumns:
    """Columns by name, why a value does not fit its column, and `TRUNCATED_COLUMN`, if it is wanted."""

    values: list[Column]
    misfits: list[Column]
    truncated: list[Column]


def typed_columns(
    values: Sequence[tuple[SchemaColumn, Parsed]], on_sub_microseconds: SubMicroseconds, *, marks_truncated: bool
) -> TypedColumns:
    """`marks_truncated`: frames that are stacked with this one have the mark, too."""
    named, misfits, truncated = [], [], []
    for column, parsed in values:
        value = parsed.value
        if parsed.failed is not None:
            misfits.append(misfit(column, parsed.failed, parsed.reason))
        if parsed.truncated is not None and not declares_precision(column):
            if on_sub_microseconds == "quarantine":
                value = F.when(~parsed.truncated, value)
                misfits.append(misfit(column, parsed.truncated, "has digits beyond microseconds"))
            else:
                truncated.append(F.when(parsed.truncated, F.lit(column.name)))
        named.append(value.alias(column.name))
    names = F.array_compact(F.array(*truncated)) if truncated else F.lit(None).cast("array<string>")
    mark = F.when(F.size(names) > 0, names).alias(TRUNCATED_COLUMN)
    return TypedColumns(named, misfits, [mark] if marks_truncated and on_sub_microseconds == "warn" else [])


def may_truncate(columns: Iterable[SchemaColumn]) -> bool:
    """Whether texts of the columns may hold more digits than they keep."""
    return any(is_timestamp(column.spark_type) and not declares_precision(column) for column in columns)
