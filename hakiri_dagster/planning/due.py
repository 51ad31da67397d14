"""Which slices a table with a cursor owes its source: the plan, less what is published.

Coverage is a set of intervals over all plans the table ever had. So a new window, an earlier start, a rewound stretch
and a window that closed are one case: what the coverage leaves out of a chunk is owed.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from math import inf

from hakiri_dagster.planning.carry_over import load_ids
from hakiri_dagster.planning.chunks import (
    FIRST_POSITION,
    NULL_KEY,
    OUTSIDE_KEY,
    Bounds,
    Chunk,
    CursorKind,
    CursorRange,
    Extent,
    Interval,
    NullCursor,
    Slice,
)
from hakiri_dagster.planning.horizon import Horizon
from hakiri_dagster.planning.intervals import Intervals, high, hull, low, missing, overlap, union, within
from hakiri_dagster.planning.progress import Progress, behind, newest_mark
from hakiri_dagster.planning.rewind import uncovered
from hakiri_dagster.planning.source_files import Touched
from hakiri_dagster.planning.states import ChunkState, Due, DueSlice, to_be_stored
from hakiri_dagster.planning.windows import to_position

NOTHING_OUTSIDE = "empty"


_STRETCH = "|"
"""Between what a source says of its end, and the fingerprint of the stretch that is read again."""


@dataclass(frozen=True, slots=True)
class _Source:
    """What the source says of itself. `now` is None for a cursor that is no time. `frontier`: before it nothing more is
    added; None: nothing is known.

    `safe` is the position below which no open transaction can add rows. `end` is what it says of its newest rows, and
    `fingerprints` of stretches that were, or will be, read again; `said` is both, as a load notes it.
    """

    now: int | None
    said: str | None
    frontier: int | None
    mark_at_most: int | None
    upper: int | None
    immutable: bool
    safe: float
    end: str | None
    fingerprints: Mapping[str, str]
    word_of_later: str

    def says_as_in(self, seen: str | None) -> bool:
        """Tell whether the source holds what it held when a load noted `seen`, late rows included."""
        if seen is None or self.end is None:
            return False
        end, _, stretch = seen.partition(_STRETCH)
        lower, _, fingerprint = stretch.partition(":")
        return end == self.end and (not stretch or self.fingerprints.get(lower) == fingerprint)


@dataclass(frozen=True, slots=True)
class _Verdict:
    """What a chunk owes: nothing when `owed` is None."""

    chunk: Chunk
    state: ChunkState
    owed: DueSlice | None


def due_slices(
    desired: Sequence[Chunk],
    states: Iterable[ChunkState],
    extent: Extent,
    *,
    kind: CursorKind,
    now: datetime,
    touched: Touched | None = None,
    progress: Progress | None = None,
    horizon: Horizon | None = None,
    lag: int = 0,
) -> Due:
    """`touched` is given for files: there nothing is new but files that changed. `progress` is that of loads in order.

    `horizon` tells up to where the cursor is complete, if the source can tell; else the highest value counts. What lies
    `lag` before the mark is read again with each load.
    """
    stored = {state.key: state for state in states}
    known = stored if touched is None else {s.key: s for s in _less_touched(stored.values(), touched)}
    lag = lag if progress is None else progress.lag
    went_back_to = None if horizon is None or kind == "numeric" else horizon.clock_went_back_to
    if went_back_to is not None:
        known = {s.key: s for s in uncovered(known.values(), (Interval(went_back_to, None),))}
        if progress is not None:
            progress = replace(progress, lag=max(lag, progress.mark - went_back_to))
    source = _source(extent, kind, now, horizon, lag, immutable=touched is not None)
    coverage = union((*behind(progress, known.values()), *(part for s in known.values() for part in s.covered)))
    marks = _open_marks(known.values(), source)
    chunks = (*desired, *_leftovers(desired, known, coverage, source))
    newest = max((state.generation for state in known.values()), default=1)
    verdicts = [_judge(chunk, _base(chunk, known, newest), coverage, marks, source, extent) for chunk in chunks]
    if lag and touched is None and (mark := _mark_of(progress, known.values(), source)) is not None:
        verdicts = [_with_late_rows(verdict, Progress(mark, lag), source) for verdict in verdicts]
    return _due(verdicts, stored, known, _warnings(verdicts, source, extent, touched, progress))


def _mark_of(progress: Progress | None, states: Iterable[ChunkState], source: _Source) -> int | None:
    """How far the loads have come: what the destination says of loads in order, else the highest mark of a window. What
    is dated in the future tells nothing of that."""
    mark = newest_mark(states) if progress is None else progress.mark
    return mark if mark is None or source.now is None else min(mark, source.now)


def _source(
    extent: Extent, kind: CursorKind, now: datetime, horizon: Horizon | None, lag: int, *, immutable: bool
) -> _Source:
    end: str | None = f"{extent.upper}/{extent.rows_at_upper}/{extent.upper_by_now}/{extent.rows_at_upper_by_now}"
    if extent.rows_recent is not None:
        end = f"{end}/{extent.rows_recent}"
    frontier, at_most = extent.upper, None
    if kind != "numeric":
        at_most = to_position(now)
        if extent.upper is not None and extent.upper > at_most:
            told = extent.upper_by_now is not None or extent.rows_at_upper_by_now == 0
            frontier = extent.upper_by_now if told else at_most
            end = end if told else None
    fingerprints = {str(lower): fingerprint for lower, fingerprint in extent.fingerprints}
    said, safe = end, inf
    if horizon is not None:
        safe = -inf if horizon.safe is None else horizon.safe
        limit = FIRST_POSITION if horizon.safe is None else horizon.safe
        at_most = limit if at_most is None else min(at_most, limit)
        reread = horizon.reread(extent.newest, lag)
        if reread is not None and end is not None:
            said = f"{end}{_STRETCH}{reread.lower}:{fingerprints.get(str(reread.lower), '')}"
    later = f"{extent.upper}/{extent.rows_at_upper}"
    return _Source(
        now=None if kind == "numeric" else to_position(now),
        said=said,
        frontier=frontier,
        mark_at_most=at_most,
        upper=extent.upper,
        immutable=immutable,
        safe=safe,
        end=end,
        fingerprints=fingerprints,
        word_of_later=later if extent.beyond_now is None else f"{later}/{extent.beyond_now}",
    )


def _open_marks(states: Iterable[ChunkState], source: _Source) -> dict[int, float]:
    """Marks at which a published load found what the source still says it holds, and how far that load read."""
    marks: dict[int, float] = {}
    for state in states:
        mark = state.cursor_committed
        if mark is None or not source.says_as_in(state.seen):
            continue
        if isinstance(state.bounds, CursorRange) and mark < high(state.bounds.interval):
            marks[mark] = max(high(state.bounds.interval), marks.get(mark, mark))
    return marks


def _leftovers(
    desired: Sequence[Chunk], known: Mapping[str, ChunkState], coverage: Intervals, source: _Source
) -> Iterator[Chunk]:
    """Chunks whose rows the source no longer has, and the target still has: owed once more, to be emptied."""
    keys = {chunk.key for chunk in desired}
    windows = union(c.bounds.interval for c in desired if isinstance(c.bounds, CursorRange) and c.key != OUTSIDE_KEY)
    accounted_for = union((*coverage, *windows)) if source.immutable else ()
    for state in known.values():
        published = state.load_id is not None or bool(state.carried_from)
        if state.key in keys or not published:
            continue
        match state.bounds:
            case NullCursor() if state.seen != "0":
                yield state.chunk
            case CursorRange(Interval(lower, None)) if state.seen != NOTHING_OUTSIDE and (windows or source.immutable):
                yield Chunk(state.key, CursorRange(Interval(windows[-1].upper if windows else lower, None)))
            case CursorRange(interval) if source.immutable and missing(interval, accounted_for):
                yield state.chunk
            case _:
                continue


def _base(chunk: Chunk, known: Mapping[str, ChunkState], newest: int) -> ChunkState:
    """A chunk that an attempt holds is left as it is: its row belongs to the attempt."""
    state = known.get(chunk.key, ChunkState(chunk.key, chunk.bounds, generation=newest))
    if state.status == "running" or state.bounds == chunk.bounds:
        return state
    return replace(state, bounds=chunk.bounds)


def _judge(
    chunk: Chunk,
    base: ChunkState,
    coverage: Intervals,
    marks: Mapping[int, float],
    source: _Source,
    extent: Extent,
) -> _Verdict:
    match chunk.bounds:
        case NullCursor():
            return _judge_by_word(chunk, base, extent.said_of_nulls, None)
        case CursorRange(interval) if interval.upper is None:
            lies_outside = extent.upper is not None and extent.upper >= low(interval)
            word = source.word_of_later if lies_outside else NOTHING_OUTSIDE
            return _judge_by_word(chunk, base, word, interval.lower)
        case CursorRange(interval):
            return _judge_window(chunk, interval, base, coverage, marks, source)
        case _:
            raise AssertionError(f"{chunk.key} is no part of a cursor's plan")


def _judge_by_word(chunk: Chunk, base: ChunkState, word: str, lower: int | None) -> _Verdict:
    """Chunks of rows that no window holds are loaded whole, when what the source says of them has changed.

    The mark stays at their lower end: windows that reach them later must not take their rows for published.
    """
    if base.status == "done" and base.seen == word:
        return _Verdict(chunk, base, None)
    return _owes(chunk, base, chunk.bounds, word, settles=False, mark_at_most=lower)


def _judge_window(
    chunk: Chunk,
    interval: Interval,
    base: ChunkState,
    coverage: Intervals,
    marks: Mapping[int, float],
    source: _Source,
) -> _Verdict:
    pieces = missing(interval, coverage)
    fresh = base.attempts == 0 and base.status != "failed"
    if not source.immutable:  # of files, those that changed say what is new, and not the highest cursor
        if pieces and (fresh or base.status == "done") and _holds_nothing_new(pieces[-1], interval, marks, source):
            pieces = pieces[:-1]
        if pieces and base.status == "done":
            pieces = _not_read_since(base, pieces, source)
    if not pieces and base.status != "running":
        return _Verdict(chunk, _settled(base, interval, coverage, source), None)
    owed = hull(pieces) if pieces else interval
    settles = source.immutable or _is_complete(owed, interval, source)
    return _owes(chunk, base, CursorRange(owed), source.said, settles=settles, mark_at_most=source.mark_at_most)


def _with_late_rows(verdict: _Verdict, progress: Progress, source: _Source) -> _Verdict:
    """A window within the lag is read again from there on, unless the source says what it said at its last load."""
    chunk, base = verdict.chunk, verdict.state
    if not isinstance(chunk.bounds, CursorRange) or chunk.bounds.interval.upper is None:
        return verdict
    interval = chunk.bounds.interval
    late = progress.late(interval)
    if not late or (verdict.owed is None and source.says_as_in(base.seen)):
        return verdict
    owed = verdict.owed.slice.bounds if verdict.owed is not None else chunk.bounds
    pieces = (*late, owed.interval) if verdict.owed is not None and isinstance(owed, CursorRange) else late
    whole = CursorRange(hull(union(pieces)))
    settles = _is_complete(whole.interval, interval, source)
    return _owes(chunk, base, whole, source.said, settles=settles, mark_at_most=source.mark_at_most)


def _holds_nothing_new(tail: Interval, interval: Interval, marks: Mapping[int, float], source: _Source) -> bool:
    """The end of an open window, from a mark on, of which the source says what it said when it was read last."""
    read_to = None if tail.lower is None else marks.get(tail.lower)
    if read_to is None or tail.upper != interval.upper or source.upper is None:
        return False
    return high(tail) <= read_to or source.upper < read_to


def _not_read_since(base: ChunkState, pieces: Intervals, source: _Source) -> Intervals:
    """Without those that the last load of the chunk, which is done, found empty, of which the source says what it said
    then. There are several where another plan has covered something between them."""
    mark = base.cursor_committed
    if mark is None or not source.says_as_in(base.seen):
        return pieces
    return tuple(piece for piece in pieces if low(piece) < mark)


def _is_complete(owed: Interval, interval: Interval, source: _Source) -> bool:
    """Nothing is added any more to what is owed: an earlier plan covers what follows it, or the source has gone on."""
    if high(owed) > source.safe:
        return False
    return high(owed) < high(interval) or (source.frontier is not None and source.frontier >= high(interval))


def _settled(base: ChunkState, interval: Interval, coverage: Intervals, source: _Source) -> ChunkState:
    """A chunk that owes nothing. If no load of its own says so, it takes over what other chunks have published."""
    if base.status == "done":
        return base
    covered = within(coverage, interval)
    gaps = missing(interval, covered)
    return replace(
        base,
        status="done",
        covered=covered,
        cursor_committed=gaps[-1].lower if gaps else interval.upper,
        seen=source.said,
        rewind=None,
        gap=False,
    )


def _owes(
    chunk: Chunk, base: ChunkState, bounds: Bounds, seen: str | None, *, settles: bool, mark_at_most: int | None
) -> _Verdict:
    owed = DueSlice(Slice(chunk, bounds), base.attempts, settles, mark_at_most, seen)
    stays = base.status in ("pending", "running", "failed")  # a copy of each of many chunks takes time
    return _Verdict(chunk, base if stays else replace(base, status="pending"), owed)


def _due(
    verdicts: Sequence[_Verdict],
    stored: Mapping[str, ChunkState],
    known: Mapping[str, ChunkState],
    warnings: tuple[str, ...],
) -> Due:
    planned = {v.chunk.key for v in verdicts}
    gone = [state for key, state in known.items() if key not in planned]
    carried = [v for v in verdicts if v.owed is None and not _done(known.get(v.chunk.key))]
    sources = load_ids([v.chunk for v in carried], known.values())
    changed = [
        *(replace(v.state, carried_from=sources[v.chunk.key]) if v.chunk.key in sources else v.state for v in verdicts),
        *(replace(s, status="retired") if s.status in ("pending", "failed") else s for s in gone),
    ]
    return Due(
        slices=tuple(v.owed for v in verdicts if v.owed is not None and v.state.status != "running"),
        busy=tuple(v.owed for v in verdicts if v.owed is not None and v.state.status == "running"),
        done=tuple(v.chunk for v in verdicts if v.owed is None),
        states=to_be_stored(changed, stored),
        carried_over=tuple(v.chunk.key for v in carried),
        overtaken=tuple(state.key for state in gone if state.status == "running"),
        warnings=warnings,
    )


def _done(state: ChunkState | None) -> bool:
    return state is not None and state.status == "done"


def _less_touched(states: Iterable[ChunkState], touched: Touched) -> Iterator[ChunkState]:
    for state in uncovered(states, touched.intervals):
        reached = (state.key == NULL_KEY and touched.nulls) or (
            state.key == OUTSIDE_KEY
            and isinstance(state.bounds, CursorRange)
            and any(overlap(state.bounds.interval, part) for part in touched.intervals)
        )
        yield replace(state, seen=None) if reached else state


def _warnings(
    verdicts: Sequence[_Verdict],
    source: _Source,
    extent: Extent,
    touched: Touched | None,
    progress: Progress | None,
) -> tuple[str, ...]:
    found = []
    if touched is None and source.said is None:
        found.append(
            "the source holds rows dated after now, which hide whether it holds newer ones before them:"
            " the open window is read again each time"
        )
    for file in touched.missing if touched is not None else ():
        owed = (v.owed.slice.bounds for v in verdicts if v.owed is not None)
        if any(_reaches(file.reach, bounds) for bounds in owed):
            found.append(f"{file.path} is gone: its rows vanish from the windows that are loaded again")
    if touched is not None and progress is not None and any(low(i) < progress.floor for i in touched.intervals):
        found.append("files that were added or changed hold rows below the watermark, which are not loaded")
    if extent.upper is not None and any(v.chunk.key == OUTSIDE_KEY for v in verdicts):
        found.append("rows dated after the open window are loaded in a chunk of their own, `outside`")
    return tuple(found)


def _reaches(reach: Iterable[Interval], bounds: Bounds) -> bool:
    return isinstance(bounds, CursorRange) and any(overlap(part, bounds.interval) for part in reach)
