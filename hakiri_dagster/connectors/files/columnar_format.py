"""Parquet and ORC: schema and statistics from the footers, without Spark."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from pyspark.sql import SparkSession

from hakiri_dagster.connectors.contract import DirectRows
from hakiri_dagster.connectors.files.columnar_rows import casts_may_fail, columnar_rows, may_truncate
from hakiri_dagster.connectors.files.cursors import Cursor
from hakiri_dagster.connectors.files.footers import Footer, read_footers
from hakiri_dagster.connectors.files.format_contract import FoundSchema, Look, Rows, Statistics, WantedRows
from hakiri_dagster.connectors.files.formats import Format
from hakiri_dagster.connectors.files.int96 import count_sub_microseconds
from hakiri_dagster.connectors.files.parquet_parts import parquet_parts
from hakiri_dagster.connectors.files.schemas import alike_names, merged_columns, unknown_declared
from hakiri_dagster.connectors.files.types import is_number
from hakiri_dagster.errors import SourceError
from hakiri_dagster.manifest.load_spec import SubMicroseconds
from hakiri_dagster.planning.arrow_types import declares_precision
from hakiri_dagster.planning.columns import Column, SourceSchema, left_out

_MOST_WARNINGS = 10


@dataclass(frozen=True, slots=True)
class ColumnarFormat:
    format: Format
    declared: Mapping[str, str]
    label: str
    sub_microseconds: SubMicroseconds = "warn"

    def check(self, path: str) -> None:
        self._footers([path])

    def schema(self, look: Look) -> FoundSchema:
        footers = self._footers(look.paths)
        columns = merged_columns(footers, self.declared, self.label)
        names = [column.name for column in columns]
        seen = {column.name for footer in footers for column in footer.columns}
        warnings = (
            *_missing(footers, names),
            *alike_names(names),
            *left_out(seen),
            *unknown_declared(names, self.declared),
        )
        return FoundSchema(SourceSchema(columns), warnings)

    def rows(self, spark: SparkSession, paths: Sequence[str], schema: SourceSchema) -> Rows:
        footers = self._footers(paths)
        frame = columnar_rows(spark, footers, schema.columns, self.format, self.sub_microseconds)

        def direct(wanted: WantedRows) -> DirectRows | None:
            return parquet_parts(footers, schema.columns, wanted, self.label)

        warnings = tuple(self._int96_warnings(footers, schema.columns))
        fails = casts_may_fail(footers, schema.columns)
        fails |= self.sub_microseconds == "quarantine" and may_truncate(footers, schema.columns)
        return Rows(frame, has_malformed=fails, direct=direct, warnings=warnings)

    def _int96_warnings(self, footers: Sequence[Footer], columns: Sequence[Column]) -> Iterator[str]:
        """Warn of 96-bit timestamps that Spark cuts to microseconds, or refuse their file: Spark cannot tell its rows
        apart by them."""
        wanted = {column.name for column in columns if not declares_precision(column)}
        int96 = {
            footer.path: [c.name for c in footer.columns if c.conversion == "int96" and c.name in wanted]
            for footer in footers
        }
        for path, counts in count_sub_microseconds({path: names for path, names in int96.items() if names}).items():
            listed = ", ".join(f"`{name}` ({count:,})" for name, count in sorted(counts.items()))
            if self.sub_microseconds == "quarantine":
                raise SourceError(
                    f"{path}: 96-bit timestamps have digits beyond microseconds: {listed}",
                    where=self.label,
                    hint="their rows cannot be quarantined one by one; write 64-bit timestamps, declare `timestamp(6)` "
                    'under `columns`, or set `load.sub_microseconds = "warn"`',
                )
            yield f"{path}: 96-bit timestamps had digits beyond microseconds, which were cut: {listed}"

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
    told = [
        f"{path} has no {', '.join(f'`{name}`' for name in missing)}: NULL in its rows"
        for path, missing in lacking
        if missing
    ]
    rest = len(told) - _MOST_WARNINGS
    return told[:_MOST_WARNINGS] + ([f"and {rest} more files lack columns"] if rest > 0 else [])
