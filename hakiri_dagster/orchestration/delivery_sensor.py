"""The sensor that starts pipelines for what has reached their triggers. With nothing to do, a tick is one query."""

# No `from __future__ import annotations` here: Dagster reads the annotations of decorated functions.
import time
from collections.abc import Iterator, Mapping

import dagster as dg

from hakiri_dagster.audit.database import open_audit_view
from hakiri_dagster.audit.deliveries import OpenWork
from hakiri_dagster.connectors.tick_time import TickTime
from hakiri_dagster.manifest.tables import Project
from hakiri_dagster.orchestration.jobs import EVERY_ASSET_JOB
from hakiri_dagster.orchestration.names import DELIVERIES
from hakiri_dagster.orchestration.resources import OpenProject
from hakiri_dagster.orchestration.serving import Batches
from hakiri_dagster.pipeline.runtime import Runtime
from hakiri_dagster.settings import Settings

SECONDS_BETWEEN_LOOKS = 10
SECONDS_A_TICK = 25
"""Dagster ends a tick that takes longer than a minute; the pipelines that were not looked at come first in the next."""
SECONDS_WITH_REQUESTS = 5
"""What a tick has asked for is lost if it is ended, and waits as long as the tick goes on."""


def delivery_sensors(
    project: Project, partitions: Mapping[str, dg.PartitionsDefinition], settings: Settings
) -> list[dg.SensorDefinition]:
    """None where no pipeline has a trigger."""
    ids = [pipeline.id for pipeline in project.pipelines if pipeline.receives]
    return [_delivery_sensor(project, ids, partitions, settings)] if ids else []


def _delivery_sensor(
    project: Project, ids: list[str], partitions: Mapping[str, dg.PartitionsDefinition], settings: Settings
) -> dg.SensorDefinition:
    @dg.sensor(
        name=DELIVERIES,
        job_name=EVERY_ASSET_JOB,
        minimum_interval_seconds=SECONDS_BETWEEN_LOOKS,
        default_status=dg.DefaultSensorStatus.RUNNING,
        description="Starts pipelines for webhooks and messages that have come: once for all that wait together.",
    )
    def deliver(context: dg.SensorEvaluationContext) -> Iterator[dg.RunRequest | dg.SkipReason]:
        with open_audit_view(project.audit_url, project.state_dir) as audit:
            waiting = audit.deliveries.open_work(ids)
        if not waiting:
            yield dg.SkipReason("no delivery waits")
            return
        with Runtime(project, settings, tick=TickTime.begun()) as runtime:
            batches = Batches(
                runtime.audit.deliveries, OpenProject(runtime), partitions, context.instance, context.log.info
            )
            yield from _served(batches, project, waiting)

    return deliver


def _served(
    batches: Batches, project: Project, waiting: tuple[OpenWork, ...]
) -> Iterator[dg.RunRequest | dg.SkipReason]:
    begin = time.monotonic()
    told: list[str] = []
    asked = False
    for work in waiting:
        pipeline = project.pipeline(work.pipeline_id)
        if pipeline is None or (asked and work.tries):  # one whose last look was in trouble may not come back
            continue
        if time.monotonic() > begin + (SECONDS_WITH_REQUESTS if asked else SECONDS_A_TICK):
            told.append("the others wait for the next tick")
            break
        served = batches.serve(pipeline, work)
        told.append(f"{pipeline.id}: {served.told}")
        asked = asked or bool(served.requests)
        yield from served.requests
    if not asked:
        yield dg.SkipReason("; ".join(told))
