"""Schedules that compare targets with their sources: one a pipeline, and one a table with a cadence of its own."""

# No `from __future__ import annotations` here: Dagster reads the annotations of decorated functions.
from collections.abc import Iterator, Sequence

import dagster as dg

from hakiri_dagster.manifest.schedules import cron_of
from hakiri_dagster.manifest.tables import Pipeline, Table
from hakiri_dagster.orchestration.checks import MATCHES_SOURCE
from hakiri_dagster.orchestration.jobs import EVERY_ASSET_JOB
from hakiri_dagster.orchestration.names import TABLE_TAG, VERIFY_TAG, asset_key, group_name, verify_schedule_name
from hakiri_dagster.orchestration.resources import OpenProject
from hakiri_dagster.orchestration.under_way import reasons, runs_under_way, verifications_under_way


def verify_schedules(pipeline: Pipeline) -> Iterator[dg.ScheduleDefinition]:
    of_pipeline = None if pipeline.verify is None else pipeline.verify.every
    together = [table for table in pipeline.tables if table.verify is not None and table.verify.every == of_pipeline]
    if together and of_pipeline is not None:
        yield _schedule(verify_schedule_name(group_name(pipeline.id)), pipeline, together, of_pipeline)
    for table in pipeline.tables:
        if table.verify is not None and table.verify.every != of_pipeline:
            yield _schedule(verify_schedule_name(group_name(pipeline.id), table), pipeline, [table], table.verify.every)


def _schedule(name: str, pipeline: Pipeline, tables: Sequence[Table], every: str) -> dg.ScheduleDefinition:
    @dg.schedule(
        name=name,
        job_name=EVERY_ASSET_JOB,
        cron_schedule=cron_of(every),
        execution_timezone=pipeline.timezone,
        default_status=dg.DefaultScheduleStatus.RUNNING,
        description=f"Compares {', '.join(table.name for table in tables)} with the source, {every}.",
    )
    def tick(
        context: dg.ScheduleEvaluationContext, project: dg.ResourceParam[OpenProject]
    ) -> Iterator[dg.RunRequest | dg.SkipReason]:
        """A table of which a run is queued or at work is compared at the next tick."""
        loads = runs_under_way(context.instance, tables, project.other_hosts)
        under_way = {**loads, **verifications_under_way(context.instance, tables)}
        idle = [table for table in tables if table.label not in under_way]
        for table in idle:
            yield dg.RunRequest(
                run_key=f"verify {table.label}",
                asset_selection=[],
                asset_check_keys=[dg.AssetCheckKey(asset_key(table), MATCHES_SOURCE)],
                tags={TABLE_TAG: table.label, VERIFY_TAG: "true"},
            )
        if not idle:
            yield dg.SkipReason("; ".join(reasons(tables, under_way)))

    return tick
