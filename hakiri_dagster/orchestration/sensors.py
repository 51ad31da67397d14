"""The sensor that discovers new chunks: what the source has grown by becomes partitions, seen in the UI."""

# No `from __future__ import annotations` here: Dagster reads the annotations of decorated functions.
from collections.abc import Mapping

import dagster as dg

from hakiri_dagster.errors import HakiriError
from hakiri_dagster.manifest.tables import Pipeline
from hakiri_dagster.orchestration.names import asset_key, group_name
from hakiri_dagster.orchestration.partitions import reconcile
from hakiri_dagster.orchestration.resources import OpenProject

SECONDS_BETWEEN_LOOKS = 60


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
                survey = project.survey(table)
            except HakiriError as error:
                found.append(f"{table.name}: {error.what}")
                continue
            reconcile(context.instance, table, partitions[table.label], survey)
            found.append(f"{table.name}: {len(survey.due_keys)} due")
        return dg.SkipReason("; ".join(found))

    return discover
