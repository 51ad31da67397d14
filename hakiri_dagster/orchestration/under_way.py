"""Which tables have a run that is queued or at work, whoever asked for it. Ticks start nothing more of these, so that
they never pile up: neither behind a run that takes long, nor after hours in which the daemon was down."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Mapping
from typing import Final

import dagster as dg

from hakiri_dagster.manifest.tables import Table
from hakiri_dagster.orchestration.killed_runs import OtherHosts, end_killed_runs
from hakiri_dagster.orchestration.names import PIPELINE_TAG, TABLE_TAG, VERIFY_TAG, asset_key

_UNFINISHED: Final = (
    dg.DagsterRunStatus.NOT_STARTED,
    dg.DagsterRunStatus.QUEUED,
    dg.DagsterRunStatus.STARTING,
    dg.DagsterRunStatus.STARTED,
    dg.DagsterRunStatus.CANCELING,
)
_SECONDS_TO_START: Final = 600
"""A run that nobody has even put into the queue by then never will be: who created it was killed."""


def runs_under_way(
    instance: dg.DagsterInstance, tables: Iterable[Table], others: OtherHosts | None = None
) -> Mapping[str, str]:
    """By table label, the id of one such run. Ends runs of killed processes first: they would be there for ever."""
    end_killed_runs(instance, others)
    records = instance.get_run_records(dg.RunsFilter(statuses=_UNFINISHED))
    runs = [record.dagster_run for record in records if _may_still_run(record)]
    found: dict[str, str] = {}
    for table in tables if runs else ():
        for run in runs:
            if _loads(run, table):
                found[table.label] = run.run_id
    return found


def verifications_under_way(instance: dg.DagsterInstance, tables: Iterable[Table]) -> Mapping[str, str]:
    """By table label, the id of a run that compares it with its source, and loads nothing."""
    records = instance.get_run_records(dg.RunsFilter(statuses=_UNFINISHED, tags={VERIFY_TAG: "true"}))
    runs = {record.dagster_run.tags.get(TABLE_TAG): record.dagster_run for record in records if _may_still_run(record)}
    return {table.label: runs[table.label].run_id for table in tables if table.label in runs}


def reasons(tables: Iterable[Table], under_way: Mapping[str, str]) -> Iterator[str]:
    for table in tables:
        if table.label in under_way:
            yield f"{table.name}: run {under_way[table.label][:8]} of it is queued or at work"


def _may_still_run(record: dg.RunRecord) -> bool:
    if record.dagster_run.status != dg.DagsterRunStatus.NOT_STARTED:
        return True
    return time.time() - record.create_timestamp.timestamp() < _SECONDS_TO_START


def _loads(run: dg.DagsterRun, table: Table) -> bool:
    """A run without a selection is of all tables of its job, which its tag names."""
    if run.asset_selection is not None:
        return asset_key(table) in run.asset_selection
    return run.tags.get(TABLE_TAG) == table.label or run.tags.get(PIPELINE_TAG) == table.pipeline_id
