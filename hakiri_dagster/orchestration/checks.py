"""Asset checks: one for each row rule and validator, and one of our own. The specs and the results of a table come from
here, so they cannot differ."""

from __future__ import annotations

from collections.abc import Iterator

import dagster as dg

from hakiri_dagster.manifest import validator_spec
from hakiri_dagster.manifest.rule_spec import RowRule, id_of
from hakiri_dagster.manifest.tables import Table
from hakiri_dagster.manifest.validator_spec import DatasetValidator, scope_of
from hakiri_dagster.orchestration.names import asset_key
from hakiri_dagster.pipeline.outcomes import Outcome
from hakiri_dagster.pipeline.set_aside import SetAside
from hakiri_dagster.pipeline.steps import FailedChunk, PublishedChunk
from hakiri_dagster.quality.row_rules import shown
from hakiri_dagster.quality.validators import registry

ROWS_SET_ASIDE = "no_rows_set_aside"
MATCHES_SOURCE = "matches_source"

_ON_FAIL = {
    "abort": "A row that breaks it stops the publish of its chunk.",
    "skip": "A row that breaks it is set aside.",
    "warn": "A row that breaks nothing else is loaded, and kept in the quarantine table as well.",
}


def partitions_of_checks(partitions: dg.PartitionsDefinition) -> dg.PartitionsDefinition | None:
    """None where there is only the whole table: the UI executes a check alone if it has no partitions."""
    return None if isinstance(partitions, dg.StaticPartitionsDefinition) else partitions


def check_specs(table: Table, partitions: dg.PartitionsDefinition | None) -> list[dg.AssetCheckSpec]:
    stored = dg.AssetCheckSpec(
        ROWS_SET_ASIDE,
        asset=asset_key(table),
        partitions_def=partitions,
        description="Every row that was read passes the rules and can be stored. Rows that do not are kept in the "
        f"quarantine table {table.quarantine_place}, with the reason.",
    )
    validation = table.validation
    return [
        stored,
        *([_verify_spec(table, partitions)] if table.verify is not None else []),
        *(_rule_spec(table, rule, partitions) for rule in validation.row_level),
        *(_validator_spec(table, validator, partitions) for validator in validation.dataset_level.validators),
    ]


def checks_of_loads(table: Table) -> list[dg.AssetCheckKey] | None:
    """The checks that a load evaluates, where those are not all that the table has. Dagster would show one that a run
    has planned and not evaluated as skipped, in the place of its last result."""
    if table.verify is None:
        return None
    return [dg.AssetCheckKey(asset_key(table), name) for name in (ROWS_SET_ASIDE, *table.validation.check_ids)]


def _verify_spec(table: Table, partitions: dg.PartitionsDefinition | None) -> dg.AssetCheckSpec:
    return dg.AssetCheckSpec(
        MATCHES_SOURCE,
        asset=asset_key(table),
        partitions_def=partitions,
        description="The target holds the rows that the source holds, as far as they are loaded. It is compared "
        f"{'by values' if table.verify is not None and table.verify.digest else 'by count'} on a schedule of its own, "
        "and not by loads.",
    )


def _rule_spec(table: Table, rule: RowRule, partitions: dg.PartitionsDefinition | None) -> dg.AssetCheckSpec:
    return dg.AssetCheckSpec(
        id_of(rule),
        asset=asset_key(table),
        partitions_def=partitions,
        description=f"{shown(rule)}. {_ON_FAIL[rule.on_fail]}",
        blocking=rule.on_fail == "abort",
    )


def _validator_spec(
    table: Table, validator: DatasetValidator, partitions: dg.PartitionsDefinition | None
) -> dg.AssetCheckSpec:
    asked = "Asked of the rows of each load" if scope_of(validator) == "candidate" else "Asked of the whole table"
    consequence = (
        "if it fails, nothing is published" if validator.on_fail == "abort" else "if it fails, a warning tells"
    )
    return dg.AssetCheckSpec(
        validator_spec.id_of(validator),
        asset=asset_key(table),
        partitions_def=partitions,
        description=f"{registry.shown(validator)}. {asked}; {consequence}.",
        blocking=validator.on_fail == "abort",
    )


def evaluations(table: Table, chunk: PublishedChunk | FailedChunk) -> Iterator[dg.AssetCheckEvaluation]:
    """Of a chunk that failed, what is known of it by then. Of no partition yet."""
    if chunk.aside is not None:
        yield _set_aside(table, chunk.aside)
    for outcome in chunk.outcomes:
        yield evaluation_of(table, outcome)


def _set_aside(table: Table, aside: SetAside) -> dg.AssetCheckEvaluation:
    metadata = {
        "rows": dg.MetadataValue.int(aside.of - aside.rows),
        "rows_set_aside": dg.MetadataValue.int(aside.rows),
        "quarantine_table": dg.MetadataValue.text(table.quarantine_place),
    }
    if aside.first:
        metadata["first_reason"] = dg.MetadataValue.text(aside.first)
    return dg.AssetCheckEvaluation(
        asset_key=asset_key(table),
        check_name=ROWS_SET_ASIDE,
        passed=aside.rows == 0,
        metadata=metadata,
        severity=dg.AssetCheckSeverity.WARN,
    )


def evaluation_of_quarantine(table: Table, rows: int) -> dg.AssetCheckEvaluation:
    """Of all that was ever set aside and neither replayed nor purged."""
    metadata = {
        "rows_set_aside": dg.MetadataValue.int(rows),
        "quarantine_table": dg.MetadataValue.text(table.quarantine_place),
    }
    return dg.AssetCheckEvaluation(
        asset_key=asset_key(table),
        check_name=ROWS_SET_ASIDE,
        passed=rows == 0,
        metadata=metadata,
        severity=dg.AssetCheckSeverity.WARN,
    )


def evaluation_of(table: Table, outcome: Outcome) -> dg.AssetCheckEvaluation:
    kept = {"quarantine_table": dg.MetadataValue.text(table.quarantine_place)} if outcome.keeps_rows else {}
    return dg.AssetCheckEvaluation(
        asset_key=asset_key(table),
        check_name=outcome.check,
        passed=outcome.passed,
        metadata={
            "expected": dg.MetadataValue.text(outcome.expected),
            "observed": dg.MetadataValue.text(outcome.observed),
            **{name: _number(value) for name, value in outcome.numbers.items()},
            **kept,
        },
        severity=dg.AssetCheckSeverity.ERROR if outcome.stops else dg.AssetCheckSeverity.WARN,
    )


def _number(value: float) -> dg.MetadataValue:
    return dg.MetadataValue.int(value) if isinstance(value, int) else dg.MetadataValue.float(value)
