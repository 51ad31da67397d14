"""One class a kind of format: how it finds its schema, its rows, and its cursor's statistics without Spark."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from pyspark.sql import DataFrame, SparkSession

from hakiri_dagster.connectors.contract import SparkProvider
from hakiri_dagster.connectors.files.columnar_rows import casts_may_fail, columnar_rows
from hakiri_dagster.connectors.files.csv_rows import csv_rows
from hakiri_dagster.connectors.files.cursors import Cursor
from hakiri_dagster.connectors.files.footers import CursorStatistics, Footer, read_footers
from hakiri_dagster.connectors.files.formats import Format
from hakiri_dagster.connectors.files.json_rows import json_rows
from hakiri_dagster.connectors.files.options import FilesOptions
from hakiri_dagster.connectors.files.schemas import FoundSchema, alike_names, merged_columns, unknown_declared
from hakiri_dagster.connectors.files.text_schemas import csv_headers, csv_schema, json_schema
from hakiri_dagster.connectors.files.types import is_number
from hakiri_dagster.planning.columns import SourceSchema

Statistics = Mapping[str, tuple[CursorStatistics, int]]
"""By path: where the cursor lies, and the number of rows."""


@dataclass(frozen=True, slots=True)
class Rows:
    """`frame`: the schema's columns, MALFORMED_COLUMN, FILE_COLUMN."""

    frame: DataFrame
    has_malformed: bool


@dataclass(frozen=True, slots=True)
class Look:
    """What a schema is found from. `fresh`: those of `paths` that were not seen before."""

    paths: Sequence[str]
    fresh: Collection[str]
    known: SourceSchema | None
    spark: SparkProvider

    @property
    def news(self) -> Sequence[str]:
        """What `known` does not speak of."""
        return [path for path in self.paths if path in self.fresh] if self.known else self.paths


class FileFormat(Protocol):
    def schema(self, look: Look) -> FoundSchema: ...

    def rows(self, spark: SparkSession, paths: Sequence[str], schema: SourceSchema) -> Rows: ...

    def statistics(self, paths: Sequence[str], cursor: Cursor, /) -> Statistics:
        """For the files that tell it without being read."""
        ...


def file_format(format_: Format, options: FilesOptions, declared: Mapping[str, str], label: str) -> FileFormat:
    match format_:
        case "csv":
            return CsvFormat(options, declared, label)
        case "jsonl":
            return JsonLinesFormat(options, declared, label)
        case "parquet" | "orc":
            return ColumnarFormat(format_, declared, label)


@dataclass(frozen=True, slots=True)
class CsvFormat:
    options: FilesOptions
    declared: Mapping[str, str]
    label: str

    def schema(self, look: Look) -> FoundSchema:
        return csv_schema(look.news, look.known, self.options, self.declared, look.spark, self.label)

    def rows(self, spark: SparkSession, paths: Sequence[str], schema: SourceSchema) -> Rows:
        width = len(schema.columns)
        headers = csv_headers(paths, self.options, self.declared, width, self.label)
        return Rows(csv_rows(spark, headers, schema.columns, self.options), has_malformed=True)

    def statistics(self, _paths: Sequence[str], _cursor: Cursor, /) -> Statistics:
        return {}


@dataclass(frozen=True, slots=True)
class JsonLinesFormat:
    options: FilesOptions
    declared: Mapping[str, str]
    label: str

    def schema(self, look: Look) -> FoundSchema:
        return json_schema(look.news, look.known, self.options, self.declared, look.spark, self.label)

    def rows(self, spark: SparkSession, paths: Sequence[str], schema: SourceSchema) -> Rows:
        return Rows(json_rows(spark, paths, schema.columns, self.options), has_malformed=True)

    def statistics(self, _paths: Sequence[str], _cursor: Cursor, /) -> Statistics:
        return {}


@dataclass(frozen=True, slots=True)
class ColumnarFormat:
    format: Format
    declared: Mapping[str, str]
    label: str

    def schema(self, look: Look) -> FoundSchema:
        footers = self._footers(look.paths)
        columns = merged_columns(footers, self.declared, self.label)
        names = [column.name for column in columns]
        warnings = (*_missing(footers, names), *alike_names(names), *unknown_declared(names, self.declared))
        return FoundSchema(SourceSchema(columns), warnings)

    def rows(self, spark: SparkSession, paths: Sequence[str], schema: SourceSchema) -> Rows:
        footers = self._footers(paths)
        frame = columnar_rows(spark, footers, schema.columns, self.format)
        return Rows(frame, has_malformed=casts_may_fail(footers, schema.columns))

    def statistics(self, paths: Sequence[str], cursor: Cursor, /) -> Statistics:
        return {
            footer.path: (footer.cursor, footer.rows)
            for footer in self._footers(paths, cursor.name)
            if footer.cursor is not None and _speaks_of(footer, cursor)
        }

    def _footers(self, paths: Sequence[str], cursor: str | None = None) -> tuple[Footer, ...]:
        return read_footers(paths, self.format, cursor, self.label)


def _speaks_of(footer: Footer, cursor: Cursor) -> bool:
    """Statistics of a column whose type the manifest changes are of other values."""
    column = next((c for c in footer.columns if c.name == cursor.name), None)
    if column is None or column.conversion == "absent" or column.spark_type == cursor.spark_type:
        return True
    return cursor.kind == "numeric" and is_number(column.spark_type)


def _missing(footers: Sequence[Footer], names: Sequence[str]) -> list[str]:
    lacking = [(f.path, sorted(set(names) - {c.name for c in f.columns})) for f in footers]
    return [
        f"{path} has no {', '.join(f'`{name}`' for name in missing)}: NULL in its rows"
        for path, missing in lacking
        if missing
    ][:10]
