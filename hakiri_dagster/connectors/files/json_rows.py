"""JSON lines as rows.

Each line is read as text and parsed within `{"r": …}`: Spark's parser stops behind the first value of a line, so
two objects on one line, or anything else behind it, would be dropped in silence.
"""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812  # Spark's own convention

from hakiri_dagster.connectors.contract import FILE_COLUMN, LINE_COLUMN, RECORD_COLUMN, SPLIT_COLUMN
from hakiri_dagster.connectors.files import frames
from hakiri_dagster.connectors.files.csv_rows import without_nulls
from hakiri_dagster.connectors.files.markers import file_marker, split_start
from hakiri_dagster.connectors.files.options import FilesOptions
from hakiri_dagster.connectors.files.text_values import Parsed, parse
from hakiri_dagster.connectors.files.types import MAX_PRECISION, decimal, decimal_parts, quoted
from hakiri_dagster.planning.columns import Column as SchemaColumn

_JSON, _OBJECT, _BROKEN = "json", "r", "broken"


def json_rows(
    spark: SparkSession, paths: Sequence[str], columns: Sequence[SchemaColumn], options: FilesOptions
) -> DataFrame:
    return parsed_lines(_lines(spark, paths, options), columns, options.null_values, frames.PLACE)


def parsed_lines(
    lines: DataFrame,
    columns: Sequence[SchemaColumn],
    null_values: Sequence[str] = (),
    kept: Sequence[str] = (),
    text: str = LINE_COLUMN,
) -> DataFrame:
    """`lines` has the column LINE_COLUMN, wherever they come from. `kept` are further columns, which come along. `text`
    is the column that is parsed, where it is not the line as it was."""
    fields = ",".join(f"{quoted(c.name)}:{_parsed_as(c.spark_type)}" for c in columns)
    schema = f"{_OBJECT} struct<{fields}>, {_BROKEN} string"
    parsed = F.from_json(
        F.concat(F.lit(f'{{"{_OBJECT}":'), F.col(text), F.lit("}")),
        schema,
        {"mode": "PERMISSIVE", "columnNameOfCorruptRecord": _BROKEN},
    )
    objects = lines.select(LINE_COLUMN, *(name for name in kept if name != LINE_COLUMN), parsed.alias(_JSON))
    values = [(column, _value(column, null_values)) for column in columns]
    failures = [frames.misfit(column, value.failed) for column, value in values if value.failed is not None]
    broken = F.col(f"{_JSON}.{_BROKEN}").isNotNull() | F.col(f"{_JSON}.{_OBJECT}").isNull()
    unlike = F.when(broken, F.lit("not one JSON object with the table's types"))
    return objects.select(
        *frames.named([(column, value.value) for column, value in values]),
        frames.malformed(F.col(LINE_COLUMN), unlike, failures),
        *kept,
    )


def _lines(spark: SparkSession, paths: Sequence[str], options: FilesOptions) -> DataFrame:
    texts = [frames.reader(spark).text(together) for together in frames.readable_together(paths)]
    marks = [file_marker().alias(FILE_COLUMN), split_start().alias(SPLIT_COLUMN)]
    raw = frames.stacked([text.select("value", *marks) for text in texts])
    charset = options.charset
    text = F.col("value")
    if not charset.is_utf8:
        text = charset.translate(F.decode(text.cast("binary"), charset.spark))
    # Some writers mark the order of bytes at the head of a file; Spark keeps it when the file is compressed.
    lines = raw.select(F.regexp_replace(text, "^\\uFEFF", "").alias(LINE_COLUMN), FILE_COLUMN, SPLIT_COLUMN)
    return lines.where(F.trim(LINE_COLUMN) != "").withColumn(RECORD_COLUMN, F.monotonically_increasing_id())


def _parsed_as(spark_type: str) -> str:
    """Scalars are parsed from their texts, as in CSV. A fraction's text would come as a double's, so not decimals."""
    if spark_type.startswith(("struct", "array")):
        return spark_type
    parts = decimal_parts(spark_type)
    return "string" if parts is None else decimal(*_widest(*parts))


def _widest(precision: int, scale: int) -> tuple[int, int]:
    """With all the places there are, so that one too many is seen rather than rounded away."""
    return MAX_PRECISION, MAX_PRECISION - (precision - scale)


def _value(column: SchemaColumn, null_values: Sequence[str]) -> Parsed:
    raw = F.col(f"{_JSON}.{_OBJECT}.{quoted(column.name)}")
    if column.spark_type.startswith(("struct", "array")):
        return Parsed(raw, None)
    if decimal_parts(column.spark_type) is None:
        return parse(without_nulls(raw, null_values), column.spark_type)
    value: Column = raw.try_cast(column.spark_type)
    failed = raw.isNotNull() & ~value.cast(_parsed_as(column.spark_type)).eqNullSafe(raw)
    return Parsed(F.when(~failed, value), failed)
