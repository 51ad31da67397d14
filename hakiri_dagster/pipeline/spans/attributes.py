"""What is said of a run and of its chunks in their spans. Values only; when they are said is in `running`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final, assert_never

from hakiri_dagster.errors import HakiriError
from hakiri_dagster.pipeline.claims import ClaimedSlice
from hakiri_dagster.pipeline.cursor_note import shown_position
from hakiri_dagster.pipeline.hooks_run import HookRun
from hakiri_dagster.pipeline.outcomes import Outcome
from hakiri_dagster.pipeline.steps import FailedChunk, PublishedChunk, SkippedChunk
from hakiri_dagster.pipeline.way import Totals, Way
from hakiri_dagster.planning.chunks import (
    Bounds,
    CursorKind,
    CursorRange,
    NullCursor,
    Part,
    Segment,
    SourceFile,
    WholeTable,
)
from hakiri_dagster.planning.rewind import RewoundChunk
from hakiri_dagster.tracing.contract import Attributes

OUTCOME: Final = "hakiri.chunk.outcome"
"""published, failed, skipped, given_back."""


def of_table(way: Way) -> Attributes:
    """On every span: who searches for chunks sees them without their run."""
    return {"hakiri.pipeline_id": way.table.pipeline_id, "hakiri.table": way.table.name, "hakiri.run_id": way.run_id}


def of_run(way: Way, retries: Sequence[str]) -> Attributes:
    """`retries`: earlier runs that this one tries again."""
    table = way.table
    return {
        **of_table(way),
        "hakiri.source": table.source.known_as,
        "hakiri.target": f"{table.target_schema}.{table.target_name}",
        "hakiri.load_mode": table.mode,
        "hakiri.occasion": way.occasion,
        "hakiri.run.retries": retries or None,
    }


def of_totals(totals: Totals, chunks: Mapping[str, int]) -> Attributes:
    """`chunks`: how many came to which outcome."""
    counts = {f"hakiri.run.chunks.{outcome}": count for outcome, count in chunks.items()}
    return {"hakiri.run.rows": totals.rows, "hakiri.run.bytes": totals.bytes, **counts}


def of_claim(claim: ClaimedSlice, cursor: str | None, kind: CursorKind | None) -> Attributes:
    """`attempts` counts this one too. One that was killed has no span: its process could not send it any more."""
    dead = claim.claim.dead
    return {
        "hakiri.chunk.predicate": predicate(claim.slice.bounds, cursor, kind),
        "hakiri.chunk.attempts": claim.attempt,
        "hakiri.chunk.killed_attempt": None if dead is None else dead.attempt,
    }


def of_published(published: PublishedChunk) -> Attributes:
    entry = published.entry
    return {
        OUTCOME: "published",
        "hakiri.chunk.rows": entry.rows,
        "hakiri.chunk.bytes": entry.bytes,
        "hakiri.chunk.load_id": entry.load_id,
        "hakiri.chunk.quarantined": published.aside.rows,
        "hakiri.chunk.failed_checks": _failed_checks(published.outcomes),
    }


def of_failed(failed: FailedChunk) -> Attributes:
    """Nothing of it is published. What was set aside is known where its rows were read to their end."""
    return {
        OUTCOME: "failed",
        "hakiri.chunk.rows": 0,
        "hakiri.chunk.bytes": 0,
        "hakiri.chunk.quarantined": None if failed.aside is None else failed.aside.rows,
        "hakiri.chunk.failed_checks": _failed_checks(failed.outcomes),
        **of_error(failed.error),
    }


def of_skipped(skipped: SkippedChunk) -> Attributes:
    return {OUTCOME: "skipped", "hakiri.chunk.reason": skipped.reason}


def of_times(duration_ms: int, wait_ms: int | None, eta_seconds: int) -> Attributes:
    return {
        "hakiri.chunk.duration_ms": duration_ms,
        "hakiri.chunk.wait_ms": wait_ms,
        "hakiri.backfill.eta": eta_seconds,
    }


def of_earlier_loads(load_ids: Sequence[int]) -> Attributes:
    """Whose rows were replaced."""
    return {"hakiri.chunk.replaces": load_ids or None}


def of_rewind(rewound: RewoundChunk | None) -> Attributes:
    """Why somebody had the chunk loaded again."""
    if rewound is None:
        return {}
    return {"hakiri.rewind.id": rewound.rewind_id, "hakiri.rewind.reason": rewound.reason}


def of_error(error: HakiriError) -> Attributes:
    return {"error.type": type(error).__name__, "hakiri.error.kind": error.kind}


def of_retry(error: HakiriError, seconds: float) -> Attributes:
    return {**of_error(error), "hakiri.error.message": error.what, "hakiri.retry.pause_ms": round(seconds * 1000)}


def of_hook(ran: HookRun) -> Attributes:
    told = {} if ran.error is None else of_error(ran.error)
    return {"hakiri.hook.name": ran.name, "hakiri.hook.warns": ran.warns or None, **told}


def predicate(bounds: Bounds, cursor: str | None, kind: CursorKind | None) -> str:
    """Which rows of the source a slice is to hold. For people: it is no SQL that anybody runs."""
    match bounds:
        case WholeTable():
            return "all rows"
        case SourceFile(path, _):
            return f"file = '{path}'"
        case Segment(number, after):
            return f"segment {number} of the pages" + ("" if after is None else ", from where the one before has ended")
        case NullCursor(part):
            return f"{_of(part)}{cursor} has no position"
        case CursorRange(interval, part):
            edges = ((">=", interval.lower), ("<", interval.upper))
            told = [f"{cursor} {sign} {_shown(kind, edge)}" for sign, edge in edges if edge is not None]
            return _of(part) + (" AND ".join(told) or f"{cursor} has a position")
        case _:
            assert_never(bounds)


def _of(part: Part | None) -> str:
    return "" if part is None else f"{part.column} = '{part.value}' AND "


def _shown(kind: CursorKind | None, position: int) -> str:
    shown = shown_position(kind or "numeric", position)
    return str(shown) if isinstance(shown, int) else f"'{shown}'"


def _failed_checks(outcomes: Sequence[Outcome]) -> Sequence[str] | None:
    return [one.check for one in outcomes if not one.passed] or None
