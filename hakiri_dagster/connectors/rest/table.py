"""A table of an API: what one page of it tells, and its rows as a Spark frame."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from functools import cached_property, reduce
from urllib.parse import urlsplit

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812  # Spark's own convention

from hakiri_dagster.connectors.contract import (
    LINE_COLUMN,
    MALFORMED_COLUMN,
    SLICE_COLUMN,
    Discovery,
    FileState,
    Known,
    Reading,
    SparkProvider,
)
from hakiri_dagster.connectors.files.cursors import Cursor, hull
from hakiri_dagster.connectors.files.json_rows import parsed_lines
from hakiri_dagster.connectors.files.types import quoted
from hakiri_dagster.connectors.network import Network
from hakiri_dagster.connectors.rest.api import Api, Pairs
from hakiri_dagster.connectors.rest.client import Client
from hakiri_dagster.connectors.rest.columns import columns_of
from hakiri_dagster.connectors.rest.data_source import TEXT, WALK, Walk, Work, pages_of
from hakiri_dagster.connectors.rest.extents import Sample, extent_of
from hakiri_dagster.connectors.rest.json_text import Record
from hakiri_dagster.connectors.rest.pages import Page
from hakiri_dagster.connectors.rest.ranges import CursorParams, PositionOf
from hakiri_dagster.connectors.rest.verbatim import Verbatim
from hakiri_dagster.connectors.rest.walk import Collection, first_page
from hakiri_dagster.errors import HakiriError, SourceError
from hakiri_dagster.planning.chunks import CursorRange, Interval, Slice
from hakiri_dagster.planning.columns import SourceSchema


@dataclass(frozen=True, slots=True)
class Range:
    """A range of the cursor that is asked for by itself: of the slice with this index."""

    slice: int
    interval: Interval


@dataclass(frozen=True)
class RestTable:
    api: Api
    collection: Collection
    asked: CursorParams | None
    columns: Mapping[str, str]
    network: Network
    label: str
    max_connections: int
    text_format: bool = field(default=True, init=False)
    chunked_by_file: bool = field(default=False, init=False)
    tallies_itself: bool = field(default=False, init=False)

    @cached_property
    def read_as(self) -> str:
        """Of all that tells which records there are and what they are made of."""
        asked = self.collection
        place = self.api.base_url, asked.path, asked.params, asked.records
        told = repr((place, str(asked.flattening), str(asked.moments), sorted(self.columns.items())))
        return hashlib.blake2b(told.encode(), digest_size=6).hexdigest()

    @property
    def lineage(self) -> tuple[str, ...]:
        parts = urlsplit(self.api.base_url)
        return "rest", parts.netloc, *(part for part in f"{parts.path}/{self.collection.path}".split("/") if part)

    @property
    def slices_a_pass(self) -> int | None:
        """A walk may take hours. What is read in one pass is lost with it, so there are no more slices in it than are
        read side by side."""
        return self.max_connections if self.asked is None or self.asked.asks_apart else None

    def discover(
        self, *, cursor: str | None, known: Known, spark: SparkProvider, recent: int | None = None
    ) -> Discovery:
        try:
            sample = self._sample(with_ends=cursor is not None)
        except HakiriError as error:
            raise _of_table(error, self.label) from None
        schema, warnings = columns_of(sample.records, known.schema, self.columns)
        if not schema.columns:
            raise SourceError(
                "the API has no record that tells the table's columns",
                where=self.label,
                hint="declare them under `columns`, or wait until there is one",
            )
        if cursor is None or self.asked is None:
            return Discovery(schema, warnings=warnings)
        if schema.column(cursor) is None:
            raise SourceError(
                f"the records have no cursor `{cursor}`",
                where=self.label,
                hint=f"the columns are {', '.join(f'`{column.name}`' for column in schema.columns[:20])}",
            )
        kind = Cursor.of(schema, cursor, self.label).kind
        self.asked.refuse_misfit(kind, self.label)
        extent = extent_of(sample, self.asked, PositionOf(cursor, kind), recent, self.label)
        return Discovery(schema, kind, extent, warnings=warnings)

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
    ) -> Reading:
        if cursor is None or self.asked is None:
            frame = parsed_lines(self._pages(spark, schema, [Walk()]), schema.columns, text=TEXT)
            return Reading(frame, schema, has_malformed=True)
        by = Cursor.of(schema, cursor, self.label)
        ranges = [Range(i, one.bounds.interval) for i, one in enumerate(slices) if isinstance(one.bounds, CursorRange)]
        apart = self.asked.asks_apart
        if not apart and ranges:
            ranges = [Range(0, hull([one.interval for one in ranges]))]
        walks = [self._walk(one.interval, by) for one in ranges]
        rows = parsed_lines(self._pages(spark, schema, walks), schema.columns, kept=(WALK, LINE_COLUMN), text=TEXT)
        return Reading(_within(rows, schema, by, ranges, apart=apart), schema, has_malformed=True)

    def _sample(self, *, with_ends: bool) -> Sample:
        with closing(Client(self.api, self.network)) as client:
            page = first_page(client, self.collection)
            first = self._flattened(page)
            if not with_ends or self.asked is None:
                return Sample(page, first)
            return Sample(page, first, self._end(client, self.asked.newest), self._end(client, self.asked.oldest))

    def _end(self, client: Client, params: Pairs) -> Sequence[Record] | None:
        return self._flattened(first_page(client, self.collection, params)) if params else None

    def _flattened(self, page: Page) -> Sequence[Record]:
        return [self.collection.shaped(record) for record in page.records]

    def _pages(self, spark: SparkSession, schema: SourceSchema, walks: Sequence[Walk]) -> DataFrame:
        verbatim = Verbatim.of(schema.columns)
        return pages_of(spark, Work(self.api, self.network, self.collection, tuple(walks), verbatim))

    def _walk(self, interval: Interval, by: Cursor) -> Walk:
        assert self.asked is not None, "only ranges of a cursor are asked for"
        return Walk(self.asked.asked(interval), self.asked.order_of(PositionOf(by.name, by.kind), interval))


def _within(rows: DataFrame, schema: SourceSchema, by: Cursor, ranges: Sequence[Range], *, apart: bool) -> DataFrame:
    """Of each walk the rows of its own range: an API may give more than it was asked for, and what lies outside comes
    with another walk. A row whose cursor has no value belongs to none; it is set aside, for no other walk will tell."""
    unplaced = F.struct(
        F.col(LINE_COLUMN).alias("line"),
        F.coalesce(F.col(f"{MALFORMED_COLUMN}.reason"), F.lit(f"the cursor `{by.name}` has no value")).alias("reason"),
        F.lit(False).alias("readable"),
    )
    malformed = F.when(by.has_position, F.col(MALFORMED_COLUMN)).otherwise(unplaced)
    wanted = [_of_range(by, walk, one) for walk, one in enumerate(ranges)]
    inside = reduce(Column.__or__, wanted) if wanted else F.lit(False)
    marks = [malformed.alias(MALFORMED_COLUMN)]
    if apart and ranges:
        marks.append(_slice_of(ranges).alias(SLICE_COLUMN))
    names = [quoted(column.name) for column in schema.columns]
    return rows.where(~by.has_position | inside).select(*names, *marks)


def _slice_of(ranges: Sequence[Range]) -> Column:
    index = F.lit(None).cast("int")
    for walk, one in enumerate(ranges):
        index = F.when(F.col(WALK) == walk, F.lit(one.slice)).otherwise(index)
    return index


def _of_range(by: Cursor, walk: int, one: Range) -> Column:
    inside = by.condition([CursorRange(one.interval)])
    assert inside is not None, "a range leaves something out"
    return (F.col(WALK) == walk) & inside


def _of_table(error: HakiriError, label: str) -> HakiriError:
    return type(error)(error.what, where=label, hint=error.hint)
