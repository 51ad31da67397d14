"""Runs whose process was killed. Dagster takes them for running for ever, and keeps their table's place for them."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection
from dataclasses import dataclass
from datetime import timedelta
from itertools import takewhile
from typing import Final

import dagster as dg

from hakiri_dagster.engine.process_identity import ProcessIdentity, is_dead
from hakiri_dagster.manifest.tables import Table
from hakiri_dagster.orchestration.names import TABLE_TAG

PROCESS_TAG = "hakiri/process"
MOST_KILLED: Final = 5
"""So often is asked again for what killed runs were to load: a load may be what kills them."""

SHORTEST_SILENCE: Final = timedelta(minutes=30)
"""Twice the time of a lease, if that is more."""

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


@dataclass(frozen=True, slots=True)
class OtherHosts:
    """What tells whether a process lives that ran elsewhere. Who works holds a lease or a place, and renews it; but a
    run may begin, plan, or wait for a hook for long, and holds nothing then: so it must have been silent as well."""

    living_holders: Callable[[], Collection[str]]
    silence: timedelta

    @classmethod
    def by_leases(cls, living_holders: Callable[[], Collection[str]], ttl_seconds: float) -> OtherHosts:
        return cls(living_holders, max(SHORTEST_SILENCE, timedelta(seconds=2 * ttl_seconds)))


def end_killed_runs(instance: dg.DagsterInstance, others: OtherHosts | None = None) -> tuple[str, ...]:
    """Answers the ids of those it has ended. Without `others` nothing is told of processes of other hosts."""
    records = instance.get_run_records(dg.RunsFilter(statuses=_UNDER_WAY))
    of = {record.dagster_run.run_id: _process(record.dagster_run) for record in records}
    dead = {run_id: is_dead(process) for run_id, process in of.items() if process}
    killed = [run_id for run_id, is_killed in dead.items() if is_killed]
    if others is not None:
        unknown = [record for record in records if dead.get(record.dagster_run.run_id, False) is None]
        silent = [record.dagster_run.run_id for record in unknown if _is_silent(instance, record, others.silence)]
        living = others.living_holders() if silent else ()
        killed += [run_id for run_id in silent if of[run_id] not in living]
    return tuple(run_id for run_id in killed if _ended(instance, run_id))


def _process(run: dg.DagsterRun) -> str:
    """Empty where nobody has signed it, or only a run that it tries again."""
    run_id, _, process = run.tags.get(PROCESS_TAG, "").partition(" ")
    return process if run_id == run.run_id else ""


def _is_silent(instance: dg.DagsterInstance, record: dg.RunRecord, silence: timedelta) -> bool:
    """By the clocks of both hosts, so it is not a matter of seconds."""
    events = instance.get_records_for_run(record.dagster_run.run_id, limit=1, ascending=False).records
    heard = max([record.update_timestamp.timestamp(), *(event.timestamp for event in events)])
    return time.time() - heard > silence.total_seconds()


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
