"""Dagster's resources: the project (audit DB, sources, destinations) and Spark."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import dagster as dg
from dagster_pyspark import LazyPySparkResource

from hakiri_dagster.audit.alerts import Alert, AlertRecord
from hakiri_dagster.audit.looks import Looks
from hakiri_dagster.audit.rewinds import RewindAnswer
from hakiri_dagster.connectors.contract import SparkProvider
from hakiri_dagster.connectors.tick_time import TickTime
from hakiri_dagster.engine.process_identity import is_dead
from hakiri_dagster.engine.spark import living_session, opened_apart, prepare_process, spark_config
from hakiri_dagster.errors import HakiriError
from hakiri_dagster.manifest.tables import Project, Table
from hakiri_dagster.manifest.verify_spec import VerifySpec
from hakiri_dagster.orchestration.events import observation
from hakiri_dagster.orchestration.killed_runs import OtherHosts, signature
from hakiri_dagster.orchestration.names import OCCASION_TAG
from hakiri_dagster.pipeline.alert_delivery import PassedOn, pass_on
from hakiri_dagster.pipeline.alerts import raise_alert_without_run
from hakiri_dagster.pipeline.glance import glance
from hakiri_dagster.pipeline.live_checks import LiveTable
from hakiri_dagster.pipeline.remembering import remember
from hakiri_dagster.pipeline.runtime import Runtime
from hakiri_dagster.pipeline.shapes import shape_of
from hakiri_dagster.pipeline.survey import Survey
from hakiri_dagster.pipeline.sweeping import Swept, sweep_leases
from hakiri_dagster.pipeline.told_looks import tell_of_a_look, tell_of_parts
from hakiri_dagster.pipeline.told_progress import RunProgress
from hakiri_dagster.pipeline.verification import Verification, VerifyOptions, drift_alert, mark_for_repair, verify
from hakiri_dagster.pipeline.way import Way
from hakiri_dagster.planning.arrivals import Stamp
from hakiri_dagster.settings import Settings


def _occasion(tags: Mapping[str, str]) -> str | None:
    """Executed again, maybe weeks later, a run has the tags of the first, and is an occasion of its own."""
    if "dagster/parent_run_id" in tags:
        return None
    return tags.get(OCCASION_TAG) or tags.get("dagster/backfill")


class OpenProject:
    """The project as runs and ticks see it."""

    def __init__(self, runtime: Runtime) -> None:
        self._runtime = runtime

    def way(self, table: Table, spark: LazyPySparkResource, context: dg.AssetExecutionContext) -> Way:
        provider, run = self._provider(table, spark), context.run
        return self._runtime.way(table, provider, run_id=run.run_id, log=context.log.info, occasion=_occasion(run.tags))

    def progress(self, way: Way) -> RunProgress:
        pipeline = self._runtime.project.pipeline(way.table.pipeline_id)
        return RunProgress(way, None if pipeline is None else pipeline.rate_budget)

    def live_table(self, table: Table, spark: LazyPySparkResource, context: dg.AssetExecutionContext) -> LiveTable:
        return LiveTable(self.way(table, spark, context), self._runtime.target_as_source(table))

    def verify(self, table: Table) -> tuple[Verification, RewindAnswer | None]:
        """Compare the table with its source as its `verify` declares; raise an alert for what drifted."""
        declared = table.verify or VerifySpec()
        options = VerifyOptions(
            windows=declared.windows, digest=declared.digest, chunks_per_second=declared.chunks_per_second
        )
        found = verify(self._runtime, table, options)
        answer = None
        if declared.repair:
            answer = mark_for_repair(self._runtime, found, with_deletes=False, asked_by="verify")
        if found.drifted:
            alert = drift_alert(found, answer, severity="error" if declared.on_drift == "error" else "warning")
            raise_alert_without_run(self._runtime.audit, self._runtime.observer, table, alert)
        return found, answer

    def plan(self, table: Table) -> Survey:
        """Looks at the source and stores the plan, from which partitions are made when Dagster loads the project."""
        with self._runtime.looking(table):
            survey = self._runtime.survey(table)
            remember(self._runtime.audit, survey, survey.due)
            return survey

    def looks(self, pending_of: Collection[str]) -> Looks:
        """What sensors remember of sources; `pending_of`: pipelines of which it is asked whether chunks are pending."""
        return self._runtime.audit.looks.all(pending_of)

    def begin_look(self, table: Table) -> None:
        self._runtime.audit.looks.begin((table.pipeline_id, table.name))

    def end_look(self, table: Table, *, said: str | None, shown: int, surveyed: bool) -> None:
        key = (table.pipeline_id, table.name)
        self._runtime.audit.looks.end(key, said=said, shown=shown, surveyed=surveyed)

    def glance(self, table: Table) -> str:
        with self._runtime.looking(table):
            return glance(table, self._runtime.source(table), self._runtime.audit, self._runtime.open_spark)

    def stamps(self, table: Table) -> tuple[Stamp, ...]:
        return self._runtime.stamps(table)

    def loads_file_by_file(self, table: Table) -> bool:
        return shape_of(table, self._runtime.source(table)) == "files"

    def tell_of_a_trigger(self, table: Table, kind: str, error: HakiriError) -> None:
        """What a trigger waits for cannot be looked at, so that nothing would start the pipeline."""
        alert = Alert("trigger_failed", f"the trigger `{kind}` cannot work: {error.what}", "error", subject=kind)
        self._runtime.audit.alerts.raise_(table.pipeline_id, table.name, alert, None)

    def sweep_leases(self) -> Swept:
        return sweep_leases(self._runtime)

    @property
    def other_hosts(self) -> OtherHosts:
        leases, ttl = self._runtime.audit.leases, self._runtime.settings.lease_ttl_seconds
        return OtherHosts.by_leases(leases.living_holders, ttl)

    def held_by_the_living(self, table: Table) -> frozenset[str]:
        """Chunks that an attempt works on which may well live, here or on another host."""
        held = self._runtime.audit.chunks.held(table.pipeline_id, table.name, is_dead)
        return frozenset(chunk.key for chunk in held)

    def tell_of_a_look(self, table: Table, found: Survey | HakiriError) -> None:
        """Of a tick that starts no run, because the source holds nothing."""
        tell_of_a_look(self._runtime, table, found)

    def tell_of_unread_parts(self, survey: Survey) -> None:
        tell_of_parts(self._runtime, survey)

    def pass_alerts_on(self, log: Callable[[str], None], instance: dg.DagsterInstance) -> PassedOn:
        tables = {(table.pipeline_id, table.name): table for table in self._runtime.project.tables}

        def observe(alert: AlertRecord) -> None:
            table = tables.get((alert.pipeline_id, alert.table))
            if table is not None:
                instance.report_runless_asset_event(observation(table, alert))

        project = self._runtime.project.name
        return pass_on(self._runtime.audit.alerts, project, self._runtime.settings, log, observe)

    def _provider(self, table: Table, spark: LazyPySparkResource) -> SparkProvider:
        def session():  # type: ignore[no-untyped-def]  # Spark's types stay out of this layer
            settings, state_dir = self._runtime.settings, self._runtime.project.state_dir
            asked = time.monotonic()
            prepare_process(settings, state_dir)
            living = living_session(opened_apart(lambda: spark.spark_session, settings), settings, state_dir)
            self._runtime.observer.waited_for_engine(table, time.monotonic() - asked)
            return living

        return session


def project_resource(project: Project) -> dg.ResourceDefinition:
    """Opened for each run and tick, closed at its end. A run is signed by the process that opens it. It is the project
    from which Dagster's definitions were made, so that ticks need not read its manifests again."""

    @contextmanager
    def opened(context: dg.InitResourceContext) -> Iterator[OpenProject]:
        tick = TickTime.begun() if context.run is None else None
        if context.instance is not None and context.run is not None:
            context.instance.add_run_tags(context.run.run_id, signature(context.run.run_id))
        with Runtime(project, Settings.from_env(), tick=tick) as runtime:
            yield OpenProject(runtime)

    return dg.ResourceDefinition(opened)


def shared_project(runtime: Runtime) -> dg.ResourceDefinition:
    """The command line has the project open already; its runs use that and leave it open."""
    return dg.ResourceDefinition.hardcoded_resource(OpenProject(runtime))


def spark_resource(root: Path, settings: Settings) -> LazyPySparkResource:
    return LazyPySparkResource(spark_config=dict(spark_config(settings, root / ".hakiri")))
