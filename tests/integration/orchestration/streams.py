"""A connector of the tests' own: a database that gives the changes of its tables as streams, each with a log of its
own, whose positions are the cursor. What it holds is a JSON file: `{"orders": [[lsn, what], …], …}`."""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from hakiri_dagster.connectors import registry
from hakiri_dagster.connectors.contract import (
    NO_LOOKBACK,
    SLICE_COLUMN,
    Discovery,
    FileState,
    Known,
    Reading,
    SparkProvider,
)
from hakiri_dagster.manifest.tables import Endpoint, Pipeline, Project
from hakiri_dagster.planning.backfill_hint import BackfillHint, PartitionKey
from hakiri_dagster.planning.chunks import CursorRange, Extent, Part, Slice
from hakiri_dagster.planning.columns import Column, SourceSchema
from hakiri_dagster.planning.horizon import Horizon, Lookback
from hakiri_dagster.planning.parts import hull_of_extents

SCHEMA = SourceSchema((Column("stream", "string"), Column("lsn", "bigint"), Column("what", "string")))

Reads = Callable[[Sequence[Slice]], None]


def nothing(_slices: Sequence[Slice]) -> None: ...


@dataclass(frozen=True)
class StreamsTable:
    path: Path
    hint: BackfillHint
    slices_a_pass: int | None = 4
    reads: Reads = nothing
    text_format: bool = False
    read_as: str = ""
    tallies_itself: bool = False
    chunked_by_file: bool = False
    lineage: tuple[str, ...] = ("streams",)

    @property
    def _rows(self) -> list[tuple[str, int, str]]:
        held = json.loads(self.path.read_text())
        return [(stream, lsn, what) for stream, log in held.items() for lsn, what in log]

    def discover(
        self, *, cursor: str | None, known: Known, spark: SparkProvider, lookback: Lookback = NO_LOOKBACK
    ) -> Discovery:
        parts = {part: self._extent(part) for part in self.hint.parts}
        return Discovery(SCHEMA, "numeric", hull_of_extents(parts.values()), parts=parts)

    def _extent(self, part: Part) -> Extent:
        positions = [lsn for stream, lsn, _ in self._rows if stream == part.value]
        return Extent(min(positions), max(positions), 0, rows_at_upper=1) if positions else Extent(None, None, 0)

    def read(
        self,
        spark: SparkSession,
        schema: SourceSchema,
        cursor: str | None,
        slices: Sequence[Slice],
        files: Mapping[str, FileState],
        *,
        tallied: bool = False,
        twice: bool = False,
        horizon: Horizon | None = None,
    ) -> Reading:
        self.reads(slices)
        found = [(*row, index) for index, one in enumerate(slices) for row in self._rows if _within(one, row)]
        types = "stream string, lsn bigint, what string"
        return Reading(spark.createDataFrame(found, f"{types}, {SLICE_COLUMN} int"), schema)


def _within(one: Slice, row: tuple[str, int, str]) -> bool:
    bounds = one.bounds
    assert isinstance(bounds, CursorRange)
    assert bounds.part is not None
    lower, upper = bounds.interval.lower, bounds.interval.upper
    return bounds.part.value == row[0] and (lower is None or row[1] >= lower) and (upper is None or row[1] < upper)


class Streams:
    """As the registry has connectors."""

    def __init__(self, table: StreamsTable) -> None:
        self._table = table

    def check_config(self, config: Mapping[str, Any], table: str, path: str | None) -> Sequence[str]:
        return []

    def table(self, **_said: Any) -> StreamsTable:
        return self._table


def streams_of(path: Path, names: Collection[str], *, reads: Reads = nothing, slices_a_pass: int = 4) -> StreamsTable:
    hint = BackfillHint("snapshot-id", (PartitionKey("stream", tuple(names)),), natural_window=10)
    return StreamsTable(path, hint, slices_a_pass, reads)


@contextmanager
def registered(table: StreamsTable) -> Iterator[None]:
    found = registry.connector
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(registry, "connector", lambda name: Streams(table) if name == "streams" else found(name))
        yield


def over_streams(project: Project) -> Project:
    """The project with its only table read from there."""
    (pipeline,) = project.pipelines
    (table,) = pipeline.tables
    changed: Pipeline = replace(pipeline, tables=(replace(table, source=Endpoint("streams", {}), path=None),))
    return replace(project, pipelines=(changed,))
