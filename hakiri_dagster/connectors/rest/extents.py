"""Where the history of a table begins and ends, as far as one page of it, or two, and the API's clock tell."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime
from typing import Final

from hakiri_dagster.connectors.rest.orders import out_of_order
from hakiri_dagster.connectors.rest.ranges import CursorParams, as_position
from hakiri_dagster.connectors.rest.samples import Sample, Seen, Span
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


def untold(sample: Sample, extent: Extent, asked: CursorParams, cursor: str, kind: CursorKind) -> Iterator[str]:
    """Warnings of records that no window is planned for, or of windows that nothing may be in."""
    if sample.first.spans[kind].highest is not None:
        return
    if extent.upper is not None and asked.ascending and sample.oldest is None:
        yield (
            f"no record of the first page has a value of the cursor `{cursor}`, so nothing tells the oldest one: "
            "history is planned from 1970 on, or from `backfill.start_from`"
        )
    elif extent.upper is None and sample.first.has_records:
        yield f"no record that the API shows has a value of the cursor `{cursor}`, so no window is planned for them"


def extent_of(sample: Sample, asked: CursorParams, kind: CursorKind, recent: int | None, label: str) -> Extent:
    """`recent` asks for late rows to be noticed. An API counts none, so they are taken to have changed. So is the end
    of the table where nothing tells it: its clock may say the same twice, with a new record in between."""
    ends = (
        sample.oldest or (sample.first if asked.ascending else None),
        sample.newest or (sample.first if asked.descending else None),
    )
    _refuse_disorder(sample.first.spans[kind], asked, label)
    if _is_empty(sample, ends, kind):
        return Extent(None, None, 0)
    oldest, newest = (Span() if page is None else page.spans[kind] for page in ends)
    lower = BEGINNING if oldest.lowest is None else oldest.lowest
    now = as_position(datetime.now(UTC))
    if newest.highest is None:
        if kind == "numeric":
            raise _no_highest(sample, asked, label)
        theirs = now if sample.first.moment is None else as_position(sample.first.moment)
        return Extent(lower, min(theirs, now), 0, rows_recent=now)
    changing = None if recent is None else now
    return Extent(min(lower, newest.highest), newest.highest, 0, rows_at_upper=newest.at_highest, rows_recent=changing)


def _refuse_disorder(first: Span, asked: CursorParams, label: str) -> None:
    """Else history would be taken to begin, or to end, where it does not."""
    if asked.ascending and first.falls:
        raise out_of_order("the first page", "ascending", label)
    if asked.descending and first.rises:
        raise out_of_order("the first page", "descending", label)


def _is_empty(sample: Sample, ends: Sequence[Seen | None], kind: CursorKind) -> bool:
    """Of records with a cursor: where a page that should tell an end has others only, and none follows."""
    if sample.leads_on or any(page.spans[kind].highest is not None for page in sample.pages):
        return False
    return any(page is not None for page in ends) or not any(page.has_records for page in sample.pages)


def _no_highest(sample: Sample, asked: CursorParams, label: str) -> SourceError:
    if sample.newest is None and not asked.descending:
        return SourceError(
            "nothing tells the highest value of the cursor",
            where=label,
            hint="set `cursor_params.newest` to parameters with which the API gives the newest record first",
        )
    page = "the first page" if sample.newest is None else "the page with the newest record"
    return SourceError(
        f"{page} tells no value of the cursor, so nothing tells the highest one",
        where=label,
        hint="the API shows records without one first, or an empty page: set parameters that leave these out, "
        + ("under `cursor_params.newest`" if sample.newest else "or `cursor_params.newest`"),
    )
