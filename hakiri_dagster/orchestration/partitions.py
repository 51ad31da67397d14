"""Chunks as Dagster partitions. The chunk ledger is the truth; partitions are its view."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime

import dagster as dg

from hakiri_dagster.manifest.tables import Table
from hakiri_dagster.orchestration.names import partitions_name
from hakiri_dagster.planning.chunks import FULL_KEY, NULL_KEY, OUTSIDE_KEY
from hakiri_dagster.planning.windows import CronWindow


def time_partitions(window: CronWindow, start: datetime | None) -> dg.TimeWindowPartitionsDefinition:
    """The open window is a partition too. Before the first plan the start is not known: then only it is there."""
    return dg.TimeWindowPartitionsDefinition(
        start=start or datetime.now(UTC).replace(hour=0, minute=0, second=0, microsecond=0),
        fmt=window.key_format,
        cron_schedule=window.cron_schedule,
        timezone="UTC",
        end_offset=1,
    )


def dynamic_partitions(table: Table) -> dg.DynamicPartitionsDefinition:
    return dg.DynamicPartitionsDefinition(name=partitions_name(table))


def full_partition() -> dg.StaticPartitionsDefinition:
    return dg.StaticPartitionsDefinition([FULL_KEY])


def keyless(chunk_key: str, partitions: dg.PartitionsDefinition) -> bool:
    """A time-window definition has no key for NULL cursors and rows outside the plan: they load with the open window."""
    return chunk_key in (NULL_KEY, OUTSIDE_KEY) and isinstance(partitions, dg.TimeWindowPartitionsDefinition)


def reconcile_dynamic(instance: dg.DagsterInstance, table: Table, chunk_keys: Sequence[str]) -> None:
    """Dagster's keys become those of the plan; keys of an older plan go, their events stay."""
    name = partitions_name(table)
    present = set(instance.get_dynamic_partitions(name))
    missing = [key for key in chunk_keys if key not in present]
    if missing:
        instance.add_dynamic_partitions(name, missing)
    for gone in present.difference(chunk_keys):
        instance.delete_dynamic_partition(name, gone)


def contiguous_ranges(ordered: Sequence[str], wanted: Iterable[str], longest: int) -> list[tuple[str, str, int]]:
    """`(first, last, how many)` for each unbroken run of wanted keys in Dagster's own order, cut at `longest`."""
    chosen = set(wanted)
    ranges: list[tuple[str, str, int]] = []
    unbroken = False
    for key in ordered:
        if key not in chosen:
            unbroken = False
            continue
        if unbroken and ranges[-1][2] < longest:
            first, _, count = ranges[-1]
            ranges[-1] = (first, key, count + 1)
        else:
            ranges.append((key, key, 1))
        unbroken = True
    return ranges
