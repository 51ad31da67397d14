"""Chunks as Dagster partitions. The chunk ledger is the truth; partitions are its view."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime

import dagster as dg

from hakiri_dagster.audit.tables import StoredPlan
from hakiri_dagster.connectors.contract import SourceTable
from hakiri_dagster.errors import PlanNotLoaded
from hakiri_dagster.manifest.tables import Table
from hakiri_dagster.orchestration.names import asset_key, partitions_name
from hakiri_dagster.orchestration.part_partitions import event_key, in_parts, windows_of
from hakiri_dagster.pipeline.shapes import shape_of, window_of
from hakiri_dagster.pipeline.survey import Survey
from hakiri_dagster.planning.chunks import FULL_KEY
from hakiri_dagster.planning.generations import parse_plan_text
from hakiri_dagster.planning.parts import bare_key
from hakiri_dagster.planning.windows import CronWindow, from_position, parse_window, to_position


def partitions_of(table: Table, source: SourceTable, plan: StoredPlan | None) -> dg.PartitionsDefinition:
    match shape_of(table, source):
        case "full":
            return full_partition()
        case "files" | "segments":
            return dynamic_partitions(table)
        case "cursor":
            return in_parts(_window_partitions(table, source, plan), source.hint)


def _window_partitions(table: Table, source: SourceTable, plan: StoredPlan | None) -> dg.PartitionsDefinition:
    """What kind the cursor has is known from the first plan on; before it, what the manifest's window suggests."""
    planned = parse_plan_text(plan.text) if plan is not None else None
    declared = window_of(table, source.hint)
    kind = planned[0] if planned is not None else "numeric" if isinstance(declared, int) else "timestamp"
    window = parse_window(declared, kind)
    if window.cron is None:
        return dynamic_partitions(table)
    # Before the first plan the start is not known: then only the open window is there.
    known = plan.start if plan is not None else None
    start = window.start(window.index(to_position(datetime.now(UTC)))) if known is None else known
    return time_partitions(window.cron, from_position(start))


def time_partitions(window: CronWindow, start: datetime) -> dg.TimeWindowPartitionsDefinition:
    """The open window is a partition too."""
    return dg.TimeWindowPartitionsDefinition(
        start=start,
        fmt=window.key_format,
        cron_schedule=window.cron_schedule,
        timezone="UTC",
        end_offset=1,
    )


def dynamic_partitions(table: Table) -> dg.DynamicPartitionsDefinition:
    return dg.DynamicPartitionsDefinition(name=partitions_name(table))


def full_partition() -> dg.StaticPartitionsDefinition:
    return dg.StaticPartitionsDefinition([FULL_KEY])


def ordered_keys(instance: dg.DagsterInstance, partitions: dg.PartitionsDefinition) -> list[str]:
    """Time windows have no key for NULL cursors, rows outside the plan and windows of an earlier cut: what is due of
    those loads with the open window."""
    return list(partitions.get_partition_keys(dynamic_partitions_store=instance))


def require_known(table: Table, partitions: dg.PartitionsDefinition, survey: Survey) -> None:
    """Before the first plan the cursor's kind is a guess. Runs load the project anew, and would not know the keys."""
    if type(windows_of(partitions)) is not type(windows_of(partitions_of(table, survey.source, survey.stored_plan))):
        raise PlanNotLoaded(
            "Dagster has loaded this project before the table was first planned, and took its cursor for another kind",
            where=table.label,
            hint="`hakiri serve` does so by itself within a minute; elsewhere reload the code location in Dagster's UI,"
            " under Deployment",
        )


def reconcile(instance: dg.DagsterInstance, table: Table, partitions: dg.PartitionsDefinition, survey: Survey) -> None:
    """Dagster's keys become those of the plan; what is published and does not show as done is reported."""
    if isinstance(windows_of(partitions), dg.DynamicPartitionsDefinition):
        keys = [*(chunk.key for chunk in survey.chunks), *survey.due_keys]
        if isinstance(partitions, dg.MultiPartitionsDefinition):
            keys = sorted(map(bare_key, keys))
        _reconcile_keys(instance, table, list(dict.fromkeys(keys)))
    _report_published(instance, table, partitions, survey)


def _report_published(
    instance: dg.DagsterInstance, table: Table, partitions: dg.PartitionsDefinition, survey: Survey
) -> None:
    """The chunk ledger is the truth."""
    for key in not_shown(instance, table, partitions, survey):
        instance.report_runless_asset_event(
            dg.AssetMaterialization(
                asset_key=asset_key(table),
                partition=event_key(partitions, key),
                metadata={"reported": dg.MetadataValue.text("published earlier, as the chunk ledger says")},
            )
        )


def not_shown(
    instance: dg.DagsterInstance, table: Table, partitions: dg.PartitionsDefinition, survey: Survey
) -> tuple[str, ...]:
    """Chunks that are published, and that Dagster was never told of, or whose events somebody wiped."""
    owed = set(survey.due_keys)
    shown = instance.get_materialized_partitions(asset_key(table))
    unseen = [chunk.key for chunk in survey.due.done if chunk.key not in shown and chunk.key not in owed]
    keys = set(ordered_keys(instance, partitions)) if unseen else set()
    return tuple(key for key in unseen if key in keys)


def _reconcile_keys(instance: dg.DagsterInstance, table: Table, chunk_keys: Sequence[str]) -> None:
    name = partitions_name(table)
    present = set(instance.get_dynamic_partitions(name))
    missing = [key for key in chunk_keys if key not in present]
    if missing:
        instance.add_dynamic_partitions(name, missing)
    for gone in present.difference(chunk_keys):
        instance.delete_dynamic_partition(name, gone)
