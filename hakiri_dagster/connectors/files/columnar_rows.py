"""Parquet and ORC files as rows. Files of one schema are read together, each schema as it is in the file."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812  # Spark's own convention

from hakiri_dagster.connectors.contract import FILE_COLUMN
from hakiri_dagster.connectors.files import frames
from hakiri_dagster.connectors.files.arrow_types import (
    FileColumn,
    as_json,
    converted,
    misread,
    truncates,
    with_nanoseconds,
)
from hakiri_dagster.connectors.files.footers import Footer
from hakiri_dagster.connectors.files.formats import Format
from hakiri_dagster.connectors.files.markers import file_marker
from hakiri_dagster.connectors.files.text_values import Parsed, parse
from hakiri_dagster.connectors.files.types import is_number, is_timestamp, quoted, widened
from hakiri_dagster.manifest.load_spec import SubMicroseconds
from hakiri_dagster.planning.arrow_types import declares_precision
from hakiri_dagster.planning.columns import Column as SchemaColumn


def columnar_rows(
    spark: SparkSession,
    footers: Sequence[Footer],
    columns: Sequence[SchemaColumn],
    format_: Format,
    on_sub_microseconds: SubMicroseconds = "warn",
) -> DataFrame:
    marks_truncated = may_truncate(footers, columns)
    groups: dict[tuple[FileColumn, ...], list[str]] = defaultdict(list)
    for footer in footers:
        groups[footer.columns].append(footer.path)
    return frames.stacked(
        [
            _read(spark, together, layout, columns, format_, on_sub_microseconds, marks_truncated=marks_truncated)
            for layout, paths in groups.items()
            for together in frames.readable_together(paths)
        ]
    )


def _read(
    spark: SparkSession,
    paths: list[str],
    layout: tuple[FileColumn, ...],
    columns: Sequence[SchemaColumn],
    format_: Format,
    on_sub_microseconds: SubMicroseconds,
    *,
    marks_truncated: bool,
) -> DataFrame:
    wanted = {column.name for column in columns}
    present = {column.name: column for column in layout if column.name in wanted and column.conversion != "absent"}
    # A file with nothing but NULLs still has rows, and Spark wants a column to read.
    asked = tuple(present.values()) or layout[:1]
    schema = frames.read_schema([(column.name, column.read_type) for column in asked])
    raw = frames.reader(spark).schema(schema).format(format_).load(paths)
    values = [(column, _value(column, present)) for column in columns]
    found = frames.typed_columns(values, on_sub_microseconds, marks_truncated=marks_truncated)
    row = as_json(F.struct(*[F.col(quoted(name)) for name in present]))
    return raw.select(
        *found.values,
        frames.malformed(row, None, found.misfits) if found.misfits else frames.none_malformed(),
        *found.truncated,
        file_marker().alias(FILE_COLUMN),
    )


def _value(column: SchemaColumn, present: Mapping[str, FileColumn]) -> Parsed:
    source = present.get(column.name)
    if source is None:
        return Parsed(F.lit(None).cast(column.spark_type), None)
    parsed, doubtful = _converted(source, column), misread(source)
    if doubtful is None:
        return parsed
    failed, reason = doubtful
    value = F.when(~failed, parsed.value)
    if parsed.failed is not None:
        return replace(parsed, value=value, failed=failed | parsed.failed)
    return replace(parsed, value=value, failed=failed, reason=reason)


def _converted(source: FileColumn, column: SchemaColumn) -> Parsed:
    value, truncated = converted(source), truncates(source)
    if source.spark_type == column.spark_type:
        return Parsed(value, None, truncated)
    if column.spark_type == "string" and truncated is not None:
        return Parsed(with_nanoseconds(source), None)
    if widened(source.spark_type, column.spark_type) == column.spark_type:
        return Parsed(value.cast(column.spark_type), None)
    parsed = _declared(value, source.spark_type, column.spark_type)
    return replace(parsed, truncated=truncated) if is_timestamp(column.spark_type) else parsed


def _declared(value: Column, source_type: str, declared_type: str) -> Parsed:
    """The manifest's type over the file's. What does not fit exactly is set aside with its row."""
    if source_type == "string":
        return parse(value, declared_type)
    if declared_type == "string":
        return _as_text(value, source_type)
    cast = value.try_cast(declared_type)
    failed = value.isNotNull() & cast.isNull()
    narrows = is_timestamp(source_type) and declared_type == "date"
    if narrows or (is_number(source_type) and (is_number(declared_type) or declared_type == "boolean")):
        failed = failed | (value.isNotNull() & (cast.try_cast(source_type) != value))
    return Parsed(F.when(~F.coalesce(failed, F.lit(False)), cast), failed)


def _as_text(value: Column, source_type: str) -> Parsed:
    if source_type.startswith(("struct", "array")):
        return Parsed(as_json(value), None)
    text = value.cast("string")
    if source_type != "binary":
        return Parsed(text, None)
    failed = F.coalesce(~F.is_valid_utf8(text), F.lit(False))
    return Parsed(F.when(~failed, text), failed, reason="is no UTF-8")


def may_truncate(footers: Iterable[Footer], columns: Sequence[SchemaColumn]) -> bool:
    """Whether a timestamp of the files may have digits beyond microseconds, which no declared type permits to cut."""
    names = {column.name for column in columns if is_timestamp(column.spark_type) and not declares_precision(column)}
    return any(
        column.name in names and column.has_nanoseconds
        for layout in {footer.columns for footer in footers}
        for column in layout
    )


def casts_may_fail(footers: Iterable[Footer], columns: Sequence[SchemaColumn]) -> bool:
    types = {column.name: column.spark_type for column in columns}
    return any(
        column.name in types
        and (column.may_be_misread or widened(column.spark_type, types[column.name]) != types[column.name])
        for layout in {footer.columns for footer in footers}
        for column in layout
        if column.conversion != "absent"
    )
