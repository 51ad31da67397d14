"""Where the history of a table begins and ends, as far as one page of it, or two, and the API's clock tell."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Final

from hakiri_dagster.connectors.rest.ranges import CursorParams, as_position
from hakiri_dagster.connectors.rest.samples import Sample
from hakiri_dagster.connectors.rest.walk import Collection
from hakiri_dagster.errors import SourceError
from hakiri_dagster.planning.chunks import CursorKind, Extent

BEGINNING: Final = 0
"""Where history is taken to begin at the earliest if nothing tells it: `backfill.start_from` says more."""


def no_parents(collection: Collection, samples: Iterable[Sample], label: str) -> SourceError | None:
    """Any list may be empty. Where no record is there that could have one, the source is rather broken than empty."""
    if collection.explosion is None or not all(sample.has_nothing for sample in samples):
        return None
    return SourceError(
        f"the API gave no record at all, so none whose `{'.'.join(collection.explosion.path)}` could be loaded, "
        "and nothing was changed. Set fail_on_empty_source = false to have the table emptied.",
        where=label,
    )


def extent_of(sample: Sample, asked: CursorParams, kind: CursorKind, recent: int | None, label: str) -> Extent:
    """`recent` asks for late rows to be noticed. An API counts none, so they are taken to have changed. So is the end
    of the table where nothing tells it: its clock may say the same twice, with a new record in between."""
    if not any(page.has_records for page in sample.pages):
        return Extent(None, None, 0)
    oldest = sample.oldest or (sample.first if asked.ascending else None)
    lower = BEGINNING if oldest is None else oldest.spans[kind].lowest
    newest = sample.newest or (sample.first if asked.descending else None)
    now = as_position(datetime.now(UTC))
    changing = None if recent is None else now
    if newest is None:
        if kind == "numeric":
            raise SourceError(
                "nothing tells the highest value of the cursor",
                where=label,
                hint="set `cursor_params.newest` to parameters with which the API gives the newest record first",
            )
        theirs = now if sample.first.moment is None else as_position(sample.first.moment)
        return Extent(lower, min(theirs, now), 0, rows_recent=now)
    span = newest.spans[kind]
    if span.highest is None:
        return Extent(None, None, 0)
    if lower is not None:
        lower = min(lower, span.highest)
    return Extent(lower, span.highest, 0, rows_at_upper=span.at_highest, rows_recent=changing)
