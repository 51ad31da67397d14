"""Compares a table's target with its source, chunk by chunk, and marks the chunks that drifted to be loaded again.

All chunks are counted first, in a few queries on each side. Only those that differ are compared once more: by keys
where the rows have one, by row hashes where values are compared, else by counts. The target is read before the source
then, so a row that is published meanwhile is not taken for lost.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, as_completed
from contextlib import ExitStack
from dataclasses import dataclass, replace
from typing import Final

from hakiri_dagster.audit.alerts import Alert, Severity
from hakiri_dagster.audit.rewinds import RewindAnswer
from hakiri_dagster.connectors.contract import Comparable
from hakiri_dagster.destinations.contract import ComparedTarget, Destination
from hakiri_dagster.errors import UsageError
from hakiri_dagster.manifest.load_spec import ADDING_MODES
from hakiri_dagster.manifest.tables import Table
from hakiri_dagster.pipeline.rewinding import rewind_chunks
from hakiri_dagster.pipeline.runtime import Runtime
from hakiri_dagster.pipeline.shapes import lag_of, parallelism_of
from hakiri_dagster.pipeline.survey import Survey
from hakiri_dagster.pipeline.word_of_loads import word_of_loads
from hakiri_dagster.planning.chunks import FIRST_POSITION, LAST_POSITION, NULL_KEY, OUTSIDE_KEY, Interval, WholeTable
from hakiri_dagster.planning.parts import bare_key
from hakiri_dagster.planning.progress import newest_mark
from hakiri_dagster.planning.repair import after_ledger
from hakiri_dagster.planning.replays import ReadAgain, read_again
from hakiri_dagster.planning.states import ChunkState
from hakiri_dagster.planning.stretch import parse_stretch
from hakiri_dagster.planning.verification import (
    ChunkDifference,
    ChunkTally,
    ComparableChunk,
    comparable_chunks,
    count_quarantined,
    newest_windows,
    within_stretch,
)
from hakiri_dagster.quality.table_comparison import ComparedTable, compare_hashes

_BATCHES: Final = 16
_MOST_HASHES: Final = 100_000
"""Beyond so many rows of one chunk that only one side has, the others are not searched for elsewhere."""
_KEYS_A_QUERY: Final = 5_000


@dataclass(frozen=True, slots=True)
class VerifyOptions:
    """`stretch`: the chunks that overlap it, as written on the command line. `windows`: only the newest so many."""

    stretch: tuple[str | None, str | None] | None = None
    windows: int | None = None
    digest: bool = False
    chunks_per_second: float | None = None


@dataclass(frozen=True, slots=True)
class Verification:
    """What was found out about one table. `unpublished` chunks of the plan have no rows to compare yet; `being_loaded`
    were claimed, or became due, while they were compared."""

    survey: Survey
    chunks: tuple[ChunkDifference, ...]
    unpublished: int
    being_loaded: tuple[str, ...] = ()
    by: str = "counts"

    @property
    def table(self) -> Table:
        return self.survey.table

    @property
    def drifted(self) -> tuple[ChunkDifference, ...]:
        return tuple(chunk for chunk in self.chunks if chunk.is_drift)

    def to_repair(self, *, with_deletes: bool) -> tuple[str, ...]:
        also_deletes = with_deletes and removes_deleted_rows(self.table)
        return tuple(c.key for c in self.chunks if c.is_drift or (also_deletes and c.deleted_at_source))


Progress = Callable[[Table, int, int], None]
"""Called with how many of how many chunks are counted, each once on either side."""


def silent(_table: Table, _done: int, _total: int) -> None: ...


def removes_deleted_rows(table: Table) -> bool:
    """Whether loading a chunk again takes rows out of the target that the source has deleted."""
    return table.whole_table or table.mode in ADDING_MODES


def objection(runtime: Runtime, table: Table) -> UsageError | None:
    """Return why a table cannot be compared with its source, if so. Does no I/O."""
    if table.streams:
        return UsageError(
            "its rows come as a stream of changes, and not in chunks",
            where=table.label,
            hint="name another table with --table",
        )
    if isinstance(runtime.source(table), Comparable):
        return None
    return UsageError(
        f"a `{table.source.known_as}` source cannot count its rows without sending all of them",
        where=table.label,
        hint="the validator `row_count_matches_source` counts what each load has read; "
        f"`hakiri run {table.pipeline_id} --table {table.name}` loads it again",
    )


def verify(runtime: Runtime, table: Table, options: VerifyOptions, progress: Progress = silent) -> Verification:
    survey = runtime.survey(table)
    planned = comparable_chunks(survey.chunks, survey.states, survey.due_keys, _complete_to(survey, survey.states))
    unpublished = len({chunk.key for chunk in survey.chunks} - {chunk.key for chunk in planned})
    chosen = _chosen(survey, planned, options)
    if options.stretch is not None and not chosen:
        raise UsageError(
            "no published chunk lies in that stretch",
            where=table.label,
            hint=f"`hakiri backfill plan {table.pipeline_id} --table {table.name}` lists the chunks",
        )
    sides = _Sides.of(survey, runtime.destination(table), with_values=options.digest) if chosen else None
    if sides is None:
        return Verification(survey, (), unpublished)
    tallies = _count(sides, survey, chosen, options.chunks_per_second, progress)
    quarantined = _quarantined(survey, sides.destination, chosen)
    alike = {chunk.key: _by_counts(chunk, *tallies[chunk.key], quarantined) for chunk in chosen}
    differing = [chunk for chunk in chosen if _differs(*tallies[chunk.key], quarantined.get(chunk.key, 0))]
    pace = _Pace(options.chunks_per_second)
    confirmed, being_loaded = _compare_again(runtime, survey, sides, differing, pace) if differing else ({}, ())
    return Verification(
        survey=survey,
        chunks=tuple({**alike, **confirmed}[c.key] for c in chosen if c.key not in being_loaded),
        unpublished=unpublished,
        being_loaded=being_loaded,
        by="values" if options.digest else "keys" if sides.target.columns.key else "counts",
    )


def _complete_to(survey: Survey, states: Sequence[ChunkState]) -> int | None:
    """Where the declared lag begins: what came late there is no drift before the next load has read it."""
    lag = lag_of(survey.table)
    if not lag or survey.discovery.files:
        return None
    mark = newest_mark(states) if survey.mark is None else survey.mark.position
    return None if mark is None else mark - lag


def mark_for_repair(runtime: Runtime, found: Verification, *, with_deletes: bool, asked_by: str) -> RewindAnswer | None:
    """Make the chunks that drifted pending, with the reason; None where none did. Nothing is loaded here."""
    keys = found.to_repair(with_deletes=with_deletes)
    if not keys:
        return None
    reason = f"verify: {summary(c for c in found.chunks if c.key in keys)}"
    return rewind_chunks(runtime, found.survey, keys, reason=reason, asked_by=asked_by)


def drift_alert(found: Verification, repair: RewindAnswer | None, *, severity: Severity) -> Alert:
    """One open alert a table, whatever number of chunks drifted."""
    keys = [chunk.key for chunk in found.drifted]
    what_next = "they are pending, and the next load replaces their rows"
    if repair is None:
        what_next = (
            f"`hakiri verify {found.table.pipeline_id} --table {found.table.name} --repair` has them loaded again"
        )
    return Alert(
        "drift",
        f"{len(keys)} chunk(s) differ from the source ({summary(found.drifted)}); {what_next}",
        severity,
        details={"chunks": keys, "compared_by": found.by},
    )


def summary(chunks: Iterable[ChunkDifference]) -> str:
    """Sum up differences in one line."""
    found = list(chunks)
    numbers = {
        "missing in the target": sum(chunk.missing for chunk in found),
        "extra in the target": sum(chunk.extra for chunk in found),
        "changed": sum(chunk.changed for chunk in found),
        "deleted at the source": sum(chunk.deleted_at_source for chunk in found),
        "moved to another cursor": sum(chunk.moved for chunk in found),
        "not loaded yet": sum(chunk.not_loaded for chunk in found),
    }
    return ", ".join(f"{rows:,} row(s) {what}" for what, rows in numbers.items() if rows) or "no difference"


@dataclass(frozen=True, slots=True)
class _Sides:
    """`one_row_a_key`: the source has no two rows of one key, so that an older row of the target's is a stale one."""

    source: ComparedTable
    target: ComparedTarget
    destination: Destination
    one_row_a_key: bool

    @classmethod
    def of(cls, survey: Survey, destination: Destination, *, with_values: bool) -> _Sides | None:
        table, schema = survey.table, survey.schema
        if not isinstance(survey.source, Comparable):
            raise AssertionError(f"{table.label} was not to be compared")
        names = [column.name for column in schema.columns]
        key = table.primary_key or schema.primary_key
        target = destination.comparison(table, names, key, with_values=with_values)
        if target is None:
            return None
        declared = table.load.empty_as_null
        empty_as_null = survey.source.text_format if declared is None else declared
        source = survey.source.comparison(replace(target.columns, empty_as_null=empty_as_null))
        return cls(source, target, destination, survey.has_one_row_a_key)


