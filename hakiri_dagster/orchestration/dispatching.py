"""What a tick does for one table: its plan is brought up to date, Dagster shows it, and runs are asked for."""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from uuid import uuid4

import dagster as dg

from hakiri_dagster.errors import HakiriError
from hakiri_dagster.manifest.tables import Table
from hakiri_dagster.orchestration.partitions import reconcile, require_known
from hakiri_dagster.orchestration.requests import of_a_sensor, tick_ranges
from hakiri_dagster.orchestration.resources import OpenProject
from hakiri_dagster.pipeline.survey import Survey
from hakiri_dagster.planning.dispatch import to_dispatch


@dataclass
class Dispatcher:
    """Of one tick. `requests` is what it asks for."""

    project: OpenProject
    instance: dg.DagsterInstance
    partitions: Mapping[str, dg.PartitionsDefinition]
    requests: list[dg.RunRequest] = field(default_factory=list)
    occasion: str = field(default_factory=lambda: str(uuid4()))

    def look(self, table: Table) -> Survey:
        survey = self.project.plan(table)
        definition = self.partitions[table.label]
        require_known(table, definition, survey)
        reconcile(self.instance, table, definition, survey)
        return survey

    def dispatch(self, survey: Survey) -> None:
        """As a tick of a schedule does it: what is due, also what has failed."""
        if not survey.due_keys:
            self.project.tell_of_a_miss(survey.table, survey)
        self.requests += self._requests(survey, self._taken(survey))

    def _requests(self, survey: Survey, taken: tuple[str, ...]) -> list[dg.RunRequest]:
        table = survey.table
        ranges = tick_ranges(table, self.partitions[table.label], survey, taken, self.instance)
        phase = survey.phase
        return [chunks.run_request(self.occasion, phase) for chunks in ranges]

    def _taken(self, survey: Survey, *, retry: bool = True, leave: Collection[str] = ()) -> tuple[str, ...]:
        table = survey.table
        held = self.project.held_by_the_living(table) if survey.due.busy else frozenset()
        return to_dispatch(
            survey.due_in_turn,
            at_most=table.backfill.max_chunks_per_tick,
            held={*held, *leave},
            failed=survey.failed_keys,
            retry=retry,
            in_order=table.in_order,
        )

    def miss(self, table: Table, error: HakiriError) -> None:
        self.project.tell_of_a_miss(table, error)


@dataclass
class TriggeredDispatcher(Dispatcher):
    """Of a tick that no clock but a change has brought about. What came to nothing is not started again until the next
    change: runs that fail, are refused or are canceled would else follow each other without end. `taken`: which chunks
    were started last, by table, from tick to tick."""

    taken: dict[str, str] = field(default_factory=dict)

    def start(self, survey: Survey, *, changed: bool, leave: Collection[str] = ()) -> str | None:
        """Answers why it starts nothing, if so. `leave`: chunks that are not to be loaded yet."""
        label = survey.table.label
        if survey.refusals:
            return f"{label}: {survey.refusals[0]}"
        keys = self._taken(survey, retry=changed, leave=leave)
        mark = hashlib.sha256(repr(keys).encode()).hexdigest()
        if not keys and not survey.owed_hooks:
            return f"{label}: nothing to start"
        if not changed and self.taken.get(label) == mark:
            return f"{label}: {len(keys)} chunk(s) were started before, and are still to be loaded"
        self.taken[label] = mark
        self.requests += [of_a_sensor(request) for request in self._requests(survey, keys)]
        return None
