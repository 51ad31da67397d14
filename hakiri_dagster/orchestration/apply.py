"""Plan stages → Dagster runs, in this process: the same assets, checks and event log that the UI shows."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager

import dagster as dg

from hakiri_dagster.manifest.tables import Table
from hakiri_dagster.orchestration.assets import table_asset
from hakiri_dagster.orchestration.dagster_home import opened_instance, psycopg2_url
from hakiri_dagster.orchestration.io_managers import LoadIOManager
from hakiri_dagster.orchestration.names import DUE_ONLY_TAG
from hakiri_dagster.orchestration.partitions import partitions_of, reconcile_table
from hakiri_dagster.orchestration.requests import ChunkRange, chunk_ranges
from hakiri_dagster.orchestration.resources import ProjectResource, spark_resource
from hakiri_dagster.pipeline.runtime import Runtime
from hakiri_dagster.pipeline.survey import Survey

QUIET = {"loggers": {"console": {"config": {"log_level": "CRITICAL"}}}}


class Applier:
    """Runs ranges of chunks through Dagster, sharing one Spark session and the open project."""

    def __init__(self, runtime: Runtime, instance: dg.DagsterInstance) -> None:
        self._runtime = runtime
        self._instance = instance
        root = runtime.project.root
        project = ProjectResource(root=str(root))
        project.share(runtime)
        self._resources: Mapping[str, object] = {
            "project": project,
            "spark": spark_resource(root, runtime.settings),
            "loads": LoadIOManager(),
        }

    def load_due(self, table: Table, survey: Survey) -> bool:
        """Everything that is due of one table. False if a run failed."""
        return self._load(table, survey, survey.due_keys, due_only=True)

    def load_again(self, table: Table, survey: Survey, keys: Sequence[str]) -> bool:
        """The chunks as they are named, due or not."""
        return self._load(table, survey, keys, due_only=False)

    def _load(self, table: Table, survey: Survey, keys: Sequence[str], *, due_only: bool) -> bool:
        partitions = partitions_of(table, survey.plan)
        reconcile_table(self._instance, table, partitions, survey)
        asset = table_asset(table, partitions, self._runtime.source(table).lineage)
        ranges = chunk_ranges(table, partitions, keys, self._instance)
        return all([self._run(asset, chunks, due_only=due_only) for chunks in ranges])

    def _run(self, asset: dg.AssetsDefinition, chunks: ChunkRange, *, due_only: bool) -> bool:
        tags = chunks.tags()
        if not due_only:
            del tags[DUE_ONLY_TAG]
        result = dg.materialize(
            [asset],
            instance=self._instance,
            resources=self._resources,
            partition_key=chunks.partition_key,
            tags=tags,
            run_config=QUIET,
            raise_on_error=False,
        )
        return result.success


@contextmanager
def opened_applier(runtime: Runtime) -> Iterator[Applier]:
    with opened_instance(runtime.project.root, psycopg2_url(runtime.dagster_url)) as instance:
        yield Applier(runtime, instance)
