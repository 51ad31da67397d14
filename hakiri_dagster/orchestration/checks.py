"""Asset checks. The specs and the results of a table come from here, so they cannot differ."""

from __future__ import annotations

import dagster as dg

from hakiri_dagster.manifest.tables import Table
from hakiri_dagster.orchestration.names import asset_key
from hakiri_dagster.pipeline.steps import PreparedChunk

ROWS_SET_ASIDE = "no_rows_set_aside"


def check_specs(table: Table, partitions: dg.PartitionsDefinition) -> list[dg.AssetCheckSpec]:
    return [
        dg.AssetCheckSpec(
            ROWS_SET_ASIDE,
            asset=asset_key(table),
            partitions_def=partitions,
            description="Every row that was read can be stored. Rows that cannot are kept in the quarantine table "
            f"{table.quarantine_place}, with the reason.",
        )
    ]


def evaluations(chunk: PreparedChunk, partition: str | None) -> list[dg.AssetCheckEvaluation]:
    metadata = {
        "rows": dg.MetadataValue.int(chunk.rows),
        "rows_set_aside": dg.MetadataValue.int(chunk.quarantined),
        "quarantine_table": dg.MetadataValue.text(chunk.table.quarantine_place),
    }
    if chunk.bad_sample:
        metadata["first_reason"] = dg.MetadataValue.text(chunk.bad_sample)
    return [
        dg.AssetCheckEvaluation(
            asset_key=asset_key(chunk.table),
            check_name=ROWS_SET_ASIDE,
            passed=chunk.quarantined == 0,
            metadata=metadata,
            severity=dg.AssetCheckSeverity.WARN,
            partition=partition,
        )
    ]
