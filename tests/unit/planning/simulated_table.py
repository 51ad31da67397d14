"""A table in memory: a source that grows, a target that replaces its own rows by interval, an audit DB that forgets.

Publishing is what a destination does in append mode: the slice's rows replace all rows in its bounds.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Literal

from hakiri_dagster.planning.chunk_plan import WindowSettings, plan_chunks
from hakiri_dagster.planning.chunks import Bounds, CursorKind, CursorRange, Extent, Interval, NullCursor
from hakiri_dagster.planning.due import due_slices
from hakiri_dagster.planning.generations import with_generation
from hakiri_dagster.planning.intervals import high, low
from hakiri_dagster.planning.repair import after_ledger, relied_on
from hakiri_dagster.planning.rewind import rewind
from hakiri_dagster.planning.source_files import FileVersion, touched_by, unsettled
from hakiri_dagster.planning.states import (
    ChunkState,
    Due,
    DueSlice,
    committed_cursor,
    published,
)
from hakiri_dagster.planning.windows import from_position, parse_window
from tests.unit.planning.ledger_rows import PublishedSlice, told

Crash = Literal["no", "before publish", "after publish"]


@dataclass(frozen=True)
class Row:
    """`origin` tells rows of equal cursors, and versions of a file, apart."""

    origin: str
    cursor: int | None


def in_bounds(row: Row, bounds: Bounds) -> bool:
    match bounds:
        case NullCursor():
            return row.cursor is None
        case CursorRange(interval):
            return row.cursor is not None and low(interval) <= row.cursor < high(interval)
        case _:
            raise AssertionError(bounds)


@dataclass(frozen=True)
class Dump:
    """What a destination held at a moment."""

    target: list[Row]
    ledger: list[PublishedSlice]
    loads: int


@dataclass
class SimulatedTable:
    kind: CursorKind
    now: int
    window: str | int
    start_from: int | None = None
    tells_upper_by_now: bool = True
    tells_ties: bool = True
    source: list[Row] = field(default_factory=list)
    target: list[Row] = field(default_factory=list)
    states: dict[str, ChunkState] = field(default_factory=dict)
    ledger: list[PublishedSlice] = field(default_factory=list)
    planned_as: str | None = None
    files: dict[str, list[Row]] | None = None
    versions: dict[str, str] = field(default_factory=dict)
    taken_in: dict[str, FileVersion] = field(default_factory=dict)
    loads: int = 0
    corrected: list[Row] = field(default_factory=list)
    """What the source held until somebody corrected it."""

    @property
    def moment(self) -> datetime:
        return datetime.fromtimestamp(0, UTC) if self.kind == "numeric" else from_position(self.now)

    def rows(self) -> list[Row]:
        return self.source if self.files is None else [row for rows in self.files.values() for row in rows]

    def extent(self) -> Extent:
        cursors = [row.cursor for row in self.rows() if row.cursor is not None]
        nulls = sum(row.cursor is None for row in self.rows())
        if not cursors:
            return Extent(None, None, nulls)
        by_now = [c for c in cursors if c <= self.now] if self.tells_upper_by_now else []
        upper = max(cursors)
        upper_by_now = max(by_now, default=None)
        return Extent(
            lower=min(cursors),
            upper=upper,
            nulls=nulls,
            rows_at_upper=cursors.count(upper) if self.tells_ties else None,
            upper_by_now=upper_by_now,
            rows_at_upper_by_now=by_now.count(upper_by_now) if self.tells_upper_by_now else None,
        )

    def file_versions(self) -> list[FileVersion]:
        assert self.files is not None
        found = []
        for path, rows in self.files.items():
            cursors = [row.cursor for row in rows if row.cursor is not None]
            content = self.versions[path]
            found.append(
                FileVersion(
                    path, content, content, min(cursors, default=None), max(cursors, default=None),
                    len(rows) - len(cursors), len(rows),
                )
            )  # fmt: skip
        return found

    def plan(self) -> Due:
        extent = self.extent()
        settings = WindowSettings(parse_window(self.window, self.kind), self.start_from)
        desired = plan_chunks(self.kind, extent, settings, self.moment)
        touched = None if self.files is None else touched_by(self.taken_in, self.file_versions())
        stored = tuple(self.states.values())
        states = after_ledger(stored, told(self.ledger, relied_on(stored)))
        due = due_slices(desired, states, extent, kind=self.kind, now=self.moment, touched=touched)
        return with_generation(due, desired, states, self.planned_as not in (None, str(self.window)))

    def apply(self, crashes: Iterable[Crash] = (), meanwhile: Callable[[], None] = lambda: None) -> Due:
        """Runs what is due, until a crash ends it. `meanwhile` happens between the plan and the reading."""
        due = self.plan()
        versions = self.file_versions() if self.files is not None else []
        self._remember(due.states)
        if due.busy:
            versions = list(unsettled(self.taken_in, versions))
        self.taken_in.update({file.path: file for file in versions})
        self.planned_as = str(self.window)
        meanwhile()
        fate = iter(crashes)
        for owed in (*due.busy, *due.slices):
            if self._load(owed, next(fate, "no")) != "no":
                break
        return due

    def _load(self, owed: DueSlice, crash: Crash) -> Crash:
        before = self.states[owed.key]
        assert before.attempts == owed.attempts
        claimed = replace(before, status="running", attempts=before.attempts + 1, attempt_seen=owed.seen)
        self.states[owed.key] = claimed
        if crash == "before publish":
            return crash
        bounds = owed.slice.bounds
        read = [row for row in self.rows() if in_bounds(row, bounds)]
        cursor_max = max((row.cursor for row in read if row.cursor is not None), default=None)
        self.target = [row for row in self.target if not in_bounds(row, bounds)] + read
        self.loads += 1
        committed = committed_cursor(owed, cursor_max)
        self.ledger.append(PublishedSlice(owed.key, bounds, len(read), committed, self.loads, claimed.attempts))
        if crash == "no":
            self.states[owed.key] = published(
                claimed, bounds=bounds, cursor_committed=committed, seen=owed.seen, rows=len(read),
                load_id=self.loads,
            )  # fmt: skip
        return crash

    def rewind(self, stretch: Interval) -> None:
        """What the ledger says is heard first."""
        extent = self.extent()
        settings = WindowSettings(parse_window(self.window, self.kind), self.start_from)
        planned = {chunk.key for chunk in plan_chunks(self.kind, extent, settings, self.moment)}
        self._remember(self.plan().states)
        self.planned_as = str(self.window)
        self._remember(rewind(tuple(self.states.values()), stretch, 1, planned))

    def dump(self) -> Dump:
        return Dump(list(self.target), list(self.ledger), self.loads)

    def restore(self, dump: Dump) -> None:
        """Load ids that were given out since are given out again."""
        self.target, self.ledger, self.loads = list(dump.target), list(dump.ledger), dump.loads

    def _remember(self, states: Iterable[ChunkState]) -> None:
        self.states.update({state.key: state for state in states})

    def converge(self, most: int = 4) -> None:
        for _ in range(most):
            due = self.apply()
            if not due.slices and not due.busy:
                return
        raise AssertionError("it never comes to rest")

    def assert_equal_to_source(self) -> None:
        """Rows before the start are left alone: they may be there, once, or not."""
        owed = Counter(row for row in self.rows() if self.is_owed(row))
        assert Counter(row for row in self.target if self.is_owed(row)) == owed
        assert max(Counter(self.target).values(), default=0) <= 1
        assert set(self.target) <= {*self.rows(), *self.corrected}

    def is_owed(self, row: Row) -> bool:
        return row.cursor is None or self.start_from is None or row.cursor >= self.start_from
