"""Plan stages → Dagster runs, in this process: the same assets, checks and event log that the UI shows."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from uuid import uuid4

import dagster as dg

from hakiri_dagster.audit.tables import StoredPlan
from hakiri_dagster.manifest.tables import Table
from hakiri_dagster.orchestration.assets import table_asset
from hakiri_dagster.orchestration.dagster_home import opened_instance, psycopg2_url
from hakiri_dagster.orchestration.io_managers import LoadIOManager
from hakiri_dagster.orchestration.killed_runs import end_killed_runs, signature
from hakiri_dagster.orchestration.names import DUE_ONLY_TAG, OCCASION_TAG, asset_key, source_key
from hakiri_dagster.orchestration.partitions import partitions_of, reconcile
from hakiri_dagster.orchestration.profile_events import profile_observation
from hakiri_dagster.orchestration.requests import ChunkRange, chunk_ranges, range_for_hooks
from hakiri_dagster.orchestration.resources import OpenProject, shared_project, spark_resource
from hakiri_dagster.orchestration.storage import STORAGE_ERRORS, storage_lost
from hakiri_dagster.pipeline.runtime import Runtime
from hakiri_dagster.pipeline.survey import Survey
from hakiri_dagster.pipeline.target_profile import profile_of_target
from hakiri_dagster.quality.profile import TableProfile

CHECK_JOB = "hakiri_check"
QUIET = {"loggers": {"console": {"config": {"log_level": "CRITICAL"}}}}


class Applier:
    """Runs ranges of chunks through Dagster, sharing one Spark session and the open project."""

    def __init__(self, runtime: Runtime, instance: dg.DagsterInstance) -> None:
        self._runtime = runtime
        self._instance = instance
        self._occasion = str(uuid4())
        root = runtime.project.root
        self._resources: Mapping[str, object] = {
            "project": shared_project(runtime),
            "spark": spark_resource(root, runtime.settings),
            "loads": LoadIOManager(),
        }

    def load_due(self, table: Table, survey: Survey) -> tuple[str, ...]:
        """Everything that is due of one table. Answers what failed runs say."""
        return self._load(table, survey, survey.due_keys, due_only=True)

    def load_again(self, table: Table, survey: Survey, keys: Sequence[str]) -> tuple[str, ...]:
        """The chunks as they are named, due or not."""
        return self._load(table, survey, keys, due_only=False)

    def check(self, table: Table, plan: StoredPlan | None) -> tuple[tuple[dg.AssetCheckEvaluation, ...], str | None]:
        """Every rule and validator, of the target as it is. The second is what a run says that failed."""
        try:
            return self._checked(table, plan)
        except STORAGE_ERRORS as error:
            return (), str(storage_lost(error, table.label))

    def _checked(self, table: Table, plan: StoredPlan | None) -> tuple[tuple[dg.AssetCheckEvaluation, ...], str | None]:
        source, root = self._runtime.source(table), self._runtime.project.root
        asset = table_asset(table, partitions_of(table, source, plan), source_key(source.lineage, root), root)
        checks = dg.define_asset_job(CHECK_JOB, selection=dg.AssetSelection.checks_for_assets(asset_key(table)))
        definitions = dg.Definitions([asset], jobs=[checks], resources=self._resources)
        run_id = str(uuid4())
        result = definitions.resolve_job_def(CHECK_JOB).execute_in_process(
            run_id=run_id, instance=self._instance, tags=signature(run_id), run_config=QUIET, raise_on_error=False
        )
        evaluated = dg.DagsterEventType.ASSET_CHECK_EVALUATION
        found = tuple(e.asset_check_evaluation_data for e in result.all_events if e.event_type is evaluated)
        return found, next(_failures(result), None)

    def profile(self, table: Table) -> TableProfile:
        """Of the target as it is; the asset shows it."""
        found = profile_of_target(self._runtime, table)
        try:
            self._instance.report_runless_asset_event(profile_observation(table, found))
        except STORAGE_ERRORS as error:
            raise storage_lost(error, table.label) from error
        return found

    def _load(self, table: Table, survey: Survey, keys: Sequence[str], *, due_only: bool) -> tuple[str, ...]:
        try:
            return self._loaded(table, survey, keys, due_only=due_only)
        except STORAGE_ERRORS as error:
            return (str(storage_lost(error, table.label)),)

    def _loaded(self, table: Table, survey: Survey, keys: Sequence[str], *, due_only: bool) -> tuple[str, ...]:
        partitions = partitions_of(table, survey.source, survey.stored_plan)
        reconcile(self._instance, table, partitions, survey)
        root = self._runtime.project.root
        loaded = replace(table, verify=None)  # a load does not compare, so its runs do not plan that check
        asset = table_asset(loaded, partitions, source_key(survey.source.lineage, root), root)
        job = dg.Definitions([asset], resources=self._resources).resolve_implicit_global_asset_job_def()
        ranges = chunk_ranges(table, partitions, keys, self._instance)
        if due_only:
            ranges += range_for_hooks(table, partitions, survey, self._instance)
        return tuple(text for chunks in ranges for text in self._run(job, chunks, due_only=due_only))

    def _run(self, job: dg.JobDefinition, chunks: ChunkRange, *, due_only: bool) -> Iterator[str]:
        run_id = str(uuid4())
        tags = chunks.tags() | signature(run_id) | {OCCASION_TAG: self._occasion}
        if not due_only:
            del tags[DUE_ONLY_TAG]
        result = job.execute_in_process(
            run_id=run_id,  # known beforehand, so that the run is signed from its first moment
            instance=self._instance,
            partition_key=chunks.partition_key,
            tags=tags,
            run_config=QUIET,
            raise_on_error=False,
        )
        yield from _failures(result)


def _failures(result: dg.ExecuteInProcessResult) -> Iterator[str]:
    for event in result.all_events:
        if _is_interrupt(event):
            raise KeyboardInterrupt  # Dagster takes the signal for the failure of this run, and would go on
        if event.is_step_failure and event.step_failure_data.error is not None:
            yield event.step_failure_data.error.to_string()


def _is_interrupt(event: dg.DagsterEvent) -> bool:
    if event.event_type != dg.DagsterEventType.RUN_FAILURE:
        return False
    reason = event.job_failure_data.failure_reason
    return reason is not None and reason.name == "UNEXPECTED_TERMINATION"


@contextmanager
def opened_applier(runtime: Runtime) -> Iterator[Applier]:
    project, storage = runtime.project, psycopg2_url(runtime.dagster_url)
    with runtime.keep_server(), opened_instance(project.root, storage, project.max_parallel_chunks) as instance:
        end_killed_runs(instance, OpenProject(runtime).other_hosts)
        yield Applier(runtime, instance)
