"""A folder of files as a source: what a test puts there, what the connector finds, what it reads."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import Row, SparkSession
from pyspark.sql.pandas.types import to_arrow_type

from hakiri_dagster.connectors.contract import (
    MALFORMED_COLUMN,
    TRUNCATED_COLUMN,
    Discovery,
    Known,
    Reading,
    SourceTable,
)
from hakiri_dagster.connectors.files.connector import FILES
from hakiri_dagster.manifest.load_spec import SubMicroseconds
from hakiri_dagster.planning.chunks import Bounds, Chunk, Slice, WholeTable

LABEL = "shop/orders"


@dataclass
class Source:
    folder: Path
    spark: SparkSession
    spark_starts: int = 0
    config: dict[str, Any] = field(default_factory=dict)
    columns: dict[str, str] = field(default_factory=dict)
    sub_microseconds: SubMicroseconds = "warn"

    def write(self, name: str, contents: str | bytes) -> Path:
        path = self.folder / "orders" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(contents if isinstance(contents, bytes) else contents.encode())
        return path

    def table(self, path: str | None = None) -> SourceTable:
        config = {"path": str(self.folder), **self.config}
        return FILES.table(
            config=config,
            name="orders",
            path=path,
            columns=self.columns,
            label=LABEL,
            sub_microseconds=self.sub_microseconds,
        )

    def discover(self, *, cursor: str | None = None, known: Known | None = None) -> Discovery:
        return self.table().discover(cursor=cursor, known=known or Known(), spark=self._start)

    def _start(self) -> SparkSession:
        self.spark_starts += 1
        return self.spark

    def read(self, found: Discovery, cursor: str | None = None, *bounds: Bounds) -> Reading:
        assert found.schema is not None
        slices = [Slice(Chunk(f"k{i}", bound), bound) for i, bound in enumerate(bounds or (WholeTable(),))]
        files = {state.path: state for state in found.files}
        return self.table().read(self.spark, found.schema, cursor, slices, files)

    def rows(self, found: Discovery | None = None, cursor: str | None = None, *bounds: Bounds) -> list[Row]:
        """The good ones. Where they can be read without Spark's reader too, both ways give the same."""
        reading = self.read(found or self.discover(), cursor, *bounds)
        frame = reading.frame
        if reading.direct is not None:
            direct, by_spark = told_apart(direct_table(reading)), told_apart(frame.toArrow())
            assert by_spark <= direct if bounds else by_spark == direct
        return [row for row in frame.collect() if not _malformed(row)]

    def malformed(self, found: Discovery | None = None, cursor: str | None = None, *bounds: Bounds) -> list[str]:
        frame = self.read(found or self.discover(), cursor, *bounds).frame
        return sorted(row[MALFORMED_COLUMN].line for row in frame.collect() if _malformed(row))

    def reasons(self, found: Discovery | None = None) -> set[str]:
        frame = self.read(found or self.discover()).frame
        return {row[MALFORMED_COLUMN].reason for row in frame.collect() if _malformed(row)}

    def truncated(self, found: Discovery | None = None) -> Counter[str]:
        """How many values of each column are marked as cut."""
        frame = self.read(found or self.discover()).frame
        marked = [row[TRUNCATED_COLUMN] for row in frame.collect()] if TRUNCATED_COLUMN in frame.columns else []
        return Counter(name for names in marked if names for name in names)

    def types(self, found: Discovery | None = None) -> dict[str, str]:
        schema = (found or self.discover()).schema
        assert schema is not None
        return {column.name: column.spark_type for column in schema.columns}


def _malformed(row: Row) -> bool:
    return MALFORMED_COLUMN in row and row[MALFORMED_COLUMN] is not None


def direct_table(reading: Reading) -> pa.Table:
    direct = reading.direct
    assert direct is not None
    schema = pa.schema([(f.name, to_arrow_type(f.dataType, timezone="UTC")) for f in reading.frame.schema])
    return pa.Table.from_batches((batch for part in range(direct.parts) for batch in direct.read(part)), schema)


def told_apart(table: pa.Table) -> Counter[str]:
    return Counter(map(repr, table.to_pylist()))


def known_from(found: Discovery) -> Known:
    return Known(found.schema, {state.path: state for state in found.files})


@pytest.fixture
def source(tmp_path: Path, spark: SparkSession) -> Source:
    return Source(tmp_path, spark)


@pytest.fixture
def remember() -> Callable[[Discovery], Known]:
    return known_from


@pytest.fixture
def values() -> Callable[[Sequence[Row], str], list[Any]]:
    def one_column(rows: Sequence[Mapping[str, Any] | Row], name: str) -> list[Any]:
        return sorted((row[name] for row in rows), key=lambda v: (v is None, v))

    return one_column
