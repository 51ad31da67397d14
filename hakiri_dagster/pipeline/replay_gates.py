"""What validators say of the table as a replay would leave it. Those of scope `candidate` speak of loads of the source,
of which rows out of the quarantine are none: they are not asked."""

from __future__ import annotations

from hakiri_dagster.destinations.contract import PreparedLoad
from hakiri_dagster.manifest.tables import Table
from hakiri_dagster.manifest.validator_spec import DatasetValidator, scope_of
from hakiri_dagster.pipeline.outcomes import of_validator
from hakiri_dagster.pipeline.row_refusals import refused_by_gates
from hakiri_dagster.pipeline.way import Way
from hakiri_dagster.quality.validators.registry import Asked


def asked_of_table(table: Table) -> Asked:
    return Asked.by(_validators(table))


def raise_if_a_gate_stops(way: Way, key: str, prepared: PreparedLoad) -> None:
    """Tells of those that only warn, whatever the gates say."""
    outcomes = [of_validator(one, prepared.answers.of_table) for one in _validators(way.table)]
    for outcome in outcomes:
        if outcome.warning is not None:
            way.observer.warned(way.table, f"chunk {key}: {outcome.warning}")
    refused = refused_by_gates(way.table, outcomes)
    if refused is not None:
        raise refused


def _validators(table: Table) -> tuple[DatasetValidator, ...]:
    return tuple(one for one in table.validation.dataset_level.validators if scope_of(one) == "table")
