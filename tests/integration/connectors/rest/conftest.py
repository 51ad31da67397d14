"""A table of an API that a test plays: what the connector finds of it, and what it reads."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, NoReturn

import pytest
from pyspark.sql import Row, SparkSession

from hakiri_dagster.connectors.contract import MALFORMED_COLUMN, Discovery, Known, Reading, SourceTable
from hakiri_dagster.connectors.network import Network
from hakiri_dagster.connectors.rest.connector import REST
from hakiri_dagster.planning.chunks import Bounds, Chunk, Slice, WholeTable
from hakiri_dagster.planning.horizon import Lookback

LABEL = "api/things"


def no_spark() -> NoReturn:
    raise AssertionError("Spark was asked for")


@dataclass
class Source:
    spark: SparkSession
    url: str = ""
    config: dict[str, Any] = field(default_factory=dict)
    endpoint: dict[str, Any] = field(default_factory=dict)
    columns: dict[str, str] = field(default_factory=dict)
    key: tuple[str, ...] = ()
    keeps_misfits: bool = False

    def table(self) -> SourceTable:
        return REST.table(
            config={"base_url": self.url, "pagination": {"type": "link"}, "retry": {"first_pause": 0.01}} | self.config,
            name="things",
            path=None,
            columns=self.columns,
            label=LABEL,
            keeps_misfits=self.keeps_misfits,
            endpoint=self.endpoint,
            key=self.key,
            network=Network(allow_loopback=True),
        )

    def discover(self, cursor: str | None = None, known: Known | None = None, recent: int | None = None) -> Discovery:
        return self.table().discover(
            cursor=cursor, known=known or Known(), spark=no_spark, lookback=Lookback(lag=recent, judges=False)
        )

    def read(self, found: Discovery, cursor: str | None = None, *bounds: Bounds) -> Reading:
        assert found.schema is not None
        slices = [Slice(Chunk(f"k{i}", bound), bound) for i, bound in enumerate(bounds or (WholeTable(),))]
        return self.table().read(self.spark, found.schema, cursor, slices, {})

    def rows(self, found: Discovery | None = None, cursor: str | None = None, *bounds: Bounds) -> Sequence[Row]:
        return self.read(found or self.discover(cursor), cursor, *bounds).frame.collect()


def is_good(row: Row) -> bool:
    return row[MALFORMED_COLUMN] is None


@pytest.fixture
def source(spark: SparkSession) -> Source:
    return Source(spark)
