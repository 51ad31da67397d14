"""Where records begin is said without Spark: it must never say what Spark's own reader would not."""

from __future__ import annotations

from pathlib import Path
from random import Random

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F  # noqa: N812  # Spark's own convention

from hakiri_dagster.connectors.contract import FILE_COLUMN, RECORD_COLUMN
from hakiri_dagster.connectors.files.csv_format import CsvFormat
from hakiri_dagster.connectors.files.csv_rows import csv_rows
from hakiri_dagster.connectors.files.headers import Header
from hakiri_dagster.connectors.files.markers import marker_of
from hakiri_dagster.connectors.files.options import FilesOptions
from hakiri_dagster.connectors.files.record_lines import Unclear
from hakiri_dagster.planning.columns import Column

FILES = 400
PIECES = ["a", "b", " ", ",", '"', '""', "\\", "\n", "\r\n"]


def scribbled(chance: Random, ending: str) -> str:
    """Rows that are numbered, so that what Spark reads of a line is known; what is between them is chaos."""
    text = ""
    for number in range(chance.randint(1, 6)):
        value = "".join(chance.choices(PIECES, k=chance.randint(0, 6)))
        style = chance.choice(["quoted", "quoted", "tidy", "raw"])
        if style == "tidy":
            value = value.replace('"', "").replace("\r\n", "").replace("\n", "")
        elif style == "quoted":
            value = '"' + value.replace("\\", "").replace('"', '""') + '"'
        text += chance.choice(["", "", ending, f" {ending}"]) + f"n{number},{value}{ending}"
    return text


@pytest.mark.parametrize("settings", [{}, {"multiline": False}, {"header": False}], ids=["CSV", "lines", "no header"])
def test_what_is_told_is_what_spark_reads(tmp_path: Path, spark: SparkSession, settings: dict[str, object]) -> None:
    chance = Random(7)
    options = FilesOptions.model_validate({"path": str(tmp_path), **settings})
    texts: dict[str, str] = {}
    for number in range(FILES):
        path = tmp_path / f"{number}.csv"
        texts[str(path)] = ("key,v\n" if options.header else "") + scribbled(
            chance, chance.choice(["\n", "\n", "\r\n"])
        )
        path.write_bytes(texts[str(path)].encode())
    names = ("key", "v")
    columns = [Column(name, "string") for name in names]
    rows = csv_rows(spark, [Header(path, names) for path in texts], columns, options)
    read: dict[int, list[str | None]] = {}
    for row in rows.select(FILE_COLUMN, RECORD_COLUMN, F.col("key")).orderBy(RECORD_COLUMN).collect():
        read.setdefault(row[0], []).append(row[2])
    certain = 0
    for path, text in texts.items():
        keys = read.get(marker_of(path), [])
        lines, whole = told(options, path)
        assert len(lines) == len(keys) if whole else len(lines) <= len(keys), text
        certain += whole
        for line, key in zip(lines, keys, strict=False):
            if key is not None and key.startswith("n"):
                assert text.split("\n")[line - 1].startswith(key.rstrip("\r")), (text, line, key)
    assert certain > FILES / 4


def told(options: FilesOptions, path: str) -> tuple[list[int], bool]:
    lines: list[int] = []
    begins = CsvFormat(options, {}, "shop/orders").begins(path)
    try:
        for line in begins:
            lines.append(line)  # noqa: PERF402  # what came before the exception counts
    except Unclear:
        return lines, False
    return lines, True
