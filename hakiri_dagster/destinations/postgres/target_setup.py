"""Makes the target what the load needs, once, even when two processes set out to do it."""

from __future__ import annotations

from hakiri_dagster.destinations.contract import Target
from hakiri_dagster.destinations.postgres import catalog, ledger
from hakiri_dagster.destinations.postgres.catalog import Found
from hakiri_dagster.destinations.postgres.target_plan import Change, TargetPlanner
from hakiri_dagster.errors import DestinationError
from hakiri_dagster.manifest.tables import Table

_LOCK = "SELECT pg_advisory_xact_lock(hashtextextended('hakiri target ' || %s || '.' || %s, 0))"


def ensure_target(planner: TargetPlanner) -> Target:
    found = _find(planner)
    if not _wanted(planner, found) and found is not None:
        return found.target
    # schemas are shared by tables, so they have a lock of their own, always taken first
    planner.connection.execute("SELECT pg_advisory_xact_lock(hashtextextended('hakiri schemas', 0))")
    planner.connection.execute(_LOCK, (planner.table.target_schema, planner.table.target_name))
    found = _find(planner)
    for change in _wanted(planner, found):
        if change.statement is not None:
            planner.connection.execute(change.statement)
    if found is None:
        ledger.forget_target(planner.connection, planner.table)
    made = _find(planner)
    if made is None:
        raise DestinationError("the target was dropped while it was being made", where=planner.table.label)
    return made.target


def _find(planner: TargetPlanner) -> Found | None:
    return catalog.find(planner.connection, planner.table.target_schema, planner.table.target_name)


def _wanted(planner: TargetPlanner, found: Found | None) -> list[Change]:
    changes = planner.changes(found)
    refused = [change.description for change in changes if change.statement is None]
    if refused:
        raise _refusal(planner.table, refused)
    return changes


def _refusal(table: Table, refused: list[str]) -> DestinationError:
    return DestinationError("; ".join(refused), where=f"{table.label} ({table.target_schema}.{table.target_name})")
