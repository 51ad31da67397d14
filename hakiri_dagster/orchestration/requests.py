"""Due chunks as Dagster runs: unbroken ranges of partitions, so that one run reads many chunks in one pass."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import dagster as dg

from hakiri_dagster.manifest.tables import Table
from hakiri_dagster.orchestration.assets import chunks_per_run
from hakiri_dagster.orchestration.checks import checks_of_loads
from hakiri_dagster.orchestration.names import (
    ALONG_TAG,
    DUE_ONLY_TAG,
    OCCASION_TAG,
    PARTITION_TAG,
    PHASE_TAG,
    RANGE_END_TAG,
    RANGE_START_TAG,
    TABLE_TAG,
    asset_key,
)
from hakiri_dagster.orchestration.part_partitions import open_windows, ranges_of
from hakiri_dagster.orchestration.partitions import ordered_keys
from hakiri_dagster.pipeline.survey import Survey
from hakiri_dagster.planning.chunks import NULL_KEY, OUTSIDE_KEY
from hakiri_dagster.planning.parts import bare_key, part_name
from hakiri_dagster.planning.phases import Phase


@dataclass(frozen=True, slots=True)
class ChunkRange:
    """Partitions that one run covers, and chunks that it is to load beside them."""

    table: Table
    first: str
    last: str
    count: int
    along: tuple[str, ...] = ()

    def tags(self) -> dict[str, str]:
        tags = {DUE_ONLY_TAG: "true", TABLE_TAG: self.table.label}
        if self.along:
            tags[ALONG_TAG] = ",".join(self.along)
        if self.first != self.last:
            tags |= {RANGE_START_TAG: self.first, RANGE_END_TAG: self.last}
        return tags

    @property
    def partition_key(self) -> str | None:
        return self.first if self.first == self.last else None

    def run_request(
        self, occasion: str, phase: Phase, within: str = "", also: Mapping[str, str] | None = None
    ) -> dg.RunRequest:
        """A schedule's tick may have only one run of each key, a sensor one in all its time: `within` tells its ticks
        apart. `also`: tags that whoever asks knows its runs by."""
        return dg.RunRequest(
            run_key=f"{within} {self.table.label} {self.first}".lstrip(),
            asset_selection=[asset_key(self.table)],
            asset_check_keys=checks_of_loads(self.table),
            partition_key=self.partition_key,
            tags=self.tags() | {OCCASION_TAG: occasion, PHASE_TAG: phase} | dict(also or {}),
        )


def of_a_sensor(request: dg.RunRequest) -> dg.RunRequest:
    """Without a key: a sensor's is taken only once, however much later. The partition's tag is what Dagster would add
    itself, if it asked its storage for the dynamic partitions of sensors."""
    partition = {} if request.partition_key is None else {PARTITION_TAG: request.partition_key}
    return request._replace(run_key=None, tags={**request.tags, **partition})


def chunk_ranges(
    table: Table, partitions: dg.PartitionsDefinition, due: Sequence[str], instance: dg.DagsterInstance
) -> list[ChunkRange]:
    """What has no partition is loaded with the open window, which is the last one of its part."""
    ordered = ordered_keys(instance, partitions)
    known = set(ordered)
    keys = {key for key in due if key in known}
    last = open_windows(ordered)
    keys |= {last.get(part_name(key), ordered[-1]) for key in due if key not in known}
    return [ChunkRange(table, *found) for found in ranges_of(partitions, ordered, keys, chunks_per_run(len(ordered)))]


def range_for_hooks(
    table: Table, partitions: dg.PartitionsDefinition, survey: Survey, instance: dg.DagsterInstance
) -> list[ChunkRange]:
    """Where nothing is due but hooks are owed, a run of the last partition finds nothing to load, and runs them."""
    ordered = ordered_keys(instance, partitions)
    if survey.due_keys or not survey.owed_hooks or not ordered:
        return []
    return [ChunkRange(table, ordered[-1], ordered[-1], 1)]


def tick_ranges(
    table: Table,
    partitions: dg.PartitionsDefinition,
    survey: Survey,
    taken: Sequence[str],
    instance: dg.DagsterInstance,
) -> list[ChunkRange]:
    """What one tick dispatches, of chunks that are due."""
    if not survey.due_keys:
        return range_for_hooks(table, partitions, survey, instance)
    if not taken:
        return []
    at_most = table.backfill.max_chunks_per_tick
    ordered = ordered_keys(instance, partitions)
    known, last = set(ordered), open_windows(ordered)
    unseen = [key for key in taken if key not in known and bare_key(key) not in (NULL_KEY, OUTSIDE_KEY)]
    beside = {last.get(part_name(key), ordered[-1]) for key in unseen}.difference(taken).intersection(survey.due_keys)
    if beside:
        unseen = unseen[: max(1, at_most - len(beside))]  # the windows that bring them are themselves loaded
    ranges = chunk_ranges(table, partitions, taken, instance)
    return [*ranges[:-1], replace(ranges[-1], along=tuple(unseen))] if unseen else ranges
