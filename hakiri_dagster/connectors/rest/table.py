"""A table of an API: what one page of it tells, and its rows as a Spark frame."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from functools import cached_property, partial, reduce
from itertools import chain
from urllib.parse import urlsplit

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812  # Spark's own convention

from hakiri_dagster.connectors.contract import (
    LINE_COLUMN,
    MALFORMED_COLUMN,
    NO_LOOKBACK,
    ONWARD_COLUMN,
    SLICE_COLUMN,
    TRUNCATED_COLUMN,
    UNSEEN_COLUMN,
    Discovery,
    FileState,
    Known,
    Reading,
    SparkProvider,
)
from hakiri_dagster.connectors.files.cursors import Cursor, hull
from hakiri_dagster.connectors.files.types import quoted
from hakiri_dagster.connectors.network import Network
from hakiri_dagster.connectors.rest.api import Api, Pairs
from hakiri_dagster.connectors.rest.client import Client
from hakiri_dagster.connectors.rest.columns import columns_of
from hakiri_dagster.connectors.rest.data_source import WALK, Walk, Work, pages_of
from hakiri_dagster.connectors.rest.extents import extent_of, no_parents, untold
from hakiri_dagster.connectors.rest.pages import Page
from hakiri_dagster.connectors.rest.parting import params_of_part
from hakiri_dagster.connectors.rest.ranges import CursorParams, PositionOf
from hakiri_dagster.connectors.rest.samples import Sample, Seen, seen
from hakiri_dagster.connectors.rest.silent_parts import answers_of_parts, is_silence
from hakiri_dagster.connectors.rest.walk import Collection, Stretch, first_page
from hakiri_dagster.errors import HakiriError, HeldBack, SourceError
from hakiri_dagster.manifest.load_spec import SubMicroseconds
from hakiri_dagster.planning.backfill_hint import MONOTONIC, BackfillHint
from hakiri_dagster.planning.chunks import CursorRange, Interval, Part, Segment, Slice
from hakiri_dagster.planning.columns import SourceSchema
from hakiri_dagster.planning.horizon import Horizon, Lookback
from hakiri_dagster.planning.parts import hull_of_extents


@dataclass(frozen=True, slots=True)
class Range:
    """A range of the cursor that is asked for by itself, of one part, and the slices that lie in it, by their index."""

    interval: Interval
    slices: tuple[tuple[int, Interval], ...]
    part: Part | None = None


@dataclass(frozen=True)
class RestTable:
    api: Api
    collection: Collection
    asked: CursorParams | None
    columns: Mapping[str, str]
    network: Network
    label: str
    max_connections: int
    hint: BackfillHint = MONOTONIC
    pages_a_segment: int | None = None
    needs_parents: bool = False
    sub_microseconds: SubMicroseconds = "warn"
    text_format: bool = field(default=True, init=False)
    chunked_by_file: bool = field(default=False, init=False)
    tallies_itself: bool = field(default=False, init=False)

    @cached_property
    def read_as(self) -> str:
        """Of all that tells which records there are and what they are made of."""
        asked = self.collection
        place = self.api.base_url, asked.path, asked.params, asked.records
        told = repr(
            (place, str(asked.flattening), str(asked.moments), repr(asked.explosion), sorted(self.columns.items()))
        )
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
        self, *, cursor: str | None, known: Known, spark: SparkProvider, lookback: Lookback = NO_LOOKBACK
    ) -> Discovery:
        declared = {**self._part_columns(), **self.columns}
        remembered = [column.name for column in known.schema.columns] if known.schema else []
        try:
            samples, away = self._samples(cursor, frozenset((*declared, *remembered)))
        except HakiriError as error:
            raise _of_table(error, self.label) from None
        shown = [page.columns for sample in samples.values() for page in sample.pages]
        schema, warnings = columns_of(shown, known.schema, declared)
        if not schema.columns:
            raise SourceError(
                "the API has no record that tells the table's columns",
                where=self.label,
                hint="declare them under `columns`, or wait until there is one",
            )
        if cursor is None or self.asked is None:
            return Discovery(schema, warnings=warnings, broken=self._broken(samples.values()))
        if schema.column(cursor) is None:
            raise SourceError(
                f"the records have no cursor `{cursor}`",
                where=self.label,
                hint=f"the columns are {', '.join(f'`{column.name}`' for column in schema.columns[:20])}",
            )
        kind = Cursor.of(schema, cursor, self.label).kind
        self.asked.refuse_misfit(kind, self.label)
        extents = {part: extent_of(one, self.asked, kind, lookback.lag, self.label) for part, one in samples.items()}
        silent = (untold(one, extents[part], self.asked, cursor, kind) for part, one in samples.items())
        warnings = tuple(dict.fromkeys((*warnings, *chain.from_iterable(silent))))
        parts = {part: extent for part, extent in extents.items() if part is not None}
        extent = hull_of_extents(parts.values()) if parts else extents[None]
        return Discovery(schema, kind, extent, warnings=warnings, parts=parts, away=away)

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
        first = slices[0].bounds if slices else None
        if isinstance(first, Segment) and self.pages_a_segment is not None:
            stretch = Walk(stretch=Stretch(first.after, self.pages_a_segment), chunk=slices[0].chunk.key)
            return Reading(self._rows(spark, schema, [stretch], ONWARD_COLUMN), schema, has_malformed=True)
        if cursor is None or self.asked is None:
            everything = [Walk(part=part, chunk=_only_chunk(slices)) for part in self._parts]
            return Reading(self._rows(spark, schema, everything), schema, has_malformed=True)
        by = Cursor.of(schema, cursor, self.label)
        ranges = _ranges(slices, apart=self.asked.asks_apart)
        rows = self._rows(spark, schema, [self._walk(one, by, slices) for one in ranges], WALK, LINE_COLUMN)
        told = self.asked.asks_apart or bool(self.hint.parts)
        return Reading(_within(rows, schema, by, ranges, told=told), schema, has_malformed=True)

    @property
    def _parts(self) -> tuple[Part | None, ...]:
        return self.hint.parts or (None,)

    def _part_columns(self) -> dict[str, str]:
        return {key.column: "text" for key in self.hint.partition_keys}

    def _samples(
        self, cursor: str | None, settled: frozenset[str]
    ) -> tuple[Mapping[Part | None, Sample], Mapping[Part, HakiriError]]:
        """Of each part, as many at once as may be asked for at once; and why the API refuses some of them, or does not
        answer for them. A tick has no time to ask once more, and the next one does so."""

        def ask(part: Part | None) -> Sample | HakiriError:
            try:
                return self._sample(part, cursor, settled)
            except _Refused as refused:
                return self._away(part, refused.error, with_ends=cursor is not None)

        once_more = not self.network.hurried
        answers = answers_of_parts(self._parts, ask, at_once=self.max_connections, once_more=once_more)
        samples = {part: one for part, one in answers.items() if isinstance(one, Sample)}
        away = {part: one for part, one in answers.items() if part is not None and isinstance(one, HakiriError)}
        if not samples:
            raise next(filter(is_silence, away.values()), next(iter(away.values())))
        return samples, away

    def _away(self, part: Part | None, error: SourceError, *, with_ends: bool) -> HakiriError:
        """Raises what the others cannot go on without: a table that is loaded whole needs them all. The answer is a new
        error, as this one's traceback holds on to what the API has sent."""
        if part is None or not with_ends:
            raise error
        return _of_table(error, self.label)

    def _sample(self, part: Part | None, cursor: str | None, settled: frozenset[str]) -> Sample:
        """Each page is let go of before the next one is asked for."""
        collection = self.collection.of_part(part)
        asked = None if cursor is None else self.asked
        member = None if asked is None else collection.cursor_member or cursor
        keep = partial(seen, collection=collection, settled=settled, cursor=member)
        ends = ((), ()) if asked is None else (asked.newest, asked.oldest)
        with closing(Client(self.api, self.network)) as client:
            first, leads_on = _first(client, collection, keep, with_cursor=asked is not None)
            newest, oldest = (keep(_end(client, collection, said)) if said else None for said in ends)
            return Sample(first, newest, oldest, leads_on)

    def _broken(self, samples: Iterable[Sample]) -> Mapping[str, HakiriError]:
        """Asked of the first pages of all parts, as the walk of one cannot tell."""
        refusal = no_parents(self.collection, samples, self.label) if self.needs_parents else None
        return {} if refusal is None else {self.collection.path: refusal}

    def _rows(self, spark: SparkSession, schema: SourceSchema, walks: Sequence[Walk], *kept: str) -> DataFrame:
        """`kept`: what comes along with the columns."""
        work = Work(
            self.api,
            self.network,
            self.collection,
            tuple(walks),
            schema.columns,
            self.sub_microseconds,
            frozenset((*self._part_columns(), *self.columns)),
        )
        pages = pages_of(spark, work)
        rows = pages.coalesce(self.max_connections) if len(walks) > self.max_connections else pages
        names = [quoted(column.name) for column in schema.columns]
        return rows.select(*names, MALFORMED_COLUMN, *kept, UNSEEN_COLUMN, TRUNCATED_COLUMN)

    def _walk(self, one: Range, by: Cursor, slices: Sequence[Slice]) -> Walk:
        assert self.asked is not None, "only ranges of a cursor are asked for"
        order = self.asked.order_of(PositionOf(self.collection.cursor_member or by.name, by.kind), one.interval)
        served = _only_chunk([slices[index] for index, _ in one.slices])
        return Walk(self.asked.asked(one.interval), order, one.part, chunk=served)


