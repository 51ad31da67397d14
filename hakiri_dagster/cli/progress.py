"""Progress bars on stderr, on a terminal only."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

from hakiri_dagster.cli.tally import Tally
from hakiri_dagster.manifest.tables import Table
from hakiri_dagster.pipeline.survey import Survey


@contextmanager
def progress_bars(work: Sequence[tuple[Table, Survey]], tally: Tally) -> Iterator[None]:
    if not sys.stderr.isatty():
        yield
        return
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("{task.fields[rows]:,} rows"),
        TimeElapsedColumn(),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=Console(stderr=True), transient=True) as bars:
        tasks = {t.label: bars.add_task(t.label, total=len(survey.due_keys) or None, rows=0) for t, survey in work}

        def show(table: Table) -> None:
            counts = tally.of(table)
            bars.update(tasks[table.label], completed=counts.done + counts.failed + counts.skipped, rows=counts.rows)

        tally.on_change = show
        try:
            yield
        finally:
            tally.on_change = lambda _table: None
