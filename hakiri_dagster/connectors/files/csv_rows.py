"""CSV files as rows. Spark cuts lines into texts; each text then becomes a value by its column's name.

Columns are matched by the header of each file: files with the same header are read together, so a file with its
columns in another order, with one more or one less, puts every value where it belongs.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812  # Spark's own convention
from pyspark.sql.types import BooleanType

from hakiri_dagster.connectors.contract import FILE_COLUMN, RECORD_COLUMN, SPLIT_COLUMN
from hakiri_dagster.connectors.files import frames
from hakiri_dagster.connectors.files.csv_inference import parse_inferred
from hakiri_dagster.connectors.files.headers import Header, delimiter_of
from hakiri_dagster.connectors.files.lines import records_are_lines
from hakiri_dagster.connectors.files.markers import file_marker, split_start
from hakiri_dagster.connectors.files.options import FilesOptions
from hakiri_dagster.connectors.files.text_values import Parsed, parse
from hakiri_dagster.connectors.files.types import quoted
from hakiri_dagster.connectors.json.strict import RepeatedKey, UnreadableRecord, decode_strictly
from hakiri_dagster.connectors.json.type_inference import JSONB
from hakiri_dagster.manifest.load_spec import SubMicroseconds
from hakiri_dagster.planning.columns import Column as SchemaColumn

_WRONG_FIELDS = "_wrong_number_of_fields"
_NOTHING = "\ue000\ue001nothing\ue001\ue000"
"""Stands for an empty field on the way out of Spark's parser: were it `""`, a quoted empty text would be NULL, too."""


def csv_rows(
    spark: SparkSession,
    headers: Iterable[Header],
    columns: Sequence[SchemaColumn],
    options: FilesOptions,
    declared: Collection[str] = (),
    on_sub_microseconds: SubMicroseconds = "warn",
) -> DataFrame:
    """`declared` are the columns whose types the manifest declares: their texts are read as PostgreSQL would."""
    groups: dict[tuple[tuple[str, ...], str, bool], list[str]] = defaultdict(list)
    for header in headers:
        delimiter = delimiter_of(header.path, options)
        by_line = records_are_lines(header.path, delimiter, options)
        groups[header.names, delimiter, by_line].append(header.path)
    return frames.stacked(
        [
            _typed(
                _texts(spark, together, len(names), delimiter, by_line, options),
                names,
                delimiter,
                columns,
                options,
                declared,
                on_sub_microseconds,
            )
            for (names, delimiter, by_line), paths in groups.items()
            for together in frames.readable_together(paths)
            if names
        ]
        or [_no_rows(spark, columns, on_sub_microseconds)]
    )


def _texts(
    spark: SparkSession, paths: list[str], width: int, delimiter: str, by_line: bool, options: FilesOptions
) -> DataFrame:
    """Columns by position: `c0`, `c1` …, the whole line where it has too many or too few fields, the marker."""
    names = [f"c{i}" for i in range(width)]
    reader = frames.reader(spark).options(
        header=options.header,
        sep=delimiter,
        quote=options.quote,
        escape=options.escape,
        encoding=options.charset.spark,
        nullValue=_NOTHING,
        multiLine=not by_line,
        mode="PERMISSIVE",
        columnNameOfCorruptRecord=_WRONG_FIELDS,
        # A pruned parser does not count the fields.
        columnPruning=False,
        # The header was read already, and names need not be Spark's.
        enforceSchema=True,
    )
    schema = frames.read_schema([(name, "string") for name in (*names, _WRONG_FIELDS)])
    charset = options.charset
    return (
        reader.schema(schema)
        .csv(paths)
        .select(
            *[charset.translate(F.col(name)).alias(name) for name in names],
            charset.translate(F.col(_WRONG_FIELDS)).alias(_WRONG_FIELDS),
            file_marker().alias(FILE_COLUMN),
            (split_start() if by_line else F.lit(0).cast("bigint")).alias(SPLIT_COLUMN),
            F.monotonically_increasing_id().alias(RECORD_COLUMN),
        )
    )


def _typed(
    texts: DataFrame,
    names: tuple[str, ...],
    delimiter: str,
    columns: Sequence[SchemaColumn],
    options: FilesOptions,
    declared: Collection[str],
    on_sub_microseconds: SubMicroseconds,
) -> DataFrame:
    values: list[tuple[SchemaColumn, Parsed]] = []
    for column in columns:
        if column.name not in names:
            values.append((column, Parsed(F.lit(None).cast(column.spark_type), None)))
            continue
        text = without_nulls(F.col(f"c{names.index(column.name)}"), options.null_values)
        is_declared = column.name in declared
        values.append((column, _parse_declared(text, column) if is_declared else parse_inferred(text, column)))
    found = frames.typed_columns(values, on_sub_microseconds, marks_truncated=frames.may_truncate(columns))
    unlike = F.when(F.col(_WRONG_FIELDS).isNotNull(), F.lit(f"not {len(names)} fields, as the header has"))
    line = F.coalesce(F.col(_WRONG_FIELDS), _line(len(names), delimiter, options))
    return texts.select(*found.values, frames.malformed(line, unlike, found.misfits), *found.truncated, *frames.PLACE)


def _parse_declared(text: Column, column: SchemaColumn) -> Parsed:
    if (column.native_type or "").lower() != JSONB:
        return parse(text, column.spark_type)
    repeats = F.arrow_udf(_repeats_keys, BooleanType())(text)  # type: ignore[attr-defined]  # newer than its stubs
    return Parsed(text, repeats, reason="has a key more than once, of which `jsonb` would keep the last")


def _repeats_keys(texts: pa.Array) -> pa.Array:
    """Run in a Spark task. What is no JSON at all is for the destination to refuse."""
    found = np.zeros(len(texts), dtype=bool)
    doubtful = pc.fill_null(pc.greater(pc.count_substring(texts, ":"), 1), False)
    for index in np.flatnonzero(doubtful.to_numpy(zero_copy_only=False)).tolist():
        try:
            decode_strictly(texts[index].as_py())
        except RepeatedKey:
            found[index] = True
        except UnreadableRecord:
            continue
    return pa.array(found)


def without_nulls(text: Column, null_values: Sequence[str]) -> Column:
    return F.when(~text.isin(*null_values), text) if null_values else text


def _line(width: int, delimiter: str, options: FilesOptions) -> Column:
    """The line again, as a CSV writer puts it: Spark gives the text itself only where the fields do not fit."""
    writer = {
        "sep": delimiter,
        "quote": options.quote,
        "escape": options.escape,
        "emptyValue": '""',
        "ignoreLeadingWhiteSpace": "false",
        "ignoreTrailingWhiteSpace": "false",
    }
    return F.to_csv(F.struct(*[F.col(f"c{i}") for i in range(width)]), writer)


def _no_rows(spark: SparkSession, columns: Sequence[SchemaColumn], on_sub_microseconds: SubMicroseconds) -> DataFrame:
    places = [(name, "bigint") for name in frames.PLACE]
    schema = frames.read_schema([*((c.name, c.spark_type) for c in columns), *places])
    empty = spark.createDataFrame([], schema)
    values = [(column, Parsed(F.col(quoted(column.name)), None)) for column in columns]
    found = frames.typed_columns(values, on_sub_microseconds, marks_truncated=frames.may_truncate(columns))
    return empty.select(*found.values, frames.none_malformed(), *found.truncated, *frames.PLACE)
