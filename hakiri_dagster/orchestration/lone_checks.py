"""Checks that somebody executes alone: they are asked of the target as it is, and nothing is loaded."""

from __future__ import annotations

import dagster as dg

from hakiri_dagster.manifest.tables import Table
from hakiri_dagster.orchestration.checks import (
    ROWS_SET_ASIDE,
    evaluation_of,
    evaluation_of_quarantine,
    partitions_of_checks,
)
from hakiri_dagster.orchestration.partitions import ordered_keys
from hakiri_dagster.orchestration.resources import OpenProject
from hakiri_dagster.orchestration.verify_events import verification_results
from hakiri_dagster.pipeline.live_checks import LiveTable, live_outcomes, rows_in_quarantine


def verify_alone(
    context: dg.AssetExecutionContext, table: Table, project: OpenProject, partitions: dg.PartitionsDefinition
) -> None:
    """Compare the table with its source. A chunk's result shows on its partition."""
    known = set(ordered_keys(context.instance, partitions)) if partitions_of_checks(partitions) is not None else set()
    for result in verification_results(*project.verify(table), known):
        context.log_event(result)


def check_alone(context: dg.AssetExecutionContext, live: LiveTable) -> None:
    """They are about all rows: whatever partition somebody had in mind, none of it is evaluated anew."""
    names = {key.name for key in context.selected_asset_check_keys}
    if ROWS_SET_ASIDE in names:
        context.log_event(evaluation_of_quarantine(live.table, rows_in_quarantine(live)))
    for outcome in live_outcomes(live, names):
        context.log_event(evaluation_of(live.table, outcome))
