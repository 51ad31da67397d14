"""Budgets are of a pipeline, whose workers share them. Asked of what is written, as in `table_checks`."""

from __future__ import annotations

from collections.abc import Iterator

from hakiri_dagster.errors import Problem
from hakiri_dagster.manifest.places import Entry
from hakiri_dagster.manifest.tables import READS_WITHOUT_REQUESTS

_OF_THE_PIPELINE = ("rate_budget", "destination_writes_per_sec")


def budget_problems(entry: Entry) -> Iterator[Problem]:
    tables = entry.value(("tables",))
    for index in range(len(tables) if isinstance(tables, list) else 0):
        for name in _OF_THE_PIPELINE:
            place = ("tables", index, "backfill", name)
            if entry.value(place) is not None:
                message = f"`{name}` is for a whole pipeline, whose tables share it"
                hint = "set it under the pipeline's `backfill`; a table that needs its own needs its own pipeline"
                yield entry.problem(place, message, hint, at_key=True)


def budget_warnings(entry: Entry) -> Iterator[Problem]:
    connector = entry.value(("source", "connector"))
    place = ("backfill", "rate_budget")
    if connector in READS_WITHOUT_REQUESTS and entry.value(place) is not None:
        message = f"`rate_budget` has no effect: the connector `{connector}` sends no requests that could be counted"
        yield entry.problem(place, message, "take it out", at_key=True)
