"""Due chunks as Dagster runs: unbroken ranges of partitions, so that one run reads many chunks in one pass."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import dagster as dg

from hakiri_dagster.manifest.tables import Table
from hakiri_dagster.orchestration.assets import CHUNKS_PER_RUN
from hakiri_dagster.orchestration.names import DUE_ONLY_TAG, asset_key
from hakiri_dagster.orchestration.partitions import contiguous_ranges, ordered_keys

RANGE_START_TAG = "dagster/asset_partition_range_start"
RANGE_END_TAG = "dagster/asset_partition_range_end"


@dataclass(frozen=True, slots=True)
class ChunkRange:
    """Partitions that one run covers."""

    table: Table
    first: str
    last: str
    count: int

    def tags(self) -> dict[str, str]:
        tags = {DUE_ONLY_TAG: "true"}
        if self.first != self.last:
            tags |= {RANGE_START_TAG: self.first, RANGE_END_TAG: self.last}
        return tags

    @property
    def partition_key(self) -> str | None:
        return self.first if self.first == self.last else None

    def run_request(self, run_key: str | None = None) -> dg.RunRequest:
        return dg.RunRequest(
            run_key=run_key,
            asset_selection=[asset_key(self.table)],
            partition_key=self.partition_key,
            tags=self.tags(),
        )


def chunk_ranges(
    table: Table,
    partitions: dg.PartitionsDefinition,
    due: Sequence[str],
    instance: dg.DagsterInstance,
    at_most: int | None = None,
) -> list[ChunkRange]:
    ordered = ordered_keys(instance, partitions)
    known = set(ordered)
    keys = [key for key in due if key in known]
    if len(keys) < len(due) and ordered[-1] not in keys:
        keys.append(ordered[-1])
    wanted = keys if at_most is None else keys[:at_most]
    return [ChunkRange(table, *found) for found in contiguous_ranges(ordered, wanted, CHUNKS_PER_RUN)]
