"""Where the history of a table begins and ends, as far as one page of it, or two, and the API's clock tell."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final

from hakiri_dagster.connectors.rest.json_text import Record
from hakiri_dagster.connectors.rest.pages import Page
from hakiri_dagster.connectors.rest.ranges import CursorParams, PositionOf, as_position
from hakiri_dagster.connectors.rest.walk import Collection
from hakiri_dagster.errors import SourceError
from hakiri_dagster.planning.chunks import Extent
from hakiri_dagster.security.retry_after import http_date

BEGINNING: Final = 0
"""Where history is taken to begin at the earliest if nothing tells it: `backfill.start_from` says more."""


@dataclass(frozen=True, slots=True)
class Sample:
    """The first page of the table, and those with the `newest` and the `oldest` records where these were asked for.
    `has_nothing`: the first page is the only one, and empty, as far as that was to be found out."""

    collection: Collection
    page: Page
    newest: Page | None = None
    oldest: Page | None = None
    has_nothing: bool = False

    @property
    def rows(self) -> Iterator[Record]:
        """As far as a page tells them."""
        for page in (self.page, self.newest, self.oldest):
            if page is not None:
                yield from self.collection.rows(page.records)

    def positions(self, page: Page, position: PositionOf) -> list[int]:
        records = map(self.collection.record, page.records)
        return [here for record in records if (here := position(record)) is not None]


def no_parents(collection: Collection, samples: Iterable[Sample], label: str) -> SourceError | None:
    """Any list may be empty. Where no record is there that could have one, the source is rather broken than empty."""
    if collection.explosion is None or not all(sample.has_nothing for sample in samples):
        return None
    return SourceError(
        f"the API gave no record at all, so none whose `{'.'.join(collection.explosion.path)}` could be loaded, "
        "and nothing was changed. Set fail_on_empty_source = false to have the table emptied.",
        where=label,
    )


def extent_of(sample: Sample, asked: CursorParams, position: PositionOf, recent: int | None, label: str) -> Extent:
    """`recent` asks for late rows to be noticed. An API counts none, so they are taken to have changed. So is the end
    of the table where nothing tells it: its clock may say the same twice, with a new record in between."""
    if not any(page.records for page in (sample.page, sample.newest, sample.oldest) if page is not None):
        return Extent(None, None, 0)
    oldest = sample.oldest or (sample.page if asked.ascending else None)
    lower = BEGINNING if oldest is None else min(sample.positions(oldest, position), default=None)
    newest = sample.newest or (sample.page if asked.descending else None)
    now = as_position(datetime.now(UTC))
    changing = None if recent is None else now
    if newest is None:
        if position.kind == "numeric":
            raise SourceError(
                "nothing tells the highest value of the cursor",
                where=label,
                hint="set `cursor_params.newest` to parameters with which the API gives the newest record first",
            )
        return Extent(lower, min(_now_there(sample.page), now), 0, rows_recent=now)
    positions = sample.positions(newest, position)
    upper = max(positions, default=None)
    if upper is None:
        return Extent(None, None, 0)
    if lower is not None:
        lower = min(lower, upper)
    return Extent(lower, upper, 0, rows_at_upper=positions.count(upper), rows_recent=changing)


def _now_there(page: Page) -> int:
    """By the API's own clock, which decides what its records are dated."""
    return as_position(http_date(page.headers.get("Date")) or datetime.now(UTC))
