"""The composition root: a project becomes Dagster's definitions. `workspace.yaml` points here."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from pathlib import Path

import dagster as dg

from hakiri_dagster.connectors.registry import source_table
from hakiri_dagster.manifest.project import load_project
from hakiri_dagster.manifest.tables import Project, Table
from hakiri_dagster.orchestration.arrivals import file_arrival_sensor
from hakiri_dagster.orchestration.assets import table_asset
from hakiri_dagster.orchestration.dagster_home import PROJECT_VARIABLE
from hakiri_dagster.orchestration.delivery_sensor import delivery_sensors
from hakiri_dagster.orchestration.io_managers import LoadIOManager
from hakiri_dagster.orchestration.jobs import pipeline_jobs
from hakiri_dagster.orchestration.names import source_key
from hakiri_dagster.orchestration.partitions import partitions_of
from hakiri_dagster.orchestration.planner import planner_sensor
from hakiri_dagster.orchestration.queue_sensor import queue_sensors
from hakiri_dagster.orchestration.resources import project_resource, spark_resource
from hakiri_dagster.orchestration.schedules import pipeline_schedule
from hakiri_dagster.orchestration.sensors import alerts, killed_runs, stale_leases
from hakiri_dagster.orchestration.verify_schedules import verify_schedules
from hakiri_dagster.pipeline.runtime import stored_chunks, stored_plans
from hakiri_dagster.settings import Settings


def project_definitions(project: Project, settings: Settings) -> dg.Definitions:
    plans, chunks = stored_plans(project), stored_chunks(project)
    sources = {table.label: source_table(table) for table in project.tables}
    partitions = {t.label: partitions_of(t, sources[t.label], plans.get(t.label)) for t in project.tables}
    upstream = {label: source_key(source.lineage, project.root) for label, source in sources.items()}
    return dg.Definitions(
        assets=[
            *(
                table_asset(t, partitions[t.label], upstream[t.label], project.root, chunks.get(t.label, 0))
                for t in project.tables
            ),
            *_sources(project.tables, upstream),
        ],
        jobs=[job for pipeline in project.pipelines for job in pipeline_jobs(pipeline, partitions)],
        schedules=[
            *(pipeline_schedule(pipeline, partitions) for pipeline in project.pipelines if pipeline.schedule),
            *(schedule for pipeline in project.pipelines for schedule in verify_schedules(pipeline)),
        ],
        sensors=[
            *_sensors(project, partitions),
            killed_runs,
            stale_leases,
            alerts,
            *delivery_sensors(project, partitions, settings),
            *queue_sensors(project, settings),
        ],
        resources={
            "project": project_resource(project),
            "spark": spark_resource(project.root, settings),
            "loads": LoadIOManager(),
        },
        executor=dg.in_process_executor,  # a killed run must not leave a step alive that is free to commit
    )


def _sensors(project: Project, partitions: Mapping[str, dg.PartitionsDefinition]) -> Iterator[dg.SensorDefinition]:
    yield planner_sensor(project.pipelines, partitions)
    if any(pipeline.files_trigger is not None for pipeline in project.pipelines):
        yield file_arrival_sensor(project.pipelines, partitions)


def _sources(tables: tuple[Table, ...], upstream: dict[str, dg.AssetKey]) -> list[dg.AssetSpec]:
    """What the tables are loaded from, for lineage."""
    kinds = {upstream[table.label]: table.source.connector for table in tables}
    return [dg.AssetSpec(key, kinds={kind}, group_name="sources") for key, kind in kinds.items()]


@dg.definitions
def defs() -> dg.Definitions:
    root = Path(os.environ.get(PROJECT_VARIABLE, "."))
    return project_definitions(load_project(root.resolve()), Settings.from_env())
