"""What a tick does for one table: its plan is brought up to date, Dagster shows it, and runs are asked for."""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from uuid import uuid4

import dagster as dg

from hakiri_dagster.errors import HakiriError
from hakiri_dagster.manifest.tables import Table
from hakiri_dagster.orchestration.killed_runs import MOST_KILLED, stopped_in_a_row
from hakiri_dagster.orchestration.partitions import reconcile, require_known
from hakiri_dagster.orchestration.requests import of_a_sensor, tick_ranges
from hakiri_dagster.orchestration.resources import OpenProject
from hakiri_dagster.orchestration.under_way import runs_under_way
from hakiri_dagster.pipeline.survey import Survey
from hakiri_dagster.planning.dispatch import to_dispatch


@dataclass
class Dispatcher:
    """Of one tick. `requests` is what it asks for. `within` and `tags`: see `ChunkRange.run_request`."""

    project: OpenProject
    instance: dg.DagsterInstance
    partitions: Mapping[str, dg.PartitionsDefinition]
    tables: Iterable[Table] = ()
    requests: list[dg.RunRequest] = field(default_factory=list)
    occasion: str = field(default_factory=lambda: str(uuid4()))
    within: str = ""
    tags: Mapping[str, str] = field(default_factory=dict)

    @cached_property
    def under_way(self) -> Mapping[str, str]:
        """Of its tables, asked once a tick, and only where there is something to start."""
        return runs_under_way(self.instance, self.tables, self.project.other_hosts)

    def look(self, table: Table) -> Survey:
        survey = self.project.plan(table)
        definition = self.partitions[table.label]
        require_known(table, definition, survey)
        reconcile(self.instance, table, definition, survey)
        return survey

    def dispatch(self, survey: Survey) -> None:
        """As a tick of a schedule does it: what is due, also what has failed."""
        if not survey.due_keys:
            self.project.tell_of_a_look(survey.table, survey)
        self.requests += self.requests_for(survey, self.chosen(survey))

    def requests_for(self, survey: Survey, taken: tuple[str, ...]) -> list[dg.RunRequest]:
        table = survey.table
        ranges = tick_ranges(table, self.partitions[table.label], survey, taken, self.instance)
        phase = survey.phase
        return [chunks.run_request(self.occasion, phase, self.within, self.tags) for chunks in ranges]

    def held(self, survey: Survey) -> frozenset[str]:
        """What is due and somebody holds who lives, as far as can be told: be it an attempt, or a replay."""
        due = survey.due_keys
        return self.project.held_by_the_living(survey.table).intersection(due) if due else frozenset()

    def chosen(self, survey: Survey, *, leave: Collection[str] = (), asked: Collection[str] = ()) -> tuple[str, ...]:
        """Without what somebody holds, what is to be left for another reason, and what was asked for before."""
        due = [key for key in survey.due_in_turn if key not in asked]
        left = {*self.held(survey), *leave}
        at_most = survey.table.backfill.max_chunks_per_tick
        return to_dispatch(due, at_most=at_most, leave=left, in_order=survey.table.in_order)

    def miss(self, table: Table, error: HakiriError) -> None:
        self.project.tell_of_a_look(table, error)


@dataclass
class TriggeredDispatcher(Dispatcher):
    """Of a tick that no clock but a change has brought about. What came to nothing is not started again until the next
    change: runs that fail, are refused or are canceled would else follow each other without end. What was killed is
    started again, but not for ever. `taken`: which chunks were started last, by table, from tick to tick."""

    taken: dict[str, str] = field(default_factory=dict)

    def start(self, survey: Survey, *, changed: bool, leave: Collection[str] = ()) -> str | None:
        """Answers why it starts nothing, if so. `leave`: chunks that are not to be loaded yet."""
        label = survey.table.label
        if survey.refusals:
            return f"{label}: {survey.refusals[0]}"
        stopped = 0 if changed else stopped_in_a_row(self.instance, survey.table)
        keys = self.chosen(survey, leave=leave if changed else {*leave, *_came_to_nothing(survey, stopped)})
        mark = hashlib.sha256(repr(keys).encode()).hexdigest()
        if not keys and not survey.owed_hooks:
            return f"{label}: nothing to start"
        if not changed and self.taken.get(label) == mark and not 0 < stopped < MOST_KILLED:
            return f"{label}: {len(keys)} chunk(s) were started before, and are still to be loaded"
        self.taken[label] = mark
        self.requests += [of_a_sensor(request) for request in self.requests_for(survey, keys)]
        return None


def _came_to_nothing(survey: Survey, stopped: int) -> frozenset[str]:
    """Chunks that failed, and those whose load may be what kills the runs."""
    return survey.failed_keys | survey.killed_keys if stopped >= MOST_KILLED else survey.failed_keys
