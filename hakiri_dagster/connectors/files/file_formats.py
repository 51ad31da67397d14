"""The one place that knows all formats."""

from __future__ import annotations

from collections.abc import Mapping

from hakiri_dagster.connectors.files.columnar_format import ColumnarFormat
from hakiri_dagster.connectors.files.csv_format import CsvFormat
from hakiri_dagster.connectors.files.format_contract import FileFormat
from hakiri_dagster.connectors.files.formats import Format
from hakiri_dagster.connectors.files.json_format import JsonLinesFormat
from hakiri_dagster.connectors.files.options import FilesOptions
from hakiri_dagster.manifest.load_spec import SubMicroseconds


def file_format(
    format_: Format,
    options: FilesOptions,
    declared: Mapping[str, str],
    label: str,
    sub_microseconds: SubMicroseconds,
    *,
    keeps_misfits: bool = False,
) -> FileFormat:
    match format_:
        case "csv":
            return CsvFormat(options, declared, label, sub_microseconds)
        case "jsonl":
            return JsonLinesFormat(options, declared, label, sub_microseconds, keeps_misfits)
        case "parquet" | "orc":
            return ColumnarFormat(format_, declared, label, sub_microseconds)
