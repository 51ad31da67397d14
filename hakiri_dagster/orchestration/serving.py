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
from hakiri_dagster.manifest.tables import Pipeline
from hakiri_dagster.orchestration.asked import asked_for
from hakiri_dagster.orchestration.dispatching import Dispatcher
from hakiri_dagster.orchestration.killed_runs import MOST_KILLED, was_stopped
from hakiri_dagster.orchestration.names import DELIVERIES_TAG, asset_key
from hakiri_dagster.orchestration.resources import OpenProject
from hakiri_dagster.pipeline.survey import Survey

FIRST_WAIT: Final = timedelta(seconds=30)
LONGEST_WAIT: Final = timedelta(minutes=15)
"""Between looks at a source that does not answer, and after a run was killed."""
LONGEST_TICK: Final = timedelta(minutes=1)
"""Dagster ends a tick that takes longer, and what it has asked for is lost."""

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
class Batches:
    deliveries: DeliveryStore
    project: OpenProject
    partitions: Mapping[str, dg.PartitionsDefinition]
    instance: dg.DagsterInstance
    log: Callable[[str], None]

    def serve(self, pipeline: Pipeline, work: OpenWork) -> Served:
        """Of a look that does not come back nobody can tell any more, whatever it meets. So it is put off before it
        begins: beyond the end of its tick, lest the next one meets the same, and longer each time."""
        batch = work.batch or self._begun(pipeline)
        if batch is None:
            return Served("taken by another")
        self.deliveries.begin_look(batch, LONGEST_TICK + _wait(work.tries + 1), work.tries + 1)
        runs = self.instance.get_runs(dg.RunsFilter(tags={DELIVERIES_TAG: batch}))
        if runs:
            self.deliveries.note_runs(batch, sorted(run.run_id for run in runs))
        under_way = sum(run.status not in _OVER for run in runs)
        if under_way:
            self.deliveries.end_look(batch, work.tries)
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
        occasion = f"{batch}/{len(ended.runs)}"
        dispatcher = Dispatcher(
            self.project,
            self.instance,
            self.partitions,
            occasion=occasion,
            within=occasion,
            tags={DELIVERIES_TAG: batch},
        )
        held = 0
        failures: list[HakiriError] = []
        for table in pipeline.tables:
            try:
                survey = dispatcher.look(table)
                failures += survey.discovery.away.values()
                held += self._ask(dispatcher, survey, ended)
            except HakiriError as error:  # the other tables need not wait for it
                self.log(str(error))
                failures.append(error)
                dispatcher.miss(table, error)
        passing = [error for error in failures if error.kind == "transient"]
        if dispatcher.requests:
            self.deliveries.end_look(batch, len(ended.killed))
            return Served(f"{len(dispatcher.requests)} run(s) asked for", dispatcher.requests)
        if passing:
            return self._put_off(work, work.tries + 1, passing[0].what)
        if held:
            return self._put_off(work, work.tries + 1, f"{held} chunk(s) are held by somebody else")
        return self._closed(batch, ended, failures)

    def _put_off(self, work: OpenWork, tries: int, why: str) -> Served:
        wait = _wait(tries)
        self.deliveries.put_off(work, wait, tries)
        return Served(f"looked at again in {wait.total_seconds():.0f} s: {why}")

    def _closed(self, batch: str, ended: _Ended, failures: Sequence[HakiriError]) -> Served:
        errors = [str(error) for error in failures]
        if ended.lost:
            errors.append(f"{len(ended.lost)} of {len(ended.runs)} run(s) did not succeed")
        self.deliveries.close(batch, "failed" if errors else "done", "; ".join(errors) or None)
        return Served(errors[0] if errors else "served" if ended.runs else "nothing was due")

    def _ask(self, dispatcher: Dispatcher, survey: Survey, ended: _Ended) -> int:
        """Each chunk once a batch, so what fails or is due at any time does not keep it open. Answers how many wait for
        somebody who holds them: he may have read before the deliveries came."""
        table = survey.table
        own = [run for run in ended.counted if asset_key(table) in (run.asset_selection or ())]
        if not survey.due_keys:
            if not own:
                self.project.tell_of_a_look(table, survey)
                dispatcher.requests += dispatcher.requests_for(survey, ())
            return 0
        asked = asked_for(own, survey.due_keys, self.partitions[table.label], self.instance)
        dispatcher.requests += dispatcher.requests_for(survey, dispatcher.chosen(survey, asked=asked))
        return len(dispatcher.held(survey) - asked)


def _wait(tries: int) -> timedelta:
    doubled: int = 1 << min(tries - 1, 10)
    return min(LONGEST_WAIT, FIRST_WAIT * doubled)
