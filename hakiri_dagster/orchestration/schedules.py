"""A schedule a pipeline. A tick extends the backfill while there is one, then loads what is new."""

# No `from __future__ import annotations` here: Dagster reads the annotations of decorated functions.
from collections.abc import Iterator, Mapping

import dagster as dg

from hakiri_dagster.errors import HakiriError
from hakiri_dagster.manifest.schedules import cron_of
from hakiri_dagster.manifest.tables import Pipeline
from hakiri_dagster.orchestration.dispatching import Dispatcher
from hakiri_dagster.orchestration.jobs import EVERY_ASSET_JOB
from hakiri_dagster.orchestration.names import group_name
from hakiri_dagster.orchestration.resources import OpenProject
from hakiri_dagster.orchestration.under_way import reasons, runs_under_way


def pipeline_schedule(pipeline: Pipeline, partitions: Mapping[str, dg.PartitionsDefinition]) -> dg.ScheduleDefinition:
    assert pipeline.schedule is not None

    @dg.schedule(
        name=group_name(pipeline.id),
        job_name=EVERY_ASSET_JOB,
        cron_schedule=cron_of(pipeline.schedule),
        execution_timezone=pipeline.timezone,
        default_status=dg.DefaultScheduleStatus.RUNNING,
        description=f"{pipeline.id}: {pipeline.schedule}",
    )
    def tick(
        context: dg.ScheduleEvaluationContext, project: dg.ResourceParam[OpenProject]
    ) -> Iterator[dg.RunRequest | dg.SkipReason]:
        """A table of which a run is queued or at work is not even looked at."""
        under_way = runs_under_way(context.instance, pipeline.tables, project.other_hosts)
        dispatcher = Dispatcher(project, context.instance, partitions)
        failures: list[HakiriError] = []
        for table in pipeline.tables:
            if table.label in under_way:
                continue
            try:
                dispatcher.dispatch(dispatcher.look(table))
            except HakiriError as error:  # the other tables need not wait for it
                context.log.error(str(error))
                failures.append(error)
                dispatcher.miss(table, error)
        yield from dispatcher.requests
        if not dispatcher.requests and failures:
            raise failures[0]
        if not dispatcher.requests:
            yield dg.SkipReason("; ".join(reasons(pipeline.tables, under_way)) or "nothing is due")

    return tick
