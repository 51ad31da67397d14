"""A job a pipeline, for the UI's launchpad. Dagster wants one partitioning a job, so mixed pipelines get several."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import dagster as dg

from hakiri_dagster.manifest.tables import Pipeline
from hakiri_dagster.orchestration.checks import MATCHES_SOURCE
from hakiri_dagster.orchestration.names import PIPELINE_TAG, asset_key, group_name

EVERY_ASSET_JOB = "__ASSET_JOB"
"""Dagster's own job over all assets: the only one whose runs may mix partitionings; schedules launch through it."""


def _selection(pipeline: Pipeline, keys: Sequence[dg.AssetKey]) -> dg.AssetSelection:
    """Without the comparison with the source, which loads do not evaluate."""
    compared = [table for table in pipeline.tables if table.verify is not None and asset_key(table) in keys]
    selection = dg.AssetSelection.assets(*keys)
    if not compared:
        return selection
    return selection - dg.AssetSelection.checks(*(dg.AssetCheckKey(asset_key(t), MATCHES_SOURCE) for t in compared))


def pipeline_jobs(
    pipeline: Pipeline, partitions: Mapping[str, dg.PartitionsDefinition]
) -> list[dg.UnresolvedAssetJobDefinition]:
    groups: list[tuple[dg.PartitionsDefinition, list[dg.AssetKey], str]] = []
    for table in pipeline.tables:
        definition = partitions[table.label]
        group = next((keys for known, keys, _ in groups if known == definition), None)
        if group is None:
            groups.append((definition, [asset_key(table)], asset_key(table).path[-1]))
        else:
            group.append(asset_key(table))
    base = f"{group_name(pipeline.id)}_pipeline"  # job and op names share one namespace
    names = [base] if len(groups) == 1 else [f"{base}__{first.replace('-', '_')}" for _, _, first in groups]
    return [
        dg.define_asset_job(
            name,
            selection=_selection(pipeline, keys),
            description=pipeline.description,
            tags={**pipeline.tags, PIPELINE_TAG: pipeline.id},
        )
        for name, (_, keys, _) in zip(names, groups, strict=True)
    ]
