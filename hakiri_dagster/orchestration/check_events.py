"""What the checks of a run say, partition by partition.

Chunks that have no partition of their own are told with the run's last. Its checks speak of all of them at once, so
that none hides what another met.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping

import dagster as dg

# no public name for it, and without it the UI takes no check for an answer about what is there
from dagster._core.definitions.asset_checks.asset_check_evaluation import (
    AssetCheckEvaluationTargetMaterializationData as Target,
)

from hakiri_dagster.manifest.tables import Table
from hakiri_dagster.orchestration.checks import evaluations
from hakiri_dagster.orchestration.names import asset_key
from hakiri_dagster.pipeline.steps import FailedChunk, PublishedChunk


class CheckEvents:
    """`along`: the partition of chunks that have none. `partitioned`: checks have partitions, as the asset has."""

    def __init__(self, table: Table, partitions: Collection[str], *, along: str, partitioned: bool) -> None:
        self._table = table
        self._partitions = partitions
        self._along = along
        self._partitioned = partitioned
        self._known: dict[tuple[str, str], Mapping[str, dg.AssetCheckEvaluation]] = {}
        """By partition and check, and by chunk."""

    def told(
        self, chunk: PublishedChunk | FailedChunk, instance: dg.DagsterInstance
    ) -> Iterator[dg.AssetCheckEvaluation]:
        """What is to be logged, after the chunk's materialization. A chunk without a partition that passes has nothing
        to add."""
        own = chunk.key in self._partitions
        partition = chunk.key if own else self._along
        found = [one for one in evaluations(self._table, chunk) if own or not one.passed]
        target = _latest(instance, self._table, partition) if found else None
        told_of = partition if self._partitioned else None
        for evaluation in found:
            place = partition, evaluation.check_name
            self._known[place] = {**self._known.get(place, {}), chunk.key: evaluation}
            yield _together(self._known[place], partition, told_of=told_of, target=target)

    def at_end(self) -> Iterator[dg.AssetCheckEvaluation]:
        """The UI sums a check up by the run's last partition, which may have passed where another did not. One of no
        partition comes after all of them."""
        last: dict[str, dg.AssetCheckEvaluation] = {}
        for (partition, check), known in self._known.items():
            together = _together(known, partition, told_of=None, target=None)
            if self._partitioned and not together.passed:
                last[check] = together
        yield from last.values()


def _latest(instance: dg.DagsterInstance, table: Table, partition: str) -> Target | None:
    """The materialization that checks of the partition speak of: of others the UI says that a check is missing."""
    of_partition = dg.AssetRecordsFilter(asset_key=asset_key(table), asset_partitions=[partition])
    latest = next(iter(instance.fetch_materializations(of_partition, limit=1).records), None)
    return (
        None
        if latest is None
        else Target(storage_id=latest.storage_id, run_id=latest.run_id, timestamp=latest.timestamp)
    )


def _together(
    known: Mapping[str, dg.AssetCheckEvaluation], own: str, *, told_of: str | None, target: Target | None
) -> dg.AssetCheckEvaluation:
    """Only the numbers of the partition's `own` chunk go by their own names, under which they plot over time."""
    metadata = {
        name if chunk == own else f"{chunk}/{name}": value
        for chunk, evaluation in known.items()
        for name, value in evaluation.metadata.items()
    }
    first = next(iter(known.values()))
    stops = any(not one.passed and one.severity is dg.AssetCheckSeverity.ERROR for one in known.values())
    return dg.AssetCheckEvaluation(
        asset_key=first.asset_key,
        check_name=first.check_name,
        passed=all(one.passed for one in known.values()),
        metadata=metadata,
        severity=dg.AssetCheckSeverity.ERROR if stops else dg.AssetCheckSeverity.WARN,
        partition=told_of,
        target_materialization_data=target,
    )
