"""A schedule a pipeline. A tick extends the backfill while there is one, then loads what is new."""

# No `from __future__ import annotations` here: Dagster reads the annotations of decorated functions.
from collections.abc import Iterator, Mapping
from uuid import uuid4

import dagster as dg

from hakiri_dagster.errors import HakiriError
from hakiri_dagster.manifest.schedules import cron_of
from hakiri_dagster.manifest.tables import Pipeline
from hakiri_dagster.orchestration.jobs import EVERY_ASSET_JOB
from hakiri_dagster.orchestration.names import group_name
from hakiri_dagster.orchestration.partitions import reconcile, require_known
from hakiri_dagster.orchestration.requests import tick_ranges
from hakiri_dagster.orchestration.resources import OpenProject


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
        occasion = str(uuid4())
        nothing_due = True
        failures: list[HakiriError] = []
        for table in pipeline.tables:
            try:
                survey = project.plan(table)
                require_known(table, partitions[table.label], survey)
            except HakiriError as error:  # the other tables need not wait for it
                context.log.error(str(error))
                failures.append(error)
                project.tell_of_a_miss(table, error)
                continue
            reconcile(context.instance, table, partitions[table.label], survey)
            if not survey.due_keys:
                project.tell_of_a_miss(table, survey)
            for chunks in tick_ranges(table, partitions[table.label], survey, context.instance):
                nothing_due = False
                yield chunks.run_request(occasion)
        if nothing_due and failures:
            raise failures[0]
        if nothing_due:
            yield dg.SkipReason("nothing is due")

    return tick
