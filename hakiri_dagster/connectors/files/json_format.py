"""JSON lines: names and shapes from one look at all objects, types of scalars as in CSV."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from pyspark.sql import SparkSession
from pyspark.sql import functions as F  # noqa: N812  # Spark's own convention
from pyspark.sql import types as T  # noqa: N812  # Spark's own convention

from hakiri_dagster.connectors.contract import MALFORMED_COLUMN
from hakiri_dagster.connectors.files import frames
from hakiri_dagster.connectors.files.contents import decompressed
from hakiri_dagster.connectors.files.cursors import Cursor
from hakiri_dagster.connectors.files.format_contract import FoundSchema, Look, Rows, Statistics
from hakiri_dagster.connectors.files.headers import text_lines
from hakiri_dagster.connectors.files.json_rows import json_rows
from hakiri_dagster.connectors.files.options import FilesOptions
from hakiri_dagster.connectors.files.read_errors import told_in_our_words
from hakiri_dagster.connectors.files.record_lines import blank_in_json, records_of_lines
from hakiri_dagster.connectors.files.schemas import alike_names, unknown_declared
from hakiri_dagster.connectors.files.text_inference import infer_types
from hakiri_dagster.connectors.files.types import MAX_PRECISION, decimal, decimal_parts, quoted
from hakiri_dagster.errors import SourceError
from hakiri_dagster.planning.columns import Column, SourceSchema, is_ours, left_out


@dataclass(frozen=True, slots=True)
class JsonLinesFormat:
    options: FilesOptions
    declared: Mapping[str, str]
    label: str

    def check(self, path: str) -> None:
        self._refuse_array(path)

    def schema(self, look: Look) -> FoundSchema:
        """Lines that are no objects are passed over here; reading sets them aside."""
        fields = self._fields(look)
        names = [*look.known_names, *(name for name in fields if name not in look.known_names and not is_ours(name))]
        if not names:
            raise SourceError(
                f"{look.paths[0]} holds no JSON object",
                where=self.label,
                hint="JSON lines: one object a line, `{...}`",
            )
        columns = tuple(look.text_column(name, self.declared, fields) for name in names)
        warnings = (*alike_names(names), *left_out(fields), *unknown_declared(names, self.declared))
        return FoundSchema(SourceSchema(columns), warnings)

    def rows(self, spark: SparkSession, paths: Sequence[str], schema: SourceSchema) -> Rows:
        return Rows(json_rows(spark, paths, schema.columns, self.options), has_malformed=True, begins=self.begins)

    def begins(self, path: str) -> Iterator[int]:
        return records_of_lines(text_lines(path, self.options, self.label), blank_in_json, header=False)

    def statistics(self, _paths: Sequence[str], _cursor: Cursor, /) -> Statistics:
        return {}

    def _fields(self, look: Look) -> Mapping[str, str | None]:
        """Spark types by field of the new files."""
        if not look.news:
            return {}
        reader = frames.reader(look.spark()).options(
            mode="DROPMALFORMED",
            encoding=self.options.charset.spark,
            lineSep="\n",
            primitivesAsString=not self.options.infer_schema,
        )
        with told_in_our_words(self.label):
            schema = reader.json(list(look.news)).schema
            fields = {field.name: _type(field.dataType) for field in schema.fields}
            untyped = {
                n: t for n, t in fields.items() if not is_ours(n) and n not in (*self.declared, *look.known_names)
            }
            return {**fields, **self._refined(look, untyped)}

    def _refined(self, look: Look, fields: Mapping[str, str]) -> Mapping[str, str | None]:
        """Dates hide in texts, and exact fractions in what Spark calls doubles."""
        texts = [name for name, type_ in fields.items() if type_ == "string"]
        vague = [*texts, *(name for name, type_ in fields.items() if type_ == "double")]
        if not vague or not self.options.infer_schema:
            return {}
        rows = json_rows(look.spark(), look.news, [Column(name, "string") for name in vague], self.options)
        types = infer_types(rows.where(F.col(MALFORMED_COLUMN).isNull()), vague, only_times=texts)
        return {name: with_room(type_) for name, type_ in types.items()}

    def _refuse_array(self, path: str) -> None:
        head = next(decompressed(path, self.label), b"").lstrip(b"\xef\xbb\xbf \t\r\n")
        if head.startswith(b"["):
            raise SourceError(
                f"{path} is one JSON array; JSON lines are wanted, one object a line",
                where=self.label,
                hint="convert it, for example with `jq -c '.[]'`",
            )


def _type(type_: T.DataType) -> str:
    match type_:
        case T.StructType():
            return "struct<" + ",".join(f"{quoted(f.name)}:{_type(f.dataType)}" for f in type_) + ">"
        case T.ArrayType():
            return f"array<{_type(type_.elementType)}>"
        case T.DecimalType():
            # Integers that are too long for a bigint.
            return decimal(MAX_PRECISION, 0)
        case _:
            return type_.simpleString()


def with_room(spark_type: str | None) -> str | None:
    """`json_rows` reads fractions with more places than they have, to see those that are too many."""
    parts = decimal_parts(spark_type or "")
    if parts is None or parts[0] < MAX_PRECISION:
        return spark_type
    return decimal(28, parts[1]) if parts[1] <= 14 else "double"
