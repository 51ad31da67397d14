"""Which chunks runs were asked for, as their tags say."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence

import dagster as dg

from hakiri_dagster.orchestration.names import ALONG_TAG, LEFT_TAG, PARTITION_TAG, RANGE_END_TAG, RANGE_START_TAG
from hakiri_dagster.orchestration.part_partitions import open_windows
from hakiri_dagster.orchestration.partitions import ordered_keys
from hakiri_dagster.planning.chunks import NULL_KEY, OUTSIDE_KEY
from hakiri_dagster.planning.parts import bare_key, part_name


def asked_for(
    runs: Sequence[dg.DagsterRun],
    due: Collection[str],
    partitions: dg.PartitionsDefinition,
    instance: dg.DagsterInstance,
) -> frozenset[str]:
    """Of the chunks that are due: the partitions of the runs, what they loaded along, and what has no partition and
    goes with the last one of its part. What a run has left to somebody else counts as not asked for."""
    ordered = ordered_keys(instance, partitions)
    known, last = set(ordered), open_windows(ordered)
    beside = [key for key in due if bare_key(key) in (NULL_KEY, OUTSIDE_KEY) and key not in known]
    asked: set[str] = set()
    for run in runs:
        of_run = {*_keys(run, known, partitions, instance), *_listed(run, ALONG_TAG)}
        of_run |= {key for key in beside if last.get(part_name(key), ordered[-1] if ordered else None) in of_run}
        asked |= of_run.difference(_listed(run, LEFT_TAG))
    return frozenset(asked.intersection(due))


def _keys(
    run: dg.DagsterRun, known: Collection[str], partitions: dg.PartitionsDefinition, instance: dg.DagsterInstance
) -> Iterator[str]:
    first = run.tags.get(RANGE_START_TAG) or run.tags.get(PARTITION_TAG, "")
    last = run.tags.get(RANGE_END_TAG) or first
    yield from (first, last)
    if first == last:
        return
    if first in known and last in known:
        with dg.partition_loading_context(dynamic_partitions_store=instance):
            yield from partitions.get_partition_keys_in_range(dg.PartitionKeyRange(first, last))
    else:
        yield from _planned(run, instance)


def _planned(run: dg.DagsterRun, instance: dg.DagsterInstance) -> Iterator[str]:
    """As Dagster noted when it made the run: an end of its range is no partition any more, as of a file that was
    written anew."""
    for entry in instance.all_logs(run.run_id, of_type=dg.DagsterEventType.ASSET_MATERIALIZATION_PLANNED):
        if entry.dagster_event is not None:
            planned = entry.dagster_event.asset_materialization_planned_data
            yield from filter(None, [planned.partition])
            if planned.partitions_subset is not None:
                yield from planned.partitions_subset.get_partition_keys()


def _listed(run: dg.DagsterRun, tag: str) -> list[str]:
    return [key for key in run.tags.get(tag, "").split(",") if key]