def _first(
    client: Client, collection: Collection, keep: Callable[[Page], Seen], *, with_cursor: bool
) -> tuple[Seen, bool]:
    """And whether pages follow one that tells nothing: an API may look through its records page by page, and give of
    each those that were asked for."""
    page = _end(client, collection, ())
    first = keep(page)
    tells = first.tells_a_cursor if with_cursor else first.has_records
    return first, not tells and collection.pagination.after(client, page) is not None


def _end(client: Client, collection: Collection, params: Pairs) -> Page:
    with _refusals():
        return first_page(client, collection, params_of_part(params, collection.part))


class _Refused(Exception):
    """The API does not give a page. What is wrong with records that it gives concerns all parts, and so does what keeps
    a request from being sent."""

    def __init__(self, error: SourceError) -> None:
        super().__init__(error.what)
        self.error = error


@contextmanager
def _refusals() -> Iterator[None]:
    try:
        yield
    except HeldBack:
        raise
    except SourceError as error:
        raise _Refused(error) from None


def _only_chunk(slices: Sequence[Slice]) -> str:
    return slices[0].chunk.key if len(slices) == 1 else ""


def _ranges(slices: Sequence[Slice], *, apart: bool) -> list[Range]:
    """Those of one part are read in one walk where the API cannot be asked for each by itself."""
    bounds = [(index, one.bounds) for index, one in enumerate(slices) if isinstance(one.bounds, CursorRange)]
    if apart:
        return [Range(one.interval, ((index, one.interval),), one.part) for index, one in bounds]
    together: dict[Part | None, list[tuple[int, Interval]]] = {}
    for index, one in bounds:
        together.setdefault(one.part, []).append((index, one.interval))
    return [Range(hull([i for _, i in found]), tuple(found), part) for part, found in together.items()]


