"""The schema of text files: names from their headers or objects, types from a declaration or one look at all values."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import islice

from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812  # Spark's own convention
from pyspark.sql import types as T  # noqa: N812  # Spark's own convention

from hakiri_dagster.connectors.contract import MALFORMED_COLUMN, SparkProvider
from hakiri_dagster.connectors.files import frames
from hakiri_dagster.connectors.files.contents import decompressed
from hakiri_dagster.connectors.files.csv_rows import csv_rows
from hakiri_dagster.connectors.files.headers import Header, numbered, read_headers
from hakiri_dagster.connectors.files.json_rows import json_rows
from hakiri_dagster.connectors.files.options import FilesOptions
from hakiri_dagster.connectors.files.read_errors import explain_read_error
from hakiri_dagster.connectors.files.schemas import FoundSchema, alike_names, merged_names, unknown_declared
from hakiri_dagster.connectors.files.text_inference import infer_types
from hakiri_dagster.connectors.files.types import MAX_PRECISION, decimal, declared_column, quoted
from hakiri_dagster.errors import SourceError
from hakiri_dagster.planning.columns import Column, SourceSchema

_NO_SCHEMA = SourceSchema(())


def csv_headers(
    paths: Sequence[str], options: FilesOptions, declared: Mapping[str, str], width: int, label: str
) -> tuple[Header, ...]:
    """Without header lines, all files have the same columns: the declared ones in their order, or numbered ones."""
    headers = read_headers(paths, options, label)
    if options.header:
        return headers
    width = max([width, *(len(header.names) for header in headers)])
    names = tuple(declared) if len(declared) == width else numbered(width)
    return tuple(Header(header.path, names if header.names else ()) for header in headers)


def csv_schema(
    paths: Sequence[str],
    known: SourceSchema | None,
    options: FilesOptions,
    declared: Mapping[str, str],
    spark: SparkProvider,
    label: str,
) -> FoundSchema:
    """`paths`: the files whose headers are new; what is `known` holds for all others."""
    before = known or _NO_SCHEMA
    headers = csv_headers(paths, options, declared, len(before.columns), label)
    names = merged_names(headers, [column.name for column in before.columns], label)
    if not names:
        raise SourceError(
            f"{paths[0]} is empty, not even a header", where=label, hint="write at least the line of column names"
        )
    warnings = [f"{header.path} is empty" for header in headers if not header.names]
    untyped = [name for name in names if name not in declared and before.column(name) is None]
    types: Mapping[str, str | None] = dict.fromkeys(untyped, "string")
    if untyped and options.infer_schema:
        rows = csv_rows(spark(), headers, [Column(name, "string") for name in names], options)
        types = _inferred(rows, untyped, label)
        warnings += _without_values(types)
    columns = [_column(name, declared, before, types) for name in names]
    warnings += (*alike_names(names), *unknown_declared(names, declared))
    return FoundSchema(SourceSchema(tuple(columns)), tuple(warnings))


def json_schema(
    paths: Sequence[str],
    known: SourceSchema | None,
    options: FilesOptions,
    declared: Mapping[str, str],
    spark: SparkProvider,
    label: str,
) -> FoundSchema:
    """Lines that are no objects are passed over here; reading sets them aside."""
    before = known or _NO_SCHEMA
    for path in paths:
        _refuse_array(path, label)
    fields = _json_fields(spark(), paths, options, label) if paths else {}
    names = [*(c.name for c in before.columns), *(name for name in fields if before.column(name) is None)]
    if not names:
        raise SourceError(
            f"{paths[0]} holds no JSON object", where=label, hint="JSON lines: one object a line, `{...}`"
        )
    texts = [n for n in names if n not in declared and before.column(n) is None and fields[n] == "string"]
    types: Mapping[str, str | None] = fields
    if texts and options.infer_schema:
        rows = json_rows(spark(), paths, [Column(name, "string") for name in texts], options)
        types = {**fields, **_inferred(rows, texts, label, only_times=True)}
    columns = [_column(name, declared, before, types) for name in names]
    warnings = (*alike_names(names), *unknown_declared(names, declared))
    return FoundSchema(SourceSchema(tuple(columns)), warnings)


def _column(name: str, declared: Mapping[str, str], before: SourceSchema, types: Mapping[str, str | None]) -> Column:
    known = before.column(name)
    if name not in declared:
        return known or Column(name, types[name] or "string")
    wanted = declared_column(name, declared[name])
    found = known.spark_type if known else (types.get(name) or "string")
    if wanted.spark_type == "string" and found.startswith(("struct", "array")):
        return Column(name, found, native_type=declared[name])
    return wanted


def _inferred(
    rows: DataFrame, names: Sequence[str], label: str, *, only_times: bool = False
) -> Mapping[str, str | None]:
    try:
        return infer_types(rows.where(F.col(MALFORMED_COLUMN).isNull()), names, only_times=only_times)
    except PySparkException as error:
        raise explain_read_error(error, label) or error from error


def _without_values(types: Mapping[str, str | None]) -> list[str]:
    empty = [name for name, type_ in types.items() if type_ is None]
    if not empty:
        return []
    listed = ", ".join(f"`{name}`" for name in islice(empty, 5)) + (" …" if len(empty) > 5 else "")
    return [f"no value yet in {listed}: text, unless the type is declared under `columns`"]


def _json_fields(spark: SparkSession, paths: Sequence[str], options: FilesOptions, label: str) -> dict[str, str]:
    reader = frames.reader(spark).options(
        mode="DROPMALFORMED",
        prefersDecimal=True,
        encoding=options.charset.spark,
        lineSep="\n",
        primitivesAsString=not options.infer_schema,
    )
    try:
        schema = reader.json(list(paths)).schema
    except PySparkException as error:
        raise explain_read_error(error, label) or error from error
    return {field.name: _json_type(field.dataType, top=True) for field in schema.fields}


def _json_type(type_: T.DataType, *, top: bool) -> str:
    match type_:
        case T.StructType():
            return "struct<" + ",".join(f"{quoted(f.name)}:{_json_type(f.dataType, top=False)}" for f in type_) + ">"
        case T.ArrayType():
            return f"array<{_json_type(type_.elementType, top=False)}>"
        case T.DecimalType():
            return _json_number(type_.precision, type_.scale, top=top)
        case _:
            return type_.simpleString()


def _json_number(precision: int, scale: int, *, top: bool) -> str:
    """Room for larger values later. Fractions within objects become jsonb, whose readers expect doubles."""
    if scale == 0:
        return decimal(MAX_PRECISION, 0)
    if not top or precision > 24:
        return "double"
    return decimal(18 if precision <= 14 else 28, scale)


def _refuse_array(path: str, label: str) -> None:
    head = next(decompressed(path, label), b"").lstrip(b"\xef\xbb\xbf \t\r\n")
    if head.startswith(b"["):
        raise SourceError(
            f"{path} is one JSON array; JSON lines are wanted, one object a line",
            where=label,
            hint="convert it, for example with `jq -c '.[]'`",
        )
