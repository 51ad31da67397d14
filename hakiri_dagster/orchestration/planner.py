"""The planner: one sensor for all pipelines. What their sources have grown by becomes chunks and partitions."""

# No `from __future__ import annotations` here: Dagster reads the annotations of decorated functions.
import json
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Final

import dagster as dg

from hakiri_dagster.errors import HakiriError
from hakiri_dagster.manifest.tables import Pipeline, Table
from hakiri_dagster.orchestration.dispatching import TriggeredDispatcher
from hakiri_dagster.orchestration.jobs import EVERY_ASSET_JOB
from hakiri_dagster.orchestration.names import PLANNER, asset_key
from hakiri_dagster.orchestration.resources import OpenProject
from hakiri_dagster.pipeline.glance import said
from hakiri_dagster.pipeline.look_interval import look_interval
from hakiri_dagster.planning.looks import OF_TABLE, Look, spell

SECONDS_BETWEEN_TICKS: Final = 10


def planner_sensor(
    pipelines: Sequence[Pipeline], partitions: Mapping[str, dg.PartitionsDefinition]
) -> dg.SensorDefinition:
    looked_at = {(t.pipeline_id, t.name): t for p in pipelines for t in p.tables if not t.streams}
    triggered = frozenset(pipeline.id for pipeline in pipelines if pipeline.source_trigger is not None)
    every = {pipeline.id: look_interval(pipeline).every for pipeline in pipelines}
    wanted = {key: every[key[0]] for key in looked_at}

    @dg.sensor(
        name=PLANNER,
        job_name=EVERY_ASSET_JOB,
        minimum_interval_seconds=SECONDS_BETWEEN_TICKS,
        default_status=dg.DefaultSensorStatus.RUNNING,
        description="Looks at sources in turn, and adds new chunks to the plan and to the"
        " partitions. Starts runs for pipelines with a trigger of the type `source`.",
    )
    def plan(
        context: dg.SensorEvaluationContext, project: dg.ResourceParam[OpenProject]
    ) -> Iterator[dg.RunRequest | dg.SkipReason]:
        taken = json.loads(context.cursor) if context.cursor else {}
        dispatcher = TriggeredDispatcher(project, context.instance, partitions, looked_at.values(), taken=taken)
        tick = _Tick(dispatcher, looked_at, triggered)
        tick.look(wanted)
        context.update_cursor(json.dumps({label: mark for label, mark in taken.items() if label in partitions}))
        yield from tick.dispatcher.requests
        if not tick.dispatcher.requests:
            yield dg.SkipReason("; ".join(tick.told) or "nothing new")

    return plan


@dataclass
class _Tick:
    dispatcher: TriggeredDispatcher
    tables: Mapping[OF_TABLE, Table]
    triggered: frozenset[str]
    told: list[str] = field(default_factory=list)

    def look(self, wanted: Mapping[OF_TABLE, timedelta]) -> None:
        """One query, where no look is due."""
        looks = self.dispatcher.project.looks(self.triggered)
        due = spell(wanted, looks.known, looks.now)
        if not due.tables:
            return
        end = time.monotonic() + due.seconds
        for key in due.tables:
            look = looks.known.get(key)
            needed = look is None or look.is_old(looks.now) or key in looks.pending
            self._look(self.tables[key], look, survey=needed)
            if time.monotonic() > end:
                break

    def _look(self, table: Table, look: Look | None, *, survey: bool) -> None:
        """A survey where the source says something new, or where Dagster shows less than it did: somebody wiped it."""
        project = self.dispatcher.project
        project.begin_look(table)
        try:
            if not survey and look is not None and self._is_as_it_was(table, look):
                project.end_look(table, said=look.said, shown=look.shown, surveyed=False)
                return
            self._survey(table, None if look is None else look.said)
        except HakiriError as error:
            self.told.append(f"{table.label}: {error.what}")

    def _is_as_it_was(self, table: Table, look: Look) -> bool:
        return self.dispatcher.project.glance(table) == look.said and self._shown(table) >= look.shown

    def _survey(self, table: Table, before: str | None) -> None:
        survey = self.dispatcher.look(table)
        self.dispatcher.project.tell_of_unread_parts(survey)
        now = said(survey.discovery)
        if table.pipeline_id in self.triggered and survey.due_keys:
            if table.label in self.dispatcher.under_way:
                now = before or ""  # so that the look after the run finds the change once more
            else:
                self.told += filter(None, [self.dispatcher.start(survey, changed=now != before)])
        shown = self._shown(table)
        self.dispatcher.project.end_look(table, said=now, shown=shown, surveyed=True)
        self.told.append(f"{table.label}: {len(survey.due_keys)} due, {survey.phase}")

    def _shown(self, table: Table) -> int:
        return len(self.dispatcher.instance.get_materialized_partitions(asset_key(table)))
