"""Asset checks: one for each row rule, and one of our own. The specs and the results of a table come from here, so they
cannot differ."""

from __future__ import annotations

from collections.abc import Iterator

import dagster as dg

from hakiri_dagster.manifest.rule_spec import RowRule, id_of
from hakiri_dagster.manifest.tables import Table
from hakiri_dagster.orchestration.names import asset_key
from hakiri_dagster.pipeline.rule_outcomes import RuleOutcome
from hakiri_dagster.pipeline.steps import FailedChunk, PreparedChunk
from hakiri_dagster.quality.row_rules import shown

ROWS_SET_ASIDE = "no_rows_set_aside"

_ON_FAIL = {
    "abort": "A row that breaks it stops the publish of its chunk.",
    "skip": "A row that breaks it is set aside.",
    "warn": "A row that breaks it is loaded, and kept in the quarantine table as well.",
}


def check_specs(table: Table, partitions: dg.PartitionsDefinition) -> list[dg.AssetCheckSpec]:
    stored = dg.AssetCheckSpec(
        ROWS_SET_ASIDE,
        asset=asset_key(table),
        partitions_def=partitions,
        description="Every row that was read passes the rules and can be stored. Rows that do not are kept in the "
        f"quarantine table {table.quarantine_place}, with the reason.",
    )
    return [stored, *(_rule_spec(table, rule, partitions) for rule in table.validation.row_level)]


def _rule_spec(table: Table, rule: RowRule, partitions: dg.PartitionsDefinition) -> dg.AssetCheckSpec:
    return dg.AssetCheckSpec(
        id_of(rule),
        asset=asset_key(table),
        partitions_def=partitions,
        description=f"{shown(rule)}. {_ON_FAIL[rule.on_fail]}",
        blocking=rule.on_fail == "abort",
    )


def evaluations(
    table: Table, chunk: PreparedChunk | FailedChunk, partition: str | None
) -> Iterator[dg.AssetCheckEvaluation]:
    """Of a chunk that failed, what is known of it by then."""
    if isinstance(chunk, PreparedChunk):
        yield _set_aside(table, chunk, partition)
    for outcome in chunk.outcomes:
        yield _of_rule(table, outcome, partition)


def _set_aside(table: Table, chunk: PreparedChunk, partition: str | None) -> dg.AssetCheckEvaluation:
    metadata = {
        "rows": dg.MetadataValue.int(chunk.rows),
        "rows_set_aside": dg.MetadataValue.int(chunk.quarantined),
        "quarantine_table": dg.MetadataValue.text(table.quarantine_place),
    }
    if chunk.bad_sample:
        metadata["first_reason"] = dg.MetadataValue.text(chunk.bad_sample)
    return dg.AssetCheckEvaluation(
        asset_key=asset_key(table),
        check_name=ROWS_SET_ASIDE,
        passed=chunk.quarantined == 0,
        metadata=metadata,
        severity=dg.AssetCheckSeverity.WARN,
        partition=partition,
    )


def _of_rule(table: Table, outcome: RuleOutcome, partition: str | None) -> dg.AssetCheckEvaluation:
    return dg.AssetCheckEvaluation(
        asset_key=asset_key(table),
        check_name=id_of(outcome.rule),
        passed=outcome.passed,
        metadata={
            "expected": dg.MetadataValue.text(shown(outcome.rule)),
            "observed": dg.MetadataValue.text(f"{outcome.broken} of {outcome.rows} row(s) break it"),
            "violations": dg.MetadataValue.int(outcome.broken),
            "rows": dg.MetadataValue.int(outcome.rows),
            "quarantine_table": dg.MetadataValue.text(table.quarantine_place),
        },
        severity=dg.AssetCheckSeverity.ERROR if outcome.stops else dg.AssetCheckSeverity.WARN,
        partition=partition,
    )
