"""What is known of a chunk, what one load owes it, and what a published load changes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Literal

from hakiri_dagster.planning.chunks import Bounds, Chunk, CursorRange, Interval, Slice
from hakiri_dagster.planning.intervals import NOTHING, Intervals, union

ChunkStatus = Literal["pending", "running", "done", "failed", "retired", "superseded"]
"""`retired`: left the plan before it was done. `superseded`: another chunk's publish replaced its rows."""


@dataclass(frozen=True, slots=True)
class ChunkState:
    """A chunk as the audit DB knows it.

    `covered` is what of the cursor is published wholly. `cursor_committed` is where a next slice begins: rows at it
    may be published, but ties may still come. `seen` is what the source said of itself (an opaque text) when the
    load that was published last was planned: as long as it says the same, it holds nothing new for this chunk.
    `attempt_seen` is that of the last attempt, published or not. `rewind` is the rewind that asked for it again, until
    it is published since. `token`: of a segment, where the next one begins; empty where there is none. `gap`: it was
    published, and the ledger knows nothing of it any more. `from_ledger`: the audit DB does not say so yet. `killed`:
    of one that `failed`, its last attempt did not end by itself. `winner`: the attempt that was published last.
    """

    key: str
    bounds: Bounds
    status: ChunkStatus = "pending"
    attempts: int = 0
    generation: int = 0
    covered: Intervals = NOTHING
    cursor_committed: int | None = None
    seen: str | None = None
    attempt_seen: str | None = None
    rows: int | None = None
    bytes: int | None = None
    load_id: int | None = None
    winner: str | None = None
    carried_from: tuple[int, ...] = ()
    supersedes: tuple[str, ...] = ()
    completed_at: datetime | None = None
    rewind: int | None = None
    token: str | None = None
    gap: bool = False
    from_ledger: bool = False
    killed: bool = False

    @property
    def is_owed_again(self) -> bool:
        """It was tried before, and its rows are to be loaded once more, maybe when the source has some there again."""
        tried = self.attempts > 0 or self.load_id is not None or bool(self.carried_from)
        return tried and (self.status in ("pending", "running", "failed") or self.is_rewound)

    @property
    def has_published(self) -> bool:
        """As far as the ledger knows, too: what it has lost is forgotten, but for the number of the load."""
        return self.status == "done" or self.rows is not None or bool(self.covered)

    @property
    def is_rewound(self) -> bool:
        return self.rewind is not None

    @property
    def chunk(self) -> Chunk:
        return Chunk(self.key, self.bounds)


@dataclass(frozen=True, slots=True)
class DueSlice:
    """A slice to be loaded, as planned.

    `settles`: the source adds nothing more to it, so that it is covered wholly once it is published; else its mark is
    the highest cursor it held, but not more than `mark_at_most`, so that a row dated in the future hides none.
    `attempts` is the chunk's count when this was planned: a claim fails if somebody else has tried it since.
    `supersedes` are the keys of chunks whose rows this one's publish replaces.
    """

    slice: Slice
    attempts: int = 0
    settles: bool = True
    mark_at_most: int | None = None
    seen: str | None = None
    supersedes: tuple[str, ...] = ()

    @property
    def key(self) -> str:
        return self.slice.chunk.key


@dataclass(frozen=True, slots=True)
class Due:
    """What a table owes its source.

    `busy` slices belong to chunks that an attempt holds: a claim tells whether it still lives. `states` differ from
    what is stored and are written before anything is claimed. `overtaken` are chunks that left the plan while an
    attempt held them: their fences are to be bumped, so that it cannot publish into its successors. `waiting` are left
    out for as long as a transaction at the source may add rows to them.
    """

    slices: tuple[DueSlice, ...] = ()
    busy: tuple[DueSlice, ...] = ()
    done: tuple[Chunk, ...] = ()
    states: tuple[ChunkState, ...] = ()
    carried_over: tuple[str, ...] = ()
    overtaken: tuple[str, ...] = ()
    waiting: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()


def to_be_stored(states: Iterable[ChunkState], stored: Mapping[str, ChunkState]) -> tuple[ChunkState, ...]:
    """Those that differ from what the audit DB says. A chunk that an attempt holds is the attempt's to write."""
    return tuple(
        replace(state, from_ledger=False) if state.from_ledger else state
        for state in states
        if (state.from_ledger or state != stored.get(state.key)) and state.status != "running"
    )


def committed_cursor(due: DueSlice, cursor_max: int | None) -> int | None:
    """The `cursor_committed` of a load's ledger row, from the highest cursor among its rows."""
    match due.slice.bounds:
        case CursorRange(Interval(lower, upper)):
            if due.settles:
                return upper
            if cursor_max is None:
                return lower
            mark = cursor_max if due.mark_at_most is None else min(cursor_max, due.mark_at_most)
            return mark if lower is None else max(lower, mark)
        case _:
            return None


def published(
    state: ChunkState,
    *,
    bounds: Bounds,
    cursor_committed: int | None,
    seen: str | None,
    rows: int,
    load_id: int,
    token: str | None = None,
) -> ChunkState:
    """The state after a slice with these bounds was published. A ledger row tells all of it but `seen`."""
    covered = state.covered
    committed = state.cursor_committed
    if isinstance(bounds, CursorRange) and cursor_committed is not None:
        covered = union((*covered, Interval(bounds.interval.lower, cursor_committed)))
        if committed is None or _reads_past(bounds.interval, committed):
            committed = cursor_committed
        else:
            committed = max(committed, cursor_committed)
    return replace(
        state, status="done", covered=covered, cursor_committed=committed, seen=seen, rows=rows, load_id=load_id,
        carried_from=(), rewind=None, gap=False, token=token,
    )  # fmt: skip


def _reads_past(interval: Interval, mark: int) -> bool:
    """What lies at the mark and after it was read anew, so that an earlier mark of it says no more."""
    return (interval.lower is None or interval.lower <= mark) and (interval.upper is None or mark < interval.upper)
