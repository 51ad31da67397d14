"""How far a load is, on stderr: bars on a terminal, elsewhere a line now and then."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Final, TextIO

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

from hakiri_dagster.cli.tally import TableTally, Tally
from hakiri_dagster.manifest.tables import Table
from hakiri_dagster.pipeline.survey import Survey

SECONDS_BETWEEN_LINES: Final = 15.0
"""Whatever takes less tells nothing before its end."""


@contextmanager
def progress_shown(work: Sequence[tuple[Table, Survey]], tally: Tally) -> Iterator[None]:
    due = {table.label: len(survey.due_keys) for table, survey in work}
    with _bars(due, tally) if sys.stderr.isatty() else _lines(due, tally) as show:
        tally.on_change = show
        try:
            yield
        finally:
            tally.on_change = lambda _table: None


@contextmanager
def _bars(due: Mapping[str, int], tally: Tally) -> Iterator[Callable[[Table], None]]:
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("{task.fields[rows]:,} rows"),
        TimeElapsedColumn(),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=Console(stderr=True), transient=True) as bars:
        tasks = {label: bars.add_task(label, total=count or None, rows=0) for label, count in due.items()}

        def show(table: Table) -> None:
            counts = tally.of(table)
            bars.update(tasks[table.label], completed=_tried(counts), rows=counts.rows)

        yield show


@contextmanager
def _lines(due: Mapping[str, int], tally: Tally) -> Iterator[Callable[[Table], None]]:
    yield ProgressLines(due, tally, sys.stderr)


@contextmanager
def counted_chunks_shown(labels: Sequence[str]) -> Iterator[Callable[[Table, int, int], None]]:
    """Show how many chunks of each table are counted, while both sides of a comparison are."""
    if not sys.stderr.isatty():
        last = dict.fromkeys(labels, time.monotonic())

        def write_line(table: Table, done: int, total: int) -> None:
            now = time.monotonic()
            if now - last[table.label] >= SECONDS_BETWEEN_LINES:
                last[table.label] = now
                print(f"{table.label}: {done // 2:,} of {total // 2:,} chunk(s) counted", file=sys.stderr, flush=True)

        yield write_line
        return
    columns = (TextColumn("{task.description}"), BarColumn(), TimeElapsedColumn(), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as bars:
        tasks = {label: bars.add_task(label, total=None) for label in labels}

        def update_bar(table: Table, done: int, total: int) -> None:
            bars.update(tasks[table.label], completed=done, total=total)

        yield update_bar


class ProgressLines:
    def __init__(
        self, due: Mapping[str, int], tally: Tally, to: TextIO, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._due, self._tally, self._to, self._clock = due, tally, to, clock
        self._last = dict.fromkeys(due, clock())

    def __call__(self, table: Table) -> None:
        now = self._clock()
        if now - self._last[table.label] < SECONDS_BETWEEN_LINES:
            return
        self._last[table.label] = now
        counts = self._tally.of(table)
        of = f" of {due:,}" if (due := self._due[table.label]) else ""
        print(f"{table.label}: {_tried(counts):,}{of} chunk(s), {counts.rows:,} row(s)", file=self._to, flush=True)


def _tried(counts: TableTally) -> int:
    return counts.done + counts.failed + counts.skipped
