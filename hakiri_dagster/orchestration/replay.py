"""Replays of quarantines. They load no chunk, so they are no runs of its asset: what becomes of a chunk's rows is told
of its partition as an observation, beside the materialization that stands."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import assert_never
from uuid import uuid4

import dagster as dg

from hakiri_dagster.destinations.quarantine_contract import KeptChoice
from hakiri_dagster.manifest.tables import Table
from hakiri_dagster.orchestration.dagster_home import opened_instance, psycopg2_url
from hakiri_dagster.orchestration.events import Metadata, hook_metadata
from hakiri_dagster.orchestration.names import asset_key
from hakiri_dagster.orchestration.partitions import ordered_keys, partitions_of
from hakiri_dagster.orchestration.storage import STORAGE_ERRORS, storage_lost
from hakiri_dagster.pipeline.hooks_run import HookRun
from hakiri_dagster.pipeline.replay import ReplayStep, replay
from hakiri_dagster.pipeline.replay_verdicts import ReplayedChunk
from hakiri_dagster.pipeline.runtime import Runtime
from hakiri_dagster.planning.replays import KeptOfLoad, LeftAlone


class Replayer:
    def __init__(self, runtime: Runtime, instance: dg.DagsterInstance) -> None:
        self._runtime = runtime
        self._instance = instance
        self._occasion = str(uuid4())

    def replay(self, table: Table, choice: KeptChoice, kept: Sequence[KeptOfLoad]) -> Iterator[ReplayStep]:
        runtime, run_id = self._runtime, f"replay-{uuid4()}"
        way = runtime.way(table, runtime.open_spark, run_id=run_id, log=lambda _text: None, occasion=self._occasion)
        partitions: frozenset[str] | None = None
        for step in replay(way, choice, kept):
            try:
                if isinstance(step, ReplayedChunk) and partitions is None:
                    partitions = self._partitions(table)
                self._observe(table, run_id, step, partitions or frozenset())
            except STORAGE_ERRORS as error:  # what is published stays so
                runtime.observer.warned(table, str(storage_lost(error, table.label)))
            yield step

    def _observe(self, table: Table, run_id: str, step: ReplayStep, partitions: frozenset[str]) -> None:
        """Rows without a cursor and chunks of an earlier plan have no partition."""
        match step:
            case ReplayedChunk() if step.error is None:
                partition = step.key if step.key in partitions else None
                told = _observation(table, _numbers(step, run_id), partition)
            case HookRun():
                told = _observation(table, hook_metadata(step), None)
            case ReplayedChunk() | LeftAlone():
                return
            case _:
                assert_never(step)
        self._instance.report_runless_asset_event(told)

    def _partitions(self, table: Table) -> frozenset[str]:
        plan = self._runtime.audit.tables.plans().get((table.pipeline_id, table.name))
        return frozenset(ordered_keys(self._instance, partitions_of(table, self._runtime.source(table), plan)))


@contextmanager
def opened_replayer(runtime: Runtime) -> Iterator[Replayer]:
    project, storage = runtime.project, psycopg2_url(runtime.dagster_url)
    with runtime.keep_server(), opened_instance(project.root, storage, project.max_parallel_chunks) as instance:
        yield Replayer(runtime, instance)


def _observation(table: Table, metadata: Metadata, partition: str | None) -> dg.AssetObservation:
    return dg.AssetObservation(asset_key=asset_key(table), partition=partition, metadata=metadata)


def _numbers(chunk: ReplayedChunk, run_id: str) -> Metadata:
    told: dict[str, dg.MetadataValue] = {
        "chunk": dg.MetadataValue.text(chunk.key),
        "rows_replayed": dg.MetadataValue.int(chunk.replayed),
        "rows_still_held": dg.MetadataValue.int(sum(chunk.held.values())),
        "rows_left_alone": dg.MetadataValue.int(sum(chunk.left.values())),
        "rows_overtaken": dg.MetadataValue.int(chunk.overtaken),
        "held_by_rule": dg.MetadataValue.json(dict(chunk.held)),
        "replay": dg.MetadataValue.text(run_id),
        "seconds": dg.MetadataValue.float(round(chunk.seconds, 3)),
    }
    if chunk.load_id is not None:
        told["load_id"] = dg.MetadataValue.int(chunk.load_id)
    return told
