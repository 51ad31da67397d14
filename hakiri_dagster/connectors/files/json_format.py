"""JSON lines: names and types from one look at all objects, values as they are written."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from pyspark.sql import SparkSession

from hakiri_dagster.connectors.files.contents import decompressed
from hakiri_dagster.connectors.files.cursors import Cursor
from hakiri_dagster.connectors.files.format_contract import FoundSchema, Look, Rows, Statistics, WantedRows
from hakiri_dagster.connectors.files.json_lines import number_records, split_files
from hakiri_dagster.connectors.files.json_observation import observe_files
from hakiri_dagster.connectors.files.json_rows import CursorFilter, JsonRows
from hakiri_dagster.connectors.files.options import FilesOptions
from hakiri_dagster.connectors.files.read_errors import told_in_our_words
from hakiri_dagster.connectors.files.schemas import alike_names, unknown_declared
from hakiri_dagster.connectors.json.type_inference import (
    JSONB,
    ObservedValues,
    declared_json_column,
    inferred_column,
)
from hakiri_dagster.errors import SourceError
from hakiri_dagster.manifest.load_spec import SubMicroseconds
from hakiri_dagster.planning.columns import Column, SourceSchema, is_ours, left_out


@dataclass(frozen=True, slots=True)
class JsonLinesFormat:
    options: FilesOptions
    declared: Mapping[str, str]
    label: str
    sub_microseconds: SubMicroseconds = "warn"
    keeps_misfits: bool = False

    def check(self, path: str) -> None:
        head = next(decompressed(path, self.label), b"").lstrip(b"\xef\xbb\xbf \t\r\n")
        if head.startswith(b"["):
            raise SourceError(
                f"{path} is one JSON array; JSON lines are wanted, one object a line",
                where=self.label,
                hint="convert it, for example with `jq -c '.[]'`",
            )

    def schema(self, look: Look) -> FoundSchema:
        """Lines that cannot be loaded are passed over here; reading quarantines them."""
        settled = frozenset((*self.declared, *look.known_names))
        with told_in_our_words(self.label):
            ranges = split_files((path, os.path.getsize(path)) for path in look.news)
            observed = observe_files(
                look.spark, ranges, settled, self.options.null_values, self.options.charset, self.label
            )
        names = [*look.known_names, *(name for name in observed if name not in look.known_names and not is_ours(name))]
        if not names:
            raise SourceError(
                f"{look.paths[0]} holds no JSON object",
                where=self.label,
                hint="JSON lines: one object a line, `{...}`",
            )
        columns = tuple(self._column(name, look.known, observed) for name in names)
        warnings = (*alike_names(names), *left_out(observed), *unknown_declared(names, self.declared))
        return FoundSchema(SourceSchema(columns), warnings)

    def rows(self, spark: SparkSession, paths: Sequence[str], schema: SourceSchema) -> Rows:
        rows = JsonRows(
            ranges=split_files((path, os.path.getsize(path)) for path in paths),
            columns=schema.columns,
            names=tuple(column.name for column in schema.columns),
            null_values=tuple(self.options.null_values),
            charset=self.options.charset,
            label=self.label,
            sub_microseconds=self.sub_microseconds,
            declared=frozenset(self.declared),
        )

        def wanted_rows(wanted: WantedRows) -> JsonRows:
            bounds = tuple(wanted.bounds)
            cursor = None if wanted.cursor is None else CursorFilter(wanted.cursor, bounds, self.keeps_misfits)
            return replace(rows, filter=cursor, states=tuple(wanted.files[path] for path in paths))

        return Rows(
            rows.frame(spark),
            has_malformed=True,
            direct=lambda wanted: replace(wanted_rows(wanted), with_marker=len(paths) > 1),
            begins=self.begins,
            narrowed=lambda names: rows.only(names).frame(spark),
            wanted=lambda wanted: wanted_rows(wanted).frame(spark),
        )

    def begins(self, path: str) -> Iterator[int]:
        return number_records(path, self.options.charset, self.label)

    def statistics(self, _paths: Sequence[str], _cursor: Cursor, /) -> Statistics:
        return {}

    def _column(self, name: str, known: SourceSchema | None, observed: Mapping[str, ObservedValues]) -> Column:
        if name in self.declared:
            return declared_json_column(name, self.declared[name])
        column = known.column(name) if known else None
        if column is not None:
            # Objects, and lists of them, were once known by their fields.
            nested = column.spark_type.startswith(("struct", "array<struct", "array<array"))
            return Column(name, "string", native_type=JSONB) if nested else column
        return (
            inferred_column(name, observed[name]) if self.options.infer_schema else self._untyped(name, observed[name])
        )

    @staticmethod
    def _untyped(name: str, observed: ObservedValues) -> Column:
        return inferred_column(name, observed if observed.kind == "nested" else ObservedValues())
