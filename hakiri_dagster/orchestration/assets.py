"""One table of a manifest → one partitioned asset. The body turns what a chunk run reports into Dagster's events."""

# No `from __future__ import annotations` here: Dagster reads the annotations of decorated functions.
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import assert_never

import dagster as dg
from dagster_pyspark import LazyPySparkResource

from hakiri_dagster.audit.alerts import Alert
from hakiri_dagster.errors import HakiriError
from hakiri_dagster.manifest.tables import Table
from hakiri_dagster.orchestration.check_events import CheckEvents
from hakiri_dagster.orchestration.checks import MATCHES_SOURCE, check_specs, partitions_of_checks
from hakiri_dagster.orchestration.earlier_tries import earlier_tries
from hakiri_dagster.orchestration.events import (
    Metadata,
    definition_metadata,
    hook_lines,
    hook_metadata,
    observation,
    progress_metadata,
    published_metadata,
    trace_metadata,
)
from hakiri_dagster.orchestration.freshness import freshness_policy
from hakiri_dagster.orchestration.io_managers import LoadIOManager
from hakiri_dagster.orchestration.lone_checks import check_alone, verify_alone
from hakiri_dagster.orchestration.names import (
    ALONG_TAG,
    DELIVERIES_TAG,
    DUE_ONLY_TAG,
    LEFT_TAG,
    asset_key,
    group_name,
    op_name,
    partitions_name,
    pool_name,
)
from hakiri_dagster.orchestration.part_partitions import event_key, open_windows
from hakiri_dagster.orchestration.partitions import ordered_keys
from hakiri_dagster.orchestration.profile_events import LOAD
from hakiri_dagster.orchestration.resources import OpenProject
from hakiri_dagster.pipeline.alerts import RaisedAlert
from hakiri_dagster.pipeline.chunk_run import Step, run_chunks
from hakiri_dagster.pipeline.hooks_run import HookRun
from hakiri_dagster.pipeline.steps import FailedChunk, PreparedChunk, PublishedChunk, SkippedChunk
from hakiri_dagster.pipeline.told_progress import RunProgress
from hakiri_dagster.pipeline.trace import Trace
from hakiri_dagster.pipeline.wanted import Wanted
from hakiri_dagster.planning.segments import is_segment

OUTPUT = "rows"

_FEWEST_CHUNKS = 100
_MOST_RUNS = 50


