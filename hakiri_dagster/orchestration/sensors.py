"""Sensors: what a source has grown by becomes partitions, seen in the UI; runs of killed processes are ended."""

# No `from __future__ import annotations` here: Dagster reads the annotations of decorated functions.
from collections.abc import Mapping

import dagster as dg

from hakiri_dagster.errors import HakiriError
from hakiri_dagster.manifest.tables import Pipeline
from hakiri_dagster.orchestration.killed_runs import end_killed_runs
from hakiri_dagster.orchestration.names import asset_key, group_name
from hakiri_dagster.orchestration.partitions import reconcile, require_known
from hakiri_dagster.orchestration.resources import OpenProject

SECONDS_BETWEEN_LOOKS = 60
SECONDS_BETWEEN_LOOKS_AT_RUNS = 30
SECONDS_BETWEEN_LOOKS_AT_ALERTS = 30
KILLED_RUNS = "_killed_runs"
ALERTS = "_alerts"
"""No pipeline's id begins like this, so none of its names can be the same."""


def discovery_sensor(pipeline: Pipeline, partitions: Mapping[str, dg.PartitionsDefinition]) -> dg.SensorDefinition:
    @dg.sensor(
        name=f"{group_name(pipeline.id)}_discovery",
        asset_selection=dg.AssetSelection.assets(*(asset_key(table) for table in pipeline.tables)),
        minimum_interval_seconds=SECONDS_BETWEEN_LOOKS,
        default_status=dg.DefaultSensorStatus.RUNNING,
        description="Looks at the source, adds new chunks to the plan and to the partitions. Starts no run itself.",
    )
    def discover(context: dg.SensorEvaluationContext, project: dg.ResourceParam[OpenProject]) -> dg.SkipReason:
        found: list[str] = []
        for table in pipeline.tables:
            try:
                survey = project.plan(table)
                require_known(table, partitions[table.label], survey)
            except HakiriError as error:
                found.append(f"{table.name}: {error.what}")
                continue
            reconcile(context.instance, table, partitions[table.label], survey)
            found.append(f"{table.name}: {len(survey.due_keys)} due")
        return dg.SkipReason("; ".join(found))

    return discover


@dg.sensor(
    name=KILLED_RUNS,
    minimum_interval_seconds=SECONDS_BETWEEN_LOOKS_AT_RUNS,
    default_status=dg.DefaultSensorStatus.RUNNING,
    description="Ends runs whose process was killed: they would hold their table and a place among all runs for ever.",
)
def killed_runs(context: dg.SensorEvaluationContext) -> dg.SkipReason:
    ended = end_killed_runs(context.instance)
    return dg.SkipReason(f"ended {', '.join(ended)}" if ended else "no run of a killed process")


@dg.sensor(
    name=ALERTS,
    minimum_interval_seconds=SECONDS_BETWEEN_LOOKS_AT_ALERTS,
    default_status=dg.DefaultSensorStatus.RUNNING,
    description="Passes alerts on: to this sensor's log, and to HAKIRI_ALERT_WEBHOOK_URL if that is set.",
)
def alerts(context: dg.SensorEvaluationContext, project: dg.ResourceParam[OpenProject]) -> dg.SkipReason:
    told = project.pass_alerts_on(context.log.warning, context.instance)
    return dg.SkipReason(told.summary)
