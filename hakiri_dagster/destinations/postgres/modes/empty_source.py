"""The guard of modes that replace all rows: a source that suddenly has none is rather broken than empty."""

from __future__ import annotations

from hakiri_dagster.destinations.postgres.modes.contract import Work
from hakiri_dagster.errors import EmptySource


def refuse_empty_source(work: Work, effect: str = "leave the target empty") -> None:
    """To be asked before the first statement that destroys something."""
    table = work.load.table
    if work.blocks.empty and table.load.fail_on_empty_source:
        raise EmptySource(
            f"the source returned 0 rows; load mode {table.mode} would {effect}, "
            "so nothing was changed. Set fail_on_empty_source = false to allow it.",
            where=table.label,
        )
