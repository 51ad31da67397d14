"""A project, opened: its audit DB, embedded PostgreSQL, sources and destinations, each when it is first needed."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from dataclasses import replace
from functools import cached_property, partial
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

from hakiri_dagster.audit.database import AuditDb, audit_address, open_audit, open_audit_view
from hakiri_dagster.audit.rate_budgets import BudgetOf, Of, User
from hakiri_dagster.audit.tables import StoredPlan
from hakiri_dagster.connectors.budgets import request_budget
from hakiri_dagster.connectors.contract import OfFiles, SourceTable, SparkProvider
from hakiri_dagster.connectors.network import FreePermits, Network, Permits
from hakiri_dagster.connectors.permits import HURRIED_SECONDS, SharedPermits
from hakiri_dagster.connectors.registry import source_table
from hakiri_dagster.connectors.streams import open_stream
from hakiri_dagster.connectors.tick_time import TickTime, TimedPermits
from hakiri_dagster.destinations.contract import Destination
from hakiri_dagster.destinations.registry import open_destination
from hakiri_dagster.engine.embedded_postgres import Server, hold
from hakiri_dagster.engine.process_identity import ProcessIdentity
from hakiri_dagster.engine.spark import open_session
from hakiri_dagster.errors import EngineLost, HakiriError, StreamRefused
from hakiri_dagster.manifest.tables import Endpoint, Project, Table
from hakiri_dagster.pipeline.attempt_folders import sweep_dead_attempts
from hakiri_dagster.pipeline.gaps import gaps_of, told_gaps
from hakiri_dagster.pipeline.garbage import garbage_kept
from hakiri_dagster.pipeline.look import look
from hakiri_dagster.pipeline.only_look import only_look
from hakiri_dagster.pipeline.planner import Planned, failed_plan, limits_of, refused_plan, started_by, table_plan
from hakiri_dagster.pipeline.spans.run_trace import RunTrace
from hakiri_dagster.pipeline.survey import Survey
from hakiri_dagster.pipeline.trace import Untraced
from hakiri_dagster.pipeline.way import Observer, SilentObserver, Way
from hakiri_dagster.planning.arrivals import Stamp
from hakiri_dagster.planning.plan import ProjectPlan, TablePlan
from hakiri_dagster.settings import Settings
from hakiri_dagster.tracing.configuration import parent_of, tracing_of
from hakiri_dagster.tracing.contract import Span, Tracing

WAREHOUSE = "warehouse"
DAGSTER = "dagster"
_EMBEDDED_CONNECTORS = ("postgres", "context")


def embedded_storage_url(server: Server) -> str:
    """Dagster's storage on the embedded server. Its events are a view of the chunk ledger, and are reported again where
    they are missing: so they need not wait for the disk, which costs a third of their time."""
    server.ensure_database(DAGSTER)
    return f"{server.url(DAGSTER)}?options=-csynchronous_commit%3Doff"


def stored_plans(project: Project) -> dict[str, StoredPlan]:
    """By table label; empty before the first plan. Reads the audit DB only, so that loading definitions is quick."""
    with open_audit_view(project.audit_url, project.state_dir) as audit:
        return {f"{pipeline}/{table}": plan for (pipeline, table), plan in audit.tables.plans().items()}


def stored_chunks(project: Project) -> dict[str, int]:
    """How many there are, by table label."""
    with open_audit_view(project.audit_url, project.state_dir) as audit:
        return {f"{pipeline}/{table}": number for (pipeline, table), number in audit.chunks.numbers().items()}


class Runtime:
    """`tick`: how long sources are looked at, where a tick looks; runs and commands take the time they need."""

    def __init__(
        self, project: Project, settings: Settings, observer: Observer | None = None, *, tick: TickTime | None = None
    ) -> None:
        self.project = project
        self._tick = tick
        self.settings = settings
        self.observer = observer or SilentObserver()
        self._opened = ExitStack()
        self._destinations: dict[str, Destination] = {}
        self._command: Span | None = None

    def __enter__(self) -> Runtime:
        return self

    def __exit__(self, *_exc: object) -> None:
        self.close()

    def close(self) -> None:
        tracing: Tracing | None = self.__dict__.get("tracing")
        try:
            if tracing is not None:
                tracing.close()  # before servers are stopped: gRPC complains of forks while it sends
        finally:
            self._opened.close()

    @cached_property
    def server(self) -> Server:
        return self._opened.enter_context(hold(self.project.state_dir / "postgres", project=self.project.name))

    @cached_property
    def audit(self) -> AuditDb:
        return self._opened.enter_context(open_audit(self.project.audit_url, self.project.state_dir))

    @cached_property
    def tracing(self) -> Tracing | None:
        """None, and nothing of it imported, where nobody asked for spans."""
        return tracing_of(self.settings.telemetry)

    def begin_command(self, name: str) -> Span | None:
        """The span in which the runs of this process are, itself in that of whoever started the process."""
        if self.tracing is not None:
            told = {"hakiri.project": self.project.name}
            self._command = self.tracing.root(name, told, within=parent_of(self.settings.telemetry))
        return self._command

    @cached_property
    def dagster_url(self) -> str:
        return self.settings.dagster_url or embedded_storage_url(self.server)

    def source(self, table: Table, run_id: str = "") -> SourceTable:
        if table.streams:
            open_stream(table, self.settings)
        return source_table(table, self._with_url(table.source), self.network(table, run_id))

    def stamps(self, table: Table) -> tuple[Stamp, ...]:
        """The files of a table as they are listed now."""
        source = self.source(table)
        return source.stamps() if isinstance(source, OfFiles) else ()

    def network(self, table: Table, run_id: str) -> Network:
        """What the table's source may reach, and how often."""
        permits = self.permits(table, "requests", run_id)
        if self._tick is not None:
            permits = TimedPermits(permits, self._tick)
        hurried = self._tick is not None
        return Network(self.settings.webhooks_to_loopback, self.settings.webhook_authorities, permits, hurried)

    def target_as_source(self, table: Table, as_text: Sequence[str] = ()) -> SourceTable:
        """The target, to be read as a source is. `as_text`: columns that are read as PostgreSQL writes them."""
        config = {**self._with_url(table.destination), "schema": table.target_schema}
        if as_text:
            config["text_columns"] = list(as_text)
        read = replace(
            table, source=Endpoint("postgres", {}), name=table.target_name, path=None, columns={}, contract="evolve"
        )
        return source_table(read, config)

    def destination(self, table: Table) -> Destination:
        config = self._with_url(table.destination)
        key = f"{table.destination.connector} {sorted(config.items())}"
        if key not in self._destinations:
            opened = open_destination(
                table.destination.connector, config, label=table.label, tenant=self.settings.tenant
            )
            self._opened.callback(opened.close)
            self._destinations[key] = opened
        return self._destinations[key]

    def databases(self, tables: Sequence[Table]) -> tuple[tuple[Destination, tuple[Table, ...]], ...]:
        """The tables by the database that they land in, each opened once."""
        by_url: dict[str, list[Table]] = {}
        for table in tables:
            by_url.setdefault(str(self._with_url(table.destination)["url"]), []).append(table)
        return tuple((self.destination(of_one[0]), tuple(of_one)) for of_one in by_url.values())

    def survey(self, table: Table, spark: SparkProvider | None = None) -> Survey:
        session = spark or self.open_spark
        with garbage_kept():
            try:
                return look(table, self.source(table), self.destination(table), self.audit, session)
            except EngineLost:  # says nothing of the table, and the next one who asks gets a new engine
                return look(table, self.source(table), self.destination(table), self.audit, session)

    @contextmanager
    def looking(self, table: Table) -> Iterator[None]:
        """Around a look of a tick's."""
        if self._tick is not None:
            self._tick.refuse_when_over(table.label)
        with only_look(self.project.state_dir, table):
            yield

    def plan(self, tables: Sequence[Table], *, look_for_gaps: bool = False) -> Planned:
        """Asks every table's source and destination; what cannot be asked is told in the plan."""
        entries: list[TablePlan] = []
        surveys: list[tuple[Table, Survey]] = []
        failures: list[tuple[Table, HakiriError]] = []
        for table in tables:
            try:
                survey = self.survey(table)
                gaps = gaps_of(survey, self.destination(table)) if look_for_gaps else ()
            except StreamRefused as error:
                entries.append(refused_plan(table, error))
                continue
            except HakiriError as error:
                entries.append(failed_plan(table, error))
                failures.append((table, error))
                continue
            with garbage_kept():
                entries.append(table_plan(survey, gaps, tuple(told_gaps(survey, gaps))))
            surveys.append((table, survey))
        ids = {table.pipeline_id for table in tables}
        pipelines = [pipeline for pipeline in self.project.pipelines if pipeline.id in ids]
        limits = tuple(map(limits_of, pipelines))
        plan = ProjectPlan(tuple(entries), limits, self.project.max_parallel_chunks, tuple(map(started_by, pipelines)))
        return Planned(plan, tuple(surveys), tuple(failures))

    def sweep(self) -> None:
        """Candidates of dead attempts take disk for nothing."""
        sweep_dead_attempts(self._candidates)

    def way(
        self,
        table: Table,
        spark: SparkProvider,
        *,
        run_id: str,
        log: Callable[[str], None],
        occasion: str | None = None,
    ) -> Way:
        return Way(
            table=table,
            source=self.source(table, run_id),
            destination=self.destination(table),
            audit=self.audit,
            spark=spark,
            settings=self.settings,
            candidates=self._candidates,
            run_id=run_id,
            holder=str(ProcessIdentity.current()),
            log=log,
            observer=self.observer,
            revive=self.revive,
            occasion=occasion,
            trace=Untraced() if self.tracing is None else RunTrace(self.tracing, self._command),
            max_parallel_chunks=self.project.max_parallel_chunks,
            requests=self.permits(table, "requests", run_id),
            writes=self.permits(table, "writes", run_id),
        )

    def permits(self, table: Table, of: Of, run_id: str = "") -> Permits:
        """Without a run nothing is noted of how many there were, and how long they were waited for."""
        pipeline = self.project.pipeline(table.pipeline_id)
        rate = None if pipeline is None else request_budget(pipeline) if of == "requests" else pipeline.write_budget
        if rate is None:
            return FreePermits()
        address = audit_address(self.project.audit_url, self.project.state_dir)
        shared = partial(SharedPermits, BudgetOf(table.pipeline_id, of), rate, address, User(run_id, table.name))
        if self._tick is None:
            return shared()
        return shared(patience_seconds=HURRIED_SECONDS, longest_wait=HURRIED_SECONDS)

    @property
    def _candidates(self) -> Path:
        chosen = self.settings.candidates_dir
        return Path(chosen) if chosen else self.project.state_dir / "candidates"

    def open_spark(self) -> SparkSession:
        """For text files whose types or extent were never looked at; the session is shared with later loads."""
        return open_session(self.settings, self.project.state_dir)

    def revive(self) -> None:
        """After a lost connection: the embedded server may have been killed."""
        if "server" in self.__dict__:
            self.server.ensure_running()

    def keep_server(self) -> AbstractContextManager[None]:
        """While Dagster writes its events there: it does not ask for a server that was killed."""
        return self.server.kept_running() if "server" in self.__dict__ else nullcontext()

    def _with_url(self, endpoint: Endpoint) -> Mapping[str, Any]:
        if endpoint.connector not in _EMBEDDED_CONNECTORS or endpoint.config.get("url"):
            return endpoint.config
        return {**endpoint.config, "url": self._embedded_url(WAREHOUSE)}

    def _embedded_url(self, database: str) -> str:
        self.server.ensure_database(database)
        return self.server.url(database)
