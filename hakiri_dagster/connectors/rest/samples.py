"""What is kept of the pages that a look at a table asks for. The pages of a thousand parts would fill the memory."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import pairwise
from typing import get_args

from hakiri_dagster.connectors.json.raw_text import Record
from hakiri_dagster.connectors.rest.columns import Shown, shown_by
from hakiri_dagster.connectors.rest.pages import Page
from hakiri_dagster.connectors.rest.ranges import PositionOf
from hakiri_dagster.connectors.rest.walk import Collection
from hakiri_dagster.planning.chunks import CursorKind
from hakiri_dagster.security.retry_after import http_date


@dataclass(frozen=True, slots=True)
class Span:
    """Where records lie that have a position. `at_highest`: how many have the highest. `rises`, `falls`: one lies
    higher, or lower, than the one before it."""

    lowest: int | None = None
    highest: int | None = None
    at_highest: int = 0
    rises: bool = False
    falls: bool = False

    @classmethod
    def of(cls, positions: Sequence[int]) -> Span:
        if not positions:
            return cls()
        highest = max(positions)
        rises = any(before < after for before, after in pairwise(positions))
        falls = any(before > after for before, after in pairwise(positions))
        return cls(min(positions), highest, positions.count(highest), rises, falls)


@dataclass(frozen=True, slots=True)
class Seen:
    """Of one page. `spans`: by each kind that the cursor may be of, which only the pages of all parts tell together;
    none where the table has no cursor. `moment`: by the API's own clock, where it tells it."""

    has_records: bool
    columns: Shown
    spans: Mapping[CursorKind, Span]
    moment: datetime | None

    @property
    def tells_a_cursor(self) -> bool:
        return any(span.highest is not None for span in self.spans.values())


@dataclass(frozen=True, slots=True)
class Sample:
    """The first page of the table, and those with the `newest` and the `oldest` records where these were asked for.
    `leads_on`: the first page holds no record, or none with a cursor, and another follows; else nobody asks that."""

    first: Seen
    newest: Seen | None = None
    oldest: Seen | None = None
    leads_on: bool = False

    @property
    def has_nothing(self) -> bool:
        """The first page is the only one, and empty."""
        return not self.first.has_records and not self.leads_on

    @property
    def pages(self) -> Iterator[Seen]:
        yield from (page for page in (self.first, self.newest, self.oldest) if page is not None)


def seen(page: Page, collection: Collection, settled: frozenset[str], cursor: str | None) -> Seen:
    """`settled`: columns whose type no value tells. `cursor`: the member of records that holds it."""
    records = [(collection.record(sent), sent) for sent in page.records]
    return Seen(
        has_records=bool(records),
        columns=shown_by(collection.rows(records), settled),
        spans={} if cursor is None else _spans([record for record, _ in records], cursor),
        moment=http_date(page.headers.get("Date")),
    )


def _spans(records: Sequence[Record], cursor: str) -> Mapping[CursorKind, Span]:
    kinds: tuple[CursorKind, ...] = get_args(CursorKind)
    return {kind: Span.of(_positions(records, PositionOf(cursor, kind))) for kind in kinds}


def _positions(records: Sequence[Record], position: PositionOf) -> list[int]:
    return [here for record in records if (here := position(record)) is not None]