def _chosen(survey: Survey, planned: Sequence[ComparableChunk], options: VerifyOptions) -> tuple[ComparableChunk, ...]:
    chosen = tuple(planned)
    if options.stretch is not None:
        chosen = within_stretch(chosen, _stretch(survey, *options.stretch))
    return chosen if options.windows is None else newest_windows(chosen, options.windows)


def _stretch(survey: Survey, lower: str | None, upper: str | None) -> Interval:
    """A side that is not given is open."""
    kind, where = survey.discovery.cursor_kind, survey.table.label
    if kind is None:
        hint = "leave --from and --to out: the table is compared as a whole"
        raise UsageError("it has no cursor, so there is no stretch of it", where=where, hint=hint)
    first, last = ("0001-01-01", "9999-12-31") if kind != "numeric" else (str(FIRST_POSITION), str(LAST_POSITION))
    stretch = parse_stretch(lower or first, upper or last, kind, where)
    return Interval(None if lower is None else stretch.lower, None if upper is None else stretch.upper)


class _Pace:
    """At most so many chunks a second begin to be counted, on one side."""

    def __init__(self, chunks_per_second: float | None) -> None:
        self._rate = chunks_per_second
        self._next = time.monotonic()
        self._lock = threading.Lock()

    def wait(self, chunks: int) -> None:
        if self._rate is None:
            return
        with self._lock:
            begins = max(self._next, time.monotonic())
            self._next = begins + chunks / self._rate
        time.sleep(max(0.0, begins - time.monotonic()))


