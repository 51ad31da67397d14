"""File arrival: one sensor for all pipelines with a trigger of the type `files`. A tick lists folders, no more."""

# No `from __future__ import annotations` here: Dagster reads the annotations of decorated functions.
import json
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from datetime import UTC, datetime, timedelta
from typing import Any, Final

import dagster as dg

from hakiri_dagster.errors import HakiriError
from hakiri_dagster.manifest.durations import parse_duration
from hakiri_dagster.manifest.tables import Pipeline, Table
from hakiri_dagster.orchestration.dispatching import TriggeredDispatcher
from hakiri_dagster.orchestration.jobs import EVERY_ASSET_JOB
from hakiri_dagster.orchestration.names import FILE_ARRIVALS
from hakiri_dagster.orchestration.resources import OpenProject
from hakiri_dagster.orchestration.under_way import reasons
from hakiri_dagster.pipeline.survey import Survey
from hakiri_dagster.planning.arrivals import Arrived, Watched, arrived
from hakiri_dagster.planning.chunks import SourceFile
from hakiri_dagster.planning.looks import OF_TABLE

SECONDS_BETWEEN_LISTINGS: Final = 5
SECONDS_AFTER_AN_ERROR: Final = 30
MOST_SECONDS: Final = 15
"""Dagster ends a tick that takes longer than a minute, and what it remembers would be lost."""


def file_arrival_sensor(
    pipelines: Sequence[Pipeline], partitions: Mapping[str, dg.PartitionsDefinition]
) -> dg.SensorDefinition:
    watched = {
        table.label: (table, parse_duration(pipeline.files_trigger.settle))
        for pipeline in pipelines
        if pipeline.files_trigger is not None
        for table in pipeline.tables
        if not table.streams
    }

    @dg.sensor(
        name=FILE_ARRIVALS,
        job_name=EVERY_ASSET_JOB,
        minimum_interval_seconds=SECONDS_BETWEEN_LISTINGS,
        default_status=dg.DefaultSensorStatus.RUNNING,
        description="Lists the files of pipelines with a trigger of the type `files`, and starts runs for"
        " those that are new or were written anew, once they are complete.",
    )
    def watch(
        context: dg.SensorEvaluationContext, project: dg.ResourceParam[OpenProject]
    ) -> Iterator[dg.RunRequest | dg.SkipReason]:
        memory = _Memory.parse(context.cursor)
        tables = [table for table, _ in watched.values()]
        dispatcher = TriggeredDispatcher(project, context.instance, partitions, tables, taken=memory.taken)
        tick = _Tick(dispatcher, memory, project.looks({table.pipeline_id for table in tables}).pending)
        for table, settle in watched.values():
            tick.watch(table, settle)
        context.update_cursor(tick.memory.text(watched))
        yield from dispatcher.requests
        if not dispatcher.requests:
            yield dg.SkipReason("; ".join(tick.told) or "no file has arrived")

    return watch


@dataclass
class _Memory:
    """From tick to tick, in the sensor's cursor."""

    watched: dict[str, Watched] = field(default_factory=dict)
    taken: dict[str, str] = field(default_factory=dict)

    @classmethod
    def parse(cls, text: str | None) -> "_Memory":
        document: dict[str, Any] = json.loads(text) if text else {"watched": {}, "taken": {}}
        watched = {
            label: Watched(**one | {"recent": {path: tuple(seen) for path, seen in one["recent"].items()}})
            for label, one in document["watched"].items()
        }
        return cls(watched, document["taken"])

    def text(self, labels: Mapping[str, object]) -> str:
        """Of tables that are in the manifest."""
        return json.dumps(
            {
                "watched": {label: asdict(one) for label, one in self.watched.items() if label in labels},
                "taken": {label: mark for label, mark in self.taken.items() if label in labels},
            }
        )


@dataclass
class _Tick:
    dispatcher: TriggeredDispatcher
    memory: _Memory
    pending: frozenset[OF_TABLE]
    end: float = field(default_factory=lambda: time.monotonic() + MOST_SECONDS)
    told: list[str] = field(default_factory=list)

    def watch(self, table: Table, settle: timedelta) -> None:
        """A folder that has gone is told, and once it is an alert; the ticks go on."""
        before, now = self.memory.watched.get(table.label, Watched()), datetime.now(UTC)
        if now.timestamp() < before.again_at:
            self.told.append(f"{table.label}: {before.error}")
            return
        try:
            files = self.dispatcher.project.stamps(table)
            found = arrived(before, files, now, settle)
            before = replace(before, recent=found.recent)
            pending = (table.pipeline_id, table.name) in self.pending and not before.idle
            if files and (found.complete != before.started or pending):
                before = self._start(table, before, found)
            after = replace(before, error=None, again_at=0.0)
        except HakiriError as error:
            self._failed(table, error, before.error)
            after = replace(before, error=error.what, again_at=now.timestamp() + SECONDS_AFTER_AN_ERROR)
        self.memory.watched[table.label] = after

    def _failed(self, table: Table, error: HakiriError, before: str | None) -> None:
        self.told.append(f"{table.label}: {error.what}")
        if error.what != before and error.kind != "transient":
            self.dispatcher.project.tell_of_a_trigger(table, "files", error)
            self.dispatcher.miss(table, error)

    def _start(self, table: Table, before: Watched, found: Arrived) -> Watched:
        """As long as something is in the way, it is remembered as it was: the next tick tries again."""
        if table.label in self.dispatcher.under_way:
            self.told += reasons([table], self.dispatcher.under_way)
            return before
        if found.waiting and not self.dispatcher.project.loads_file_by_file(table):
            self.told.append(f"{table.label}: {len(found.waiting)} file(s) may still be written")
            return before
        if time.monotonic() > self.end:
            self.told.append(f"{table.label}: the next tick goes on")
            return before
        survey = self.dispatcher.look(table)
        changed = found.complete != before.started
        nothing = self.dispatcher.start(survey, changed=changed, leave=_incomplete(survey, found.waiting))
        if nothing is not None:
            self.told.append(nothing)
        idle = nothing is not None and not self.dispatcher.held(survey)
        return replace(before, started=found.complete, idle=idle)


def _incomplete(survey: Survey, waiting: frozenset[str]) -> set[str]:
    chunks = (due.slice.chunk for due in (*survey.due.slices, *survey.due.busy))
    return {chunk.key for chunk in chunks if isinstance(chunk.bounds, SourceFile) and chunk.bounds.path in waiting}
