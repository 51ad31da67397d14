"""A PostgreSQL source in a database of its own, and short ways to ask what the connector makes of it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import psycopg
import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from hakiri_dagster.connectors.contract import Discovery, Known, Reading, SourceTable
from hakiri_dagster.connectors.postgres import POSTGRES, partitions
from hakiri_dagster.planning.chunks import Bounds, Chunk, Slice, WholeTable

LABEL = "shop/orders"


def no_spark() -> SparkSession:
    raise AssertionError("a PostgreSQL source is discovered without Spark")


@dataclass(frozen=True)
class Source:
    url: str
    spark: SparkSession

    def run(self, *statements: str) -> None:
        with psycopg.connect(self.url, autocommit=True, client_encoding="utf8") as connection:
            for statement in statements:
                connection.execute(statement)  # type: ignore[arg-type]  # a test's own text

    def ask(self, statement: str) -> list[tuple[Any, ...]]:
        with psycopg.connect(self.url, autocommit=True) as connection:
            return connection.execute(statement).fetchall()  # type: ignore[arg-type]  # a test's own text

    def table(self, name: str, **config: Any) -> SourceTable:
        return POSTGRES.table(config={"url": self.url, **config}, name=name, path=None, columns={}, label=LABEL)

    def discover(self, name: str, cursor: str | None = None, **config: Any) -> Discovery:
        return self.table(name, **config).discover(cursor=cursor, known=Known(), spark=no_spark)

    def read(self, name: str, *bounds: Bounds, cursor: str | None = None, **config: Any) -> Reading:
        table = self.table(name, **config)
        schema = table.discover(cursor=None, known=Known(), spark=no_spark).schema
        assert schema is not None
        slices = [Slice(Chunk(str(n), bound), bound) for n, bound in enumerate(bounds or (WholeTable(),))]
        return table.read(self.spark, schema, cursor, slices, {})

    def rows(self, name: str, *bounds: Bounds, cursor: str | None = None, **config: Any) -> pa.Table:
        reading = self.read(name, *bounds, cursor=cursor, **config)
        try:
            return reading.frame.toArrow()
        finally:
            reading.close()


@pytest.fixture
def source(spark: SparkSession, database_url: str) -> Source:
    return Source(database_url, spark)


@pytest.fixture
def many_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tables of a few pages are read in as many parts as large ones."""
    monkeypatch.setattr(partitions, "PART_BYTES", 8192)


def parts_of(reading: Reading) -> int:
    assert reading.direct is not None
    return reading.direct.parts


def part(reading: Reading, number: int) -> list[dict[str, Any]]:
    assert reading.direct is not None
    return [row for batch in reading.direct.read(number) for row in batch.to_pylist()]
