"""What spans say of chunks."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from hakiri_dagster.destinations.contract import LedgerEntry
from hakiri_dagster.errors import DestinationUnavailable, RowsRefused
from hakiri_dagster.pipeline.outcomes import Outcome
from hakiri_dagster.pipeline.set_aside import SetAside
from hakiri_dagster.pipeline.spans.attributes import (
    of_failed,
    of_published,
    of_retry,
    of_rewind,
    of_times,
    predicate,
)
from hakiri_dagster.pipeline.steps import FailedChunk, PublishedChunk
from hakiri_dagster.planning.chunks import (
    Bounds,
    CursorKind,
    CursorRange,
    Interval,
    NullCursor,
    SourceFile,
    WholeTable,
)
from hakiri_dagster.planning.rewind import RewoundChunk
from hakiri_dagster.planning.windows import DAY, to_position

JANUARY = CursorRange(
    Interval(to_position(datetime(2024, 1, 1, tzinfo=UTC)), to_position(datetime(2024, 2, 1, tzinfo=UTC)))
)
ENTRY = LedgerEntry(7, "2024-01", JANUARY, 90, 4000, None, "run-1", 2, datetime(2024, 2, 1, tzinfo=UTC), False)
ASIDE = SetAside(rows=3, of=93, unplaced=0, unfit=0, first=None, first_unfit=None)
CHECKS = (
    Outcome("not_null_id", True, "", "", None),
    Outcome("regex_email", False, "", "", None),
    Outcome("row_count", False, "", "", "too few"),
)


@pytest.mark.parametrize(
    ("bounds", "kind", "told"),
    [
        (JANUARY, "timestamp", "at >= '2024-01-01T00:00:00.000000Z' AND at < '2024-02-01T00:00:00.000000Z'"),
        (JANUARY, "date", "at >= '2024-01-01' AND at < '2024-02-01'"),
        (CursorRange(Interval(0, 100)), "numeric", "at >= 0 AND at < 100"),
        (CursorRange(Interval(None, 100)), "numeric", "at < 100"),
        (CursorRange(Interval(100, None)), "numeric", "at >= 100"),
        (CursorRange(Interval(None, None)), "numeric", "at has a position"),
        (CursorRange(Interval(20_000 * 365 * DAY, None)), "date", "at >= '21956-09-21'"),
        (NullCursor(), "date", "at has no position"),
        (SourceFile("data/2024-01.csv", "0" * 32), None, "file = 'data/2024-01.csv'"),
        (WholeTable(), None, "all rows"),
    ],
)
def test_a_predicate_says_which_rows_a_slice_holds(bounds: Bounds, kind: CursorKind | None, told: str) -> None:
    assert predicate(bounds, "at", kind) == told


def test_a_published_chunk_tells_its_numbers_and_what_it_set_aside() -> None:
    assert of_published(PublishedChunk("2024-01", ENTRY, ASIDE, CHECKS[:2])) == {
        "hakiri.chunk.outcome": "published",
        "hakiri.chunk.rows": 90,
        "hakiri.chunk.bytes": 4000,
        "hakiri.chunk.load_id": 7,
        "hakiri.chunk.quarantined": 3,
        "hakiri.chunk.failed_checks": ["regex_email"],
    }


def test_a_failed_chunk_tells_the_kind_of_its_error() -> None:
    told = of_failed(FailedChunk("2024-01", RowsRefused("3 row(s)"), CHECKS, ASIDE))
    assert told == {
        "hakiri.chunk.outcome": "failed",
        "hakiri.chunk.rows": 0,
        "hakiri.chunk.bytes": 0,
        "hakiri.chunk.quarantined": 3,
        "hakiri.chunk.failed_checks": ["regex_email", "row_count"],
        "error.type": "RowsRefused",
        "hakiri.error.kind": "permanent",
    }
    unread = of_failed(FailedChunk("2024-01", DestinationUnavailable("gone")))
    assert (unread["hakiri.chunk.quarantined"], unread["hakiri.error.kind"]) == (None, "transient")


def test_a_reason_to_load_again_is_told_where_somebody_gave_one() -> None:
    rewound = RewoundChunk("2024-01", 3, "vendor-side correction", "ada", datetime(2024, 5, 1, tzinfo=UTC), (7,))
    assert of_rewind(rewound) == {"hakiri.rewind.id": 3, "hakiri.rewind.reason": "vendor-side correction"}
    assert of_rewind(None) == {}


def test_times_have_the_names_that_the_specification_gives_them() -> None:
    assert of_times(1200, 300, 60) == {
        "hakiri.chunk.duration_ms": 1200,
        "hakiri.chunk.wait_ms": 300,
        "hakiri.backfill.eta": 60,
    }


def test_a_retry_tells_what_was_in_the_way_and_how_long_it_pauses() -> None:
    told = of_retry(DestinationUnavailable("the server closed the connection"), 1.25)
    assert (told["hakiri.error.message"], told["hakiri.retry.pause_ms"]) == ("the server closed the connection", 1250)
