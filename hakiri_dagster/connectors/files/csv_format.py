"""CSV: names from the header of each file, types from a declaration or inferred from all values."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice

from pyspark.sql import SparkSession
from pyspark.sql import functions as F  # noqa: N812  # Spark's own convention

from hakiri_dagster.connectors.contract import MALFORMED_COLUMN
from hakiri_dagster.connectors.files.csv_inference import InferredType, infer_csv_types
from hakiri_dagster.connectors.files.csv_rows import csv_rows
from hakiri_dagster.connectors.files.cursors import Cursor
from hakiri_dagster.connectors.files.format_contract import FoundSchema, Look, Rows, Statistics
from hakiri_dagster.connectors.files.headers import Header, delimiter_of, numbered, read_headers, text_lines
from hakiri_dagster.connectors.files.lines import records_are_lines, refuse_unclosed_quote
from hakiri_dagster.connectors.files.options import FilesOptions
from hakiri_dagster.connectors.files.read_errors import told_in_our_words
from hakiri_dagster.connectors.files.record_lines import QuotedRecords, blank_in_csv, records_of_lines
from hakiri_dagster.connectors.files.schemas import alike_names, merged_names, unknown_declared
from hakiri_dagster.errors import SourceError
from hakiri_dagster.manifest.load_spec import SubMicroseconds
from hakiri_dagster.planning.columns import Column, SourceSchema, left_out


@dataclass(frozen=True, slots=True)
class CsvFormat:
    options: FilesOptions
    declared: Mapping[str, str]
    label: str
    sub_microseconds: SubMicroseconds = "warn"

    def check(self, path: str) -> None:
        read_headers([path], self.options, self.label)
        refuse_unclosed_quote(path, self.options, self.label)

    def schema(self, look: Look) -> FoundSchema:
        every = self._headers(look.paths, len(look.known_names))
        news = frozenset(look.news)
        headers = tuple(header for header in every if header.path in news)
        names = merged_names(headers, look.known_names, self.label)
        if not names:
            raise SourceError(
                f"{look.paths[0]} is empty, not even a header",
                where=self.label,
                hint="write at least the line of column names",
            )
        untyped = [n for n in names if n not in self.declared and n not in look.known_names]
        inferred = self._types(look, headers, names, untyped)
        found = {name: one.column(name) for name, one in inferred.items()}
        columns = tuple(look.text_column(name, self.declared, found) for name in names)
        seen = [name for header in headers for name in header.names]
        warnings = [f"{header.path} is empty" for header in headers if not header.names]
        warnings += [
            *_without_values(inferred),
            *_numbers_as_text(inferred),
            *alike_names(names),
            *left_out(seen),
            *unknown_declared(names, self.declared),
        ]
        return FoundSchema(SourceSchema(columns), tuple(warnings), _absent(names, every))

    def rows(self, spark: SparkSession, paths: Sequence[str], schema: SourceSchema) -> Rows:
        headers = self._headers(paths, len(schema.columns))
        frame = csv_rows(spark, headers, schema.columns, self.options, self.declared, self.sub_microseconds)
        return Rows(frame, has_malformed=True, begins=self.begins)

    def begins(self, path: str) -> Iterator[int]:
        options, delimiter = self.options, delimiter_of(path, self.options)
        lines = text_lines(path, options, self.label)
        if records_are_lines(path, delimiter, options):
            return records_of_lines(lines, blank_in_csv, header=options.header)
        return QuotedRecords(delimiter, options.quote, options.escape).begin(lines, header=options.header)

    def statistics(self, _paths: Sequence[str], _cursor: Cursor, /) -> Statistics:
        return {}

    def _headers(self, paths: Sequence[str], width: int) -> tuple[Header, ...]:
        """Without header lines, all files have the same columns: the declared ones in their order, or numbers."""
        headers = read_headers(paths, self.options, self.label)
        if self.options.header:
            return headers
        width = max([width, *(len(header.names) for header in headers)])
        names = tuple(self.declared) if len(self.declared) == width else numbered(width)
        return tuple(Header(header.path, names if header.names else ()) for header in headers)

    def _types(
        self, look: Look, headers: Sequence[Header], names: Sequence[str], untyped: Sequence[str]
    ) -> Mapping[str, InferredType]:
        if not untyped or not self.options.infer_schema:
            return dict.fromkeys(untyped, InferredType("string"))
        rows = csv_rows(look.spark(), headers, [Column(name, "string") for name in names], self.options)
        with told_in_our_words(self.label):
            return infer_csv_types(rows.where(F.col(MALFORMED_COLUMN).isNull()), untyped)


def _absent(names: Sequence[str], headers: Sequence[Header]) -> tuple[str, ...]:
    """Where no file has any column, none is missing: they are all empty."""
    present = {name for header in headers for name in header.names}
    return tuple(name for name in names if name not in present) if present else ()


def _without_values(types: Mapping[str, InferredType]) -> list[str]:
    empty = [name for name, found in types.items() if found.spark_type is None]
    if not empty:
        return []
    listed = ", ".join(f"`{name}`" for name in islice(empty, 5)) + (" …" if len(empty) > 5 else "")
    return [f"no value yet in {listed}: text, unless the type is declared under `columns`"]


def _numbers_as_text(types: Mapping[str, InferredType]) -> list[str]:
    """Warn of columns of numbers that are loaded as text, for they could not be written back as they are."""
    return [
        f"`{name}` is text, for {found.why_text}; if it is a number, declare its type under `columns`"
        for name, found in types.items()
        if found.why_text is not None
    ]
