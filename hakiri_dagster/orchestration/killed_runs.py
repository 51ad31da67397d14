"""Runs whose process was killed. Dagster takes them for running for ever, and keeps their table's place for them."""

from __future__ import annotations

from itertools import takewhile
from typing import Final

import dagster as dg

from hakiri_dagster.engine.process_identity import ProcessIdentity, is_dead
from hakiri_dagster.manifest.tables import Table
from hakiri_dagster.orchestration.names import TABLE_TAG

PROCESS_TAG = "hakiri/process"
MOST_KILLED: Final = 5
"""So often is asked again for what killed runs were to load: a load may be what kills them."""

_UNDER_WAY = (
    dg.DagsterRunStatus.NOT_STARTED,
    dg.DagsterRunStatus.STARTING,
    dg.DagsterRunStatus.STARTED,
    dg.DagsterRunStatus.CANCELING,
)
_INTERRUPTED = "DagsterExecutionInterruptedError"
_TOLD = "The process of this run was killed. What it published stays; the rest is loaded by the next run."


def signature(run_id: str) -> dict[str, str]:
    """The tag of a run that this process executes. It names the run, because retries inherit the tags of others."""
    return {PROCESS_TAG: f"{run_id} {ProcessIdentity.current()}"}


def end_killed_runs(instance: dg.DagsterInstance) -> tuple[str, ...]:
    """Answers the ids of those it has ended. Of processes on other hosts nothing can be told from here."""
    under_way = instance.get_runs(dg.RunsFilter(statuses=_UNDER_WAY))
    return tuple(run.run_id for run in under_way if _is_killed(run) and _ended(instance, run.run_id))


def _is_killed(run: dg.DagsterRun) -> bool:
    run_id, _, process = run.tags.get(PROCESS_TAG, "").partition(" ")
    return run_id == run.run_id and is_dead(process) is True


def _ended(instance: dg.DagsterInstance, run_id: str) -> bool:
    run = instance.get_run_by_id(run_id)  # read anew: its process may have told how it ended, and gone
    if run is None or run.status not in _UNDER_WAY:
        return False
    if run.status == dg.DagsterRunStatus.CANCELING:
        instance.report_run_canceled(run, _TOLD)
    else:
        instance.report_run_failed(run, _TOLD)
    return True


def was_stopped(instance: dg.DagsterInstance, run: dg.DagsterRun) -> bool:
    """It has not failed by itself: its process was killed or told to end, as by `hakiri serve` that ends, or it never
    began. What somebody cancels in the UI is none of these."""
    if run.status != dg.DagsterRunStatus.FAILURE:
        return False
    failed_steps = instance.all_logs(run.run_id, of_type=dg.DagsterEventType.STEP_FAILURE)
    return all(_was_interrupted(entry) for entry in failed_steps)


def stopped_in_a_row(instance: dg.DagsterInstance, table: Table) -> int:
    """How many of a table's last runs were stopped, and have loaded nothing to their end: up to `MOST_KILLED`."""
    newest = instance.get_runs(dg.RunsFilter(tags={TABLE_TAG: table.label}), limit=MOST_KILLED)
    return sum(1 for _ in takewhile(lambda run: was_stopped(instance, run), newest))


def _was_interrupted(entry: dg.EventLogEntry) -> bool:
    error = None if entry.dagster_event is None else entry.dagster_event.step_failure_data.error
    return error is not None and error.cls_name == _INTERRUPTED
