"""Serving deliveries: those that wait for a pipeline are taken together, as a batch, and the batch is over when all
that was due has been asked for once and the runs have ended.

The batch stands in the audit DB before anything is asked for, and its runs carry it as a tag. So Dagster itself tells
what has been asked for: whoever is killed in between finds no run and asks, or finds runs and waits.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Final
from uuid import uuid4

import dagster as dg

from hakiri_dagster.audit.deliveries import DeliveryStore, OpenWork
from hakiri_dagster.errors import HakiriError
from hakiri_dagster.manifest.tables import Pipeline, Table
from hakiri_dagster.orchestration.killed_runs import was_stopped
from hakiri_dagster.orchestration.names import ALONG_TAG, DELIVERIES_TAG, asset_key
from hakiri_dagster.orchestration.partitions import ordered_keys, reconcile, require_known
from hakiri_dagster.orchestration.requests import RANGE_END_TAG, RANGE_START_TAG, tick_ranges
from hakiri_dagster.orchestration.resources import OpenProject
from hakiri_dagster.planning.chunks import NULL_KEY, OUTSIDE_KEY
from hakiri_dagster.planning.dispatch import to_dispatch

PARTITION_TAG: Final = "dagster/partition"
FIRST_WAIT: Final = timedelta(seconds=30)
LONGEST_WAIT: Final = timedelta(minutes=15)
"""Between looks at a source that does not answer, and after a run was killed."""

MOST_KILLED: Final = 5

_OVER = (dg.DagsterRunStatus.SUCCESS, dg.DagsterRunStatus.FAILURE, dg.DagsterRunStatus.CANCELED)


@dataclass(slots=True)
class Served:
    """What one look at a pipeline came to."""

    told: str
    requests: list[dg.RunRequest] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class _Ended:
    """The runs of a batch. Those that were killed have not failed by themselves, and what they were to load is asked
    for again: but not for ever, as a load may be what kills them."""

    runs: Sequence[dg.DagsterRun]
    killed: frozenset[str]

    @classmethod
    def of(cls, runs: Sequence[dg.DagsterRun], instance: dg.DagsterInstance) -> _Ended:
        return cls(runs, frozenset(run.run_id for run in runs if was_stopped(instance, run)))

    @property
    def is_hopeless(self) -> bool:
        return len(self.killed) >= MOST_KILLED

    @property
    def counted(self) -> list[dg.DagsterRun]:
        """Those whose chunks are not asked for again."""
        return [run for run in self.runs if self.is_hopeless or run.run_id not in self.killed]

    @property
    def lost(self) -> list[dg.DagsterRun]:
        return [run for run in self.counted if run.status != dg.DagsterRunStatus.SUCCESS]


@dataclass(frozen=True, slots=True)
class Server:
    deliveries: DeliveryStore
    project: OpenProject
    partitions: Mapping[str, dg.PartitionsDefinition]
    instance: dg.DagsterInstance
    log: Callable[[str], None]

    def serve(self, pipeline: Pipeline, work: OpenWork) -> Served:
        self.deliveries.looked_at(pipeline.id)
        batch = work.batch or self._begun(pipeline)
        if batch is None:
            return Served("taken by another")
        runs = self.instance.get_runs(dg.RunsFilter(tags={DELIVERIES_TAG: batch}))
        if runs:
            self.deliveries.note_runs(batch, sorted(run.run_id for run in runs))
        under_way = sum(run.status not in _OVER for run in runs)
        if under_way:
            return Served(f"{under_way} run(s) under way")
        ended = _Ended.of(runs, self.instance)
        if work.tries < len(ended.killed) and not ended.is_hopeless:
            return self._put_off(work, len(ended.killed), f"{len(ended.killed)} run(s) were stopped")
        return self._next(pipeline, work, batch, ended)

    def _begun(self, pipeline: Pipeline) -> str | None:
        batch = str(uuid4())
        count = self.deliveries.take(pipeline.id, batch)
        if not count:
            return None
        self.log(f"{pipeline.id}: {count} delivery(ies) taken as batch {batch}")
        return batch

    def _next(self, pipeline: Pipeline, work: OpenWork, batch: str, ended: _Ended) -> Served:
        requests: list[dg.RunRequest] = []
        failures: list[HakiriError] = []
        for table in pipeline.tables:
            try:
                requests += self._requests(table, batch, ended)
            except HakiriError as error:  # the other tables need not wait for it
                self.log(str(error))
                failures.append(error)
                self.project.tell_of_a_miss(table, error)
        passing = [error for error in failures if error.kind == "transient"]
        if requests:
            return Served(f"{len(requests)} run(s) asked for", requests)
        if passing:
            return self._put_off(work, work.tries + 1, passing[0].what)
        return self._closed(batch, ended, failures)

    def _put_off(self, work: OpenWork, tries: int, why: str) -> Served:
        wait = min(LONGEST_WAIT, FIRST_WAIT * 2 ** min(tries - 1, 10))
        self.deliveries.put_off(work, wait, tries)
        return Served(f"looked at again in {wait.total_seconds():.0f} s: {why}")

    def _closed(self, batch: str, ended: _Ended, failures: Sequence[HakiriError]) -> Served:
        errors = [str(error) for error in failures]
        if ended.lost:
            errors.append(f"{len(ended.lost)} of {len(ended.runs)} run(s) did not succeed")
        self.deliveries.close(batch, "failed" if errors else "done", "; ".join(errors) or None)
        return Served(errors[0] if errors else "served" if ended.runs else "nothing was due")

    def _requests(self, table: Table, batch: str, ended: _Ended) -> list[dg.RunRequest]:
        """Each chunk once a batch, so what fails or is due at any time does not keep it open."""
        definition = self.partitions[table.label]
        survey = self.project.plan(table)
        require_known(table, definition, survey)
        reconcile(self.instance, table, definition, survey)
        ordered = ordered_keys(self.instance, definition)
        own = [run for run in ended.counted if asset_key(table) in (run.asset_selection or ())]
        if not survey.due_keys:
            if own:
                return []
            self.project.tell_of_a_miss(table, survey)
        asked = asked_for(own, ordered)
        due = [key for key in survey.due_in_turn if key not in asked]
        taken = to_dispatch(due, at_most=table.backfill.max_chunks_per_tick)
        ranges = tick_ranges(table, definition, survey, taken, self.instance)
        occasion = f"{batch}/{len(ended.runs)}"
        tags = {DELIVERIES_TAG: batch}
        return [one.run_request(occasion, survey.phase, within=occasion, also=tags) for one in ranges]


def asked_for(runs: Sequence[dg.DagsterRun], ordered: Sequence[str]) -> set[str]:
    """The chunks that runs were asked for: their partitions, what they loaded along, and what has no partition and goes
    with the last one."""
    place = {key: index for index, key in enumerate(ordered)}
    asked: set[str] = set()
    for run in runs:
        first = run.tags.get(RANGE_START_TAG) or run.tags.get(PARTITION_TAG, "")
        last = run.tags.get(RANGE_END_TAG) or first
        asked |= {first, last, *filter(None, run.tags.get(ALONG_TAG, "").split(","))}
        if first in place and last in place:
            asked |= set(ordered[place[first] : place[last] + 1])
    if ordered and ordered[-1] in asked:
        asked |= {NULL_KEY, OUTSIDE_KEY}
    return asked