def _within(rows: DataFrame, schema: SourceSchema, by: Cursor, ranges: Sequence[Range], *, told: bool) -> DataFrame:
    """Of each walk the rows of its own range: an API may give more than it was asked for, and what lies outside comes
    with another walk. A row whose cursor has no value belongs to none; it is set aside, for no other walk will tell.
    `told`: rows bear the slice that they came for."""
    unplaced = F.struct(
        F.col(LINE_COLUMN).alias("line"),
        F.coalesce(F.col(f"{MALFORMED_COLUMN}.reason"), F.lit(f"the cursor `{by.name}` has no value")).alias("reason"),
        F.lit(False).alias("readable"),
    )
    malformed = F.when(by.has_position, F.col(MALFORMED_COLUMN)).otherwise(unplaced)
    wanted = [_of(by, walk, [interval for _, interval in one.slices]) for walk, one in enumerate(ranges)]
    inside = reduce(Column.__or__, wanted) if wanted else F.lit(False)
    counted = [F.col(name) for name in (UNSEEN_COLUMN, TRUNCATED_COLUMN) if name in rows.columns]
    marks = [malformed.alias(MALFORMED_COLUMN), *counted]
    if told and ranges:
        marks.append(_slice_of(by, ranges).alias(SLICE_COLUMN))
    names = [quoted(column.name) for column in schema.columns]
    return rows.where(~by.has_position | inside).select(*names, *marks)


def _slice_of(by: Cursor, ranges: Sequence[Range]) -> Column:
    """What has no cursor goes with the first slice of its walk."""
    index = F.lit(None).cast("int")
    for walk, one in enumerate(ranges):
        (first, _), *others = one.slices
        index = F.when(F.col(WALK) == walk, F.lit(first)).otherwise(index)
        for number, interval in others:
            index = F.when(_of(by, walk, [interval]), F.lit(number)).otherwise(index)
    return index


def _of(by: Cursor, walk: int, intervals: Sequence[Interval]) -> Column:
    inside = [by.condition([CursorRange(interval)]) for interval in intervals]
    return (F.col(WALK) == walk) & reduce(Column.__or__, (one for one in inside if one is not None))


def _of_table(error: HakiriError, label: str) -> HakiriError:
    return type(error)(error.what, where=label, hint=error.hint)
