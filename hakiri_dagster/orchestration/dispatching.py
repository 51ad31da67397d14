"""What a tick does for one table: its plan is brought up to date, Dagster shows it, and runs are asked for."""

from __future__ import annotations

from collections.abc import Mapping
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
    by_sensor: bool = False
    """Dagster takes a run key of a sensor only once, however much later; one of a schedule once a tick."""
    requests: list[dg.RunRequest] = field(default_factory=list)
    occasion: str = field(default_factory=lambda: str(uuid4()))

    def look(self, table: Table) -> Survey:
        survey = self.project.plan(table)
        definition = self.partitions[table.label]
        require_known(table, definition, survey)
        reconcile(self.instance, table, definition, survey)
        return survey

    def dispatch(self, survey: Survey, *, retry: bool = True) -> int:
        """Answers how many runs that makes. `retry`: chunks that failed are tried again."""
        table = survey.table
        if not survey.due_keys:
            self.project.tell_of_a_miss(table, survey)
        taken = to_dispatch(
            survey.due_in_turn,
            at_most=table.backfill.max_chunks_per_tick,
            held=self.project.held_by_the_living(table) if survey.due.busy else (),
            failed=survey.failed_keys,
            retry=retry,
            in_order=table.in_order,
        )
        ranges = tick_ranges(table, self.partitions[table.label], survey, taken, self.instance)
        for chunks in ranges:
            request = chunks.run_request(self.occasion, survey.phase)
            self.requests.append(of_a_sensor(request) if self.by_sensor else request)
        return len(ranges)

    def miss(self, table: Table, error: HakiriError) -> None:
        self.project.tell_of_a_miss(table, error)
