"""Runs that a run goes on with: what they published is left alone."""

from __future__ import annotations

from dataclasses import dataclass

import dagster as dg

_ROOT_RUN_TAG = "dagster/root_run_id"


@dataclass(frozen=True, slots=True)
class EarlierTries:
    """`repeats`: somebody executes a run again that went well. Its tags are those of that run, what is due or not."""

    run_ids: tuple[str, ...] = ()
    repeats: bool = False


def earlier_tries(instance: dg.DagsterInstance, run: dg.DagsterRun) -> EarlierTries:
    """All runs of the group, not only the parent: a fourth try spares what the second has published. But whoever
    executes a run again that went well wants its chunks to be loaded again: then those alone that came after it."""
    root = run.tags.get(_ROOT_RUN_TAG)
    if root is None:
        return EarlierTries()
    group = (dg.RunsFilter(run_ids=[root]), dg.RunsFilter(tags={_ROOT_RUN_TAG: root}))
    records = {record.dagster_run.run_id: record for one in group for record in instance.get_run_records(one)}
    finished = records.get(run.parent_run_id or root)
    while finished is not None and finished.dagster_run.status != dg.DagsterRunStatus.SUCCESS:
        finished = records.get(finished.dagster_run.parent_run_id or "")
    if finished is None:
        return EarlierTries(tuple(records))
    later = (run_id for run_id, one in records.items() if one.create_timestamp > finished.create_timestamp)
    return EarlierTries(tuple(later), repeats=True)