def _count(
    sides: _Sides,
    survey: Survey,
    chunks: Sequence[ComparableChunk],
    chunks_per_second: float | None,
    progress: Progress,
) -> Mapping[str, tuple[ChunkTally, ChunkTally]]:
    """Return what the source and the target have of each chunk."""
    table, parallelism = survey.table, parallelism_of(survey.table, survey.source.hint)
    size = max(1, -(-len(chunks) // _BATCHES))
    if chunks_per_second is not None:
        size = max(1, min(size, int(chunks_per_second)))
    found: tuple[dict[str, ChunkTally], dict[str, ChunkTally]] = ({}, {})
    with ExitStack() as pools:
        running: dict[Future[Mapping[str, ChunkTally]], dict[str, ChunkTally]] = {}
        for side, into in zip((sides.source, sides.target), found, strict=True):
            pool = pools.enter_context(ThreadPoolExecutor(min(parallelism, side.most_queries)))
            pools.callback(pool.shutdown, wait=True, cancel_futures=True)
            pace = _Pace(chunks_per_second)
            for batch in side.batches(chunks, size):
                running[pool.submit(_count_batch, side, batch, pace)] = into
        done = 0
        progress(table, 0, 2 * len(chunks))
        for future in as_completed(running):
            tallies = future.result()
            running[future].update(tallies)
            done += len(tallies)
            progress(table, done, 2 * len(chunks))
    return {chunk.key: (found[0][chunk.key], found[1][chunk.key]) for chunk in chunks}


def _count_batch(side: ComparedTable, batch: Sequence[ComparableChunk], pace: _Pace) -> Mapping[str, ChunkTally]:
    pace.wait(len(batch))
    return side.tally(batch)


def _quarantined(survey: Survey, destination: Destination, chunks: Sequence[ComparableChunk]) -> Mapping[str, int]:
    rows = list(destination.quarantined_rows(survey.table))
    if not rows:
        return {}
    live = destination.live_loads(survey.table, WholeTable())
    later: dict[int, ReadAgain] = {one.load_id: read_again(one.load_id, live) for one in rows}
    return count_quarantined(rows, chunks, survey.discovery.cursor_kind, later.__getitem__)


def _differs(source: ChunkTally, target: ChunkTally, quarantined: int) -> bool:
    return source.rows != target.rows + quarantined or source.digest != target.digest


def _by_counts(
    chunk: ComparableChunk, source: ChunkTally, target: ChunkTally, quarantined: Mapping[str, int]
) -> ChunkDifference:
    """Without keys and values a surplus of the target is what the source has deleted."""
    accounted = quarantined.get(chunk.key, 0)
    surplus = target.rows + accounted - source.rows
    return ChunkDifference(
        key=chunk.key,
        source_rows=source.rows,
        target_rows=target.rows,
        accounted=accounted,
        missing=max(0, -surplus),
        deleted_at_source=max(0, surplus),
    )


def _compare_again(
    runtime: Runtime, survey: Survey, sides: _Sides, differing: Sequence[ComparableChunk], pace: _Pace
) -> tuple[Mapping[str, ChunkDifference], tuple[str, ...]]:
    """As the loads stand now: a chunk that was claimed or rewound meanwhile is left to its load."""
    stored, _, ledger = word_of_loads(survey.table, sides.destination, runtime.audit)
    states = after_ledger(stored, ledger)
    running = {state.key for state in states if state.status == "running"}
    compared = comparable_chunks(survey.chunks, states, survey.due_keys, _complete_to(survey, states))
    now = {chunk.key: chunk for chunk in compared}
    left = tuple(chunk.key for chunk in differing if chunk.key in running or chunk.key not in now)
    chunks = [now[chunk.key] for chunk in differing if chunk.key not in left]
    quarantined = _quarantined(survey, sides.destination, chunks)
    published = {row.chunk_key: row.rows for row in ledger if not row.superseded}
    workers = min(parallelism_of(survey.table, survey.source.hint), sides.source.most_queries)
    with ThreadPoolExecutor(workers) as pool:
        found = {
            one.key: one for one in pool.map(lambda chunk: _compare_chunk(sides, chunk, quarantined, pace), chunks)
        }
    for chunk in chunks:
        if chunk.bounds == (WholeTable(),):
            found[chunk.key] = _since_the_load(survey.table, found[chunk.key], published.get(chunk.key))
    without_mark = [
        chunk.key
        for chunk in chunks
        if bare_key(chunk.key) in (NULL_KEY, OUTSIDE_KEY) and found[chunk.key].is_different
    ]
    if without_mark:  # rows that have come since are due now
        due = runtime.survey(survey.table).due_keys
        left = (*left, *(key for key in without_mark if key in due))
    return found, left


def _compare_chunk(
    sides: _Sides, chunk: ComparableChunk, quarantined: Mapping[str, int], pace: _Pace
) -> ChunkDifference:
    pace.wait(1)
    if not sides.target.columns.tells_rows_apart:
        target = sides.target.tally([chunk])[chunk.key]
        return _by_counts(chunk, sides.source.tally([chunk])[chunk.key], target, quarantined)
    merges = sides.target.columns.merges_by_key
    with sides.target.row_hashes(chunk) as theirs, sides.source.row_hashes(chunk) as ours:
        hashes = compare_hashes(ours, theirs, merges_by_key=merges, most_hashes=_MOST_HASHES)
    elsewhere = moved = 0
    if sides.target.columns.key:
        if merges:
            elsewhere = _count_elsewhere(chunk, hashes.missing_hashes, sides.source, sides.target)
        moved = _count_elsewhere(chunk, hashes.surplus_hashes, sides.target, sides.source)
    accounted = quarantined.get(chunk.key, 0)
    return ChunkDifference(
        key=chunk.key,
        source_rows=hashes.source_rows,
        target_rows=hashes.target_rows,
        accounted=accounted,
        missing=max(0, hashes.missing - elsewhere - accounted),
        extra=hashes.extra,
        changed=hashes.changed + (elsewhere if sides.one_row_a_key else 0),
        deleted_at_source=max(0, hashes.surplus - moved),
        moved=moved,
    )


def _count_elsewhere(chunk: ComparableChunk, hashes: Sequence[int], has: ComparedTable, lacks: ComparedTable) -> int:
    """Count the keys that one side has in the chunk, and the other side elsewhere."""
    found = 0
    for start in range(0, len(hashes), _KEYS_A_QUERY):
        keys = has.keys(chunk, hashes[start : start + _KEYS_A_QUERY])
        found += lacks.count_elsewhere(chunk, keys) if keys else 0
    return found


def _since_the_load(table: Table, found: ChunkDifference, published: int | None) -> ChunkDifference:
    """Nothing tells which rows came to the source since a table was loaded whole. But while the target has the rows
    that were published, none of them was lost."""
    if published is None or (found.target_rows != published if table.whole_table else found.target_rows < published):
        return found
    return replace(found, missing=0, not_loaded=found.missing)