def chunks_per_run(partitions: int) -> int:
    """Each run starts a process and plans its whole table. With as many chunks in each, however many a table has, that
    would cost more for each chunk the more there are."""
    return max(_FEWEST_CHUNKS, -(-partitions // _MOST_RUNS))


def table_asset(
    table: Table, partitions: dg.PartitionsDefinition, upstream: dg.AssetKey, root: Path, chunks: int = 0
) -> dg.AssetsDefinition:
    """`chunks`: about how many the table has, as far as is known."""
    specs = check_specs(table, partitions_of_checks(partitions))

    @dg.multi_asset(
        name=op_name(table),
        outs={
            OUTPUT: dg.AssetOut(
                key=asset_key(table),
                is_required=False,
                io_manager_key="loads",
                description=table.description,
                group_name=group_name(table.pipeline_id),
                kinds={"spark", table.source.known_as, table.destination.connector},
                owners=list(table.owners),
                tags=dict(table.tags),
                metadata=definition_metadata(table, root),
                freshness_policy=freshness_policy(table),
            )
        },
        partitions_def=partitions,
        backfill_policy=dg.BackfillPolicy.multi_run(chunks_per_run(chunks)),
        check_specs=specs,
        can_subset=True,  # so that a check can be executed alone
        deps=[upstream],
        pool=pool_name(table),
    )
    def load(
        context: dg.AssetExecutionContext,
        project: dg.ResourceParam[OpenProject],
        spark: LazyPySparkResource,
        loads: dg.ResourceParam[LoadIOManager],
    ) -> Iterator[dg.Output[object]]:
        if context.selected_asset_keys:
            way = project.way(table, spark, context)
            run = _RunEvents(context, table, partitions, loads, way.trace, project.progress(way))
            with closing(run_chunks(way, run.wanted())) as steps:  # also where an event cannot be told
                yield from run.events(steps)
            run.sum_checks_up()
            run.fail_if_anything_failed()
        else:
            names = {key.name for key in context.selected_asset_check_keys}
            if MATCHES_SOURCE in names:
                verify_alone(context, table, project, partitions)
            if names != {MATCHES_SOURCE}:
                check_alone(context, project.live_table(table, spark, context))
        for spec in specs:
            if spec.key in context.selected_asset_check_keys:
                yield dg.Output(None, output_name=spec.get_python_identifier())

    return load


class _RunEvents:
    """What one Dagster run tells of the chunks of one table."""

    def __init__(
        self,
        context: dg.AssetExecutionContext,
        table: Table,
        partitions: dg.PartitionsDefinition,
        loads: LoadIOManager,
        trace: Trace,
        progress: RunProgress,
    ) -> None:
        self._context = context
        self._trace = trace
        self._progress = progress
        self._table = table
        ordered = ordered_keys(context.instance, partitions)
        self._partitions = set(ordered)
        self._dagsters = partitions
        self._open_windows = open_windows(ordered)
        self._loads = loads
        self._keys = list(context.partition_keys)
        checks_have_partitions = partitions_of_checks(partitions) is not None
        self._checks = CheckEvents(table, self._partitions, along=self._keys[-1], partitioned=checks_have_partitions)
        self._failed: list[FailedChunk] = []
        self._failed_hook: HakiriError | None = None
        self._left: list[str] = []

    def wanted(self) -> Wanted:
        tags = self._context.run.tags
        along = tags[ALONG_TAG].split(",") if ALONG_TAG in tags else []
        earlier = earlier_tries(self._context.instance, self._context.run)
        return Wanted(
            keys=(*self._keys, *along),
            due_only=DUE_ONLY_TAG in tags and not earlier.repeats,
            partitions=frozenset(self._partitions),
            open_windows=frozenset(part for part, last in self._open_windows.items() if last in self._keys),
            published_by=earlier.run_ids,
        )

    def events(self, steps: Iterator[Step]) -> Iterator[dg.Output[object]]:
        for step in steps:
            match step:
                case PreparedChunk():
                    yield from self._publish(step)
                case SkippedChunk():
                    self._skipped(step)
                case FailedChunk():
                    self._note_failure(step)
                case RaisedAlert():
                    self._observe(step.alert)
                case HookRun():
                    self._hook_ran(step)
                case _:
                    assert_never(step)

    def _publish(self, chunk: PreparedChunk) -> Iterator[dg.Output[object]]:
        self._know_segment(chunk.key)
        has_partition = chunk.key in self._partitions
        partition = chunk.key if has_partition else self._keys[-1]
        for ran in chunk.hooks:
            self._hook_ran(ran)
        published = self._loads.publish(chunk)
        if isinstance(published, FailedChunk):
            self._note_failure(published)
            return
        metadata = {
            **published_metadata(chunk, published),
            **progress_metadata(self._progress.after_a_publish()),
            **trace_metadata(self._trace.trace_id),
        }
        if not has_partition:
            self._came_along(partition, metadata)
        elif self._keys == [chunk.key]:
            yield dg.Output(published.entry, output_name=OUTPUT, metadata=metadata)
        else:
            self._materialized(partition, metadata)
        self._checked(published)

    def _know_segment(self, key: str) -> None:
        """Planned within the run, where the one before has ended: Dagster has not heard of it."""
        if is_segment(key) and key not in self._partitions:
            self._context.instance.add_dynamic_partitions(partitions_name(self._table), [key])
            self._partitions.add(key)

    def _checked(self, chunk: PublishedChunk | FailedChunk) -> None:
        for evaluation in self._checks.told(chunk, self._context.instance):
            self._context.log_event(evaluation)

    def sum_checks_up(self) -> None:
        for evaluation in self._checks.at_end():
            self._context.log_event(evaluation)

    def _came_along(self, partition: str, metadata: Metadata) -> None:
        """Told with the run's last partition, whose own rows and numbers it must not stand for."""
        told = {
            "rows" if name == "dagster/row_count" else name: value
            for name, value in metadata.items()
            if not name.startswith(f"{LOAD}/")
        }
        self._context.log_event(
            dg.AssetObservation(
                asset_key=asset_key(self._table), partition=event_key(self._dagsters, partition), metadata=told
            )
        )

    def _skipped(self, step: SkippedChunk) -> None:
        """A chunk that is published already still shows as done; a busy one is left to the run that holds it."""
        self._context.log.info(f"chunk {step.key} of {self._table.label}: {step.reason}")
        if step.published and step.key in self._partitions:
            self._materialized(step.key, {"skipped": dg.MetadataValue.text(step.reason)})
        if step.held and DELIVERIES_TAG in self._context.run.tags:
            self._left.append(step.key)
            self._context.instance.add_run_tags(self._context.run.run_id, {LEFT_TAG: ",".join(self._left)})

    def _observe(self, alert: Alert) -> None:
        self._context.log.warning(f"{self._table.label}: {alert.message}")
        self._context.log_event(observation(self._table, alert))

    def _materialized(self, partition: str, metadata: Metadata) -> None:
        self._context.log_event(
            dg.AssetMaterialization(
                asset_key=asset_key(self._table), partition=event_key(self._dagsters, partition), metadata=metadata
            )
        )

    def _note_failure(self, chunk: FailedChunk) -> None:
        self._context.log.error(f"chunk {chunk.key} of {self._table.label} failed: {chunk.error}")
        self._checked(chunk)
        self._failed.append(chunk)

    def _hook_ran(self, ran: HookRun) -> None:
        for line in hook_lines(ran, self._table):
            self._context.log.log("INFO" if ran.error is None else "WARNING" if ran.warns else "ERROR", line)
        self._context.log_event(
            dg.AssetObservation(asset_key=asset_key(self._table), partition=self._keys[-1], metadata=hook_metadata(ran))
        )
        if ran.error is not None and not ran.warns:
            self._failed_hook = ran.error

    def fail_if_anything_failed(self) -> None:
        if self._failed_hook is not None and not self._failed:
            raise dg.Failure(
                description=str(self._failed_hook),
                metadata={
                    "error_kind": dg.MetadataValue.text(self._failed_hook.kind),
                    **trace_metadata(self._trace.trace_id),
                },
                allow_retries=False,
            )
        if not self._failed:
            return
        first = self._failed[0]
        names = ", ".join(step.key for step in self._failed)
        raise dg.Failure(
            description=f"{self._table.label}: {len(self._failed)} chunk(s) failed: {names}. {first.error}",
            metadata={
                "failed_chunks": dg.MetadataValue.text(names),
                "error": dg.MetadataValue.text(str(first.error)),
                "error_kind": dg.MetadataValue.text(first.error_kind),
                **trace_metadata(self._trace.trace_id),
            },
            allow_retries=False,
        )
