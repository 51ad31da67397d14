"""Dagster's history of a renamed table: the asset of the new name shows the chunks that the old one has loaded.

Dagster keeps no way to rename an asset. The newest materialization of each partition, and the newest evaluation of each
check, is reported once more under the new key, with its metadata; then the old asset is wiped from the catalog. The
runs stay, with the events that they had.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

import dagster as dg

from hakiri_dagster.manifest.tables import Table
from hakiri_dagster.orchestration.checks import ROWS_SET_ASIDE
from hakiri_dagster.orchestration.dagster_home import opened_instance, psycopg2_url
from hakiri_dagster.orchestration.names import allowed, asset_key, partitions_name
from hakiri_dagster.orchestration.storage import STORAGE_ERRORS, storage_lost
from hakiri_dagster.pipeline.runtime import Runtime
from hakiri_dagster.planning.publishers import Move

_EVENTS_AT_ONCE: Final = 1000


def move_assets(runtime: Runtime, moves: Sequence[Move]) -> tuple[int, ...]:
    """Return of how many chunks each table shows a materialization that it did not show before."""
    project, storage = runtime.project, psycopg2_url(runtime.dagster_url)
    try:
        with runtime.keep_server(), opened_instance(project.root, storage, project.max_parallel_chunks) as instance:
            return tuple(move_asset(instance, move) for move in moves)
    except STORAGE_ERRORS as error:
        raise storage_lost(error, "pipeline rename") from error


def move_asset(instance: dg.DagsterInstance, move: Move) -> int:
    """Killed at any point, it goes on where it stopped: the old asset is wiped when all of it is reported."""
    old, new = dg.AssetKey([move.old_pipeline, allowed(move.old_table)]), asset_key(move.table)
    old_partitions, new_partitions = f"{move.old_pipeline}/{move.old_table}", partitions_name(move.table)
    if old == new or not instance.has_asset_key(old):
        return 0
    keys = instance.get_dynamic_partitions(old_partitions)
    present = set(instance.get_dynamic_partitions(new_partitions))
    if missing := [key for key in keys if key not in present]:
        instance.add_dynamic_partitions(new_partitions, missing)
    reported = _report_materializations(instance, old, new)
    _report_checks(instance, old, new, move.table)
    for key in keys:
        instance.delete_dynamic_partition(old_partitions, key)
    instance.wipe_assets([old])
    return reported


def _report_materializations(instance: dg.DagsterInstance, old: dg.AssetKey, new: dg.AssetKey) -> int:
    """In the order in which they were loaded, so that numbers plot over time as before. Read twice: of a hundred
    thousand chunks only the ids of their newest events are held in memory."""
    shown = instance.get_materialized_partitions(new)
    newest: dict[str, int] = {}
    for record in _materializations(instance, old):
        if record.partition_key is not None and record.partition_key not in shown:
            newest[record.partition_key] = record.storage_id
    for record in _materializations(instance, old):
        event = record.asset_materialization
        if event is None or newest.get(record.partition_key or "") != record.storage_id:
            continue
        instance.report_runless_asset_event(
            dg.AssetMaterialization(
                asset_key=new,
                partition=event.partition,
                description=event.description,
                tags=event.tags,
                metadata={
                    **event.metadata,
                    "renamed_from": dg.MetadataValue.text(old.to_user_string()),
                    "loaded_at": dg.MetadataValue.timestamp(record.timestamp),
                    **({"loaded_by": dg.MetadataValue.dagster_run(record.run_id)} if record.run_id else {}),
                },
            )
        )
    return len(newest)


def _materializations(instance: dg.DagsterInstance, asset: dg.AssetKey) -> Iterator[dg.EventLogRecord]:
    """The oldest first."""
    cursor: str | None = None
    while True:
        found = instance.fetch_materializations(asset, limit=_EVENTS_AT_ONCE, cursor=cursor, ascending=True)
        yield from found.records
        if not found.has_more:
            return
        cursor = found.cursor


def _report_checks(instance: dg.DagsterInstance, old: dg.AssetKey, new: dg.AssetKey, table: Table) -> None:
    for name in (ROWS_SET_ASIDE, *table.validation.check_ids):
        if instance.get_latest_asset_check_evaluation_record(dg.AssetCheckKey(new, name)) is not None:
            continue
        record = instance.get_latest_asset_check_evaluation_record(dg.AssetCheckKey(old, name))
        if record is None or record.event is None or record.event.asset_check_evaluation is None:
            continue
        found = record.event.asset_check_evaluation
        instance.report_runless_asset_event(
            dg.AssetCheckEvaluation(
                asset_key=new,
                check_name=name,
                passed=found.passed,
                severity=found.severity,
                description=found.description,
                metadata=found.metadata,
                partition=found.partition,
            )
        )
