"""Makes the target what the load needs, once, even when two processes set out to do it."""

from __future__ import annotations

from dataclasses import replace

from psycopg import errors

from hakiri_dagster.destinations.contract import Target
from hakiri_dagster.destinations.postgres import catalog, ledger, marks, owed_hooks
from hakiri_dagster.destinations.postgres.between_readers import Turn, between_readers
from hakiri_dagster.destinations.postgres.catalog import Found
from hakiri_dagster.destinations.postgres.connection import relation
from hakiri_dagster.destinations.postgres.duplicate_keys import duplicate_keys, not_unique
from hakiri_dagster.destinations.postgres.target_plan import Change, TargetPlanner
from hakiri_dagster.errors import DestinationError
from hakiri_dagster.manifest.tables import Table

_SCHEMAS_LOCK = "SELECT pg_advisory_xact_lock(pg_catalog.hashtextextended('hakiri schemas', 0::bigint))"
_LOCK = """
SELECT pg_advisory_xact_lock(
    pg_catalog.hashtextextended('hakiri target ' || %s::text || '.' || %s::text, 0::bigint))
"""


def target_as_wanted(planner: TargetPlanner) -> Target | None:
    """None if something is to be done before it can be loaded."""
    found = _find(planner)
    changes = _wanted(planner, found)
    if found is None or not all(change.later for change in changes):
        return None
    return _with_types(found.target, changes)


def make_target(planner: TargetPlanner) -> Target:
    found, changes = _alone(planner)
    exclusive = [change for change in changes if change.exclusive]
    if found is not None and 0 < len(exclusive) < len(changes):
        _alter(planner, found, exclusive)
        planner.connection.commit()  # lest readers wait until indexes are built
        found, changes = _alone(planner)
    _alter(planner, found, changes)
    if found is None:
        ledger.forget_target(planner.connection, planner.table)
        marks.forget(planner.connection, planner.table)
        owed_hooks.forget(planner.connection, planner.table)
    made = _find(planner)
    if made is None:
        raise DestinationError("the target was dropped while it was being made", where=planner.table.label)
    return _with_types(made.target, changes)


def _alone(planner: TargetPlanner) -> tuple[Found | None, list[Change]]:
    """What is wanted, while nobody else of us changes the target: until the open transaction ends."""
    if planner.schemas():  # they are shared by tables, so they have a lock of their own, always taken first
        planner.connection.execute(_SCHEMAS_LOCK)
    planner.connection.execute(_LOCK, (planner.table.target_schema, planner.table.target_name))
    found = _find(planner)
    return found, _wanted(planner, found)


def _alter(planner: TargetPlanner, found: Found | None, changes: list[Change]) -> None:
    def work(turn: Turn) -> None:
        if found is not None and any(change.exclusive for change in changes):
            turn.lock_table(found.oid)
        for change in changes:
            _execute(planner, change)

    between_readers(planner.connection, work, where=planner.table.label)


def _with_types(target: Target, changes: list[Change]) -> Target:
    return replace(target, retyped=tuple(change.later for change in changes if change.later))


def _execute(planner: TargetPlanner, change: Change) -> None:
    if change.statement is None:
        return
    if not change.unique:
        planner.connection.execute(change.statement)
        return
    try:
        with planner.connection.transaction():
            planner.connection.execute(change.statement)
    except errors.UniqueViolation as error:
        raise _duplicates(planner, change.unique) from error
    except errors.UndefinedObject as error:
        raise DestinationError(
            f"a column of ({', '.join(change.unique)}) is of a type that PostgreSQL cannot index: "
            f"{error.diag.message_primary}",
            where=_where(planner.table),
            hint="choose another upsert_key, or give the column another type with `columns`",
        ) from error


def _duplicates(planner: TargetPlanner, key: tuple[str, ...]) -> DestinationError:
    table = planner.table
    found = duplicate_keys(planner.connection, relation(table.target_schema, table.target_name), key)
    return DestinationError(
        not_unique(found, key),
        where=_where(table),
        hint="remove the duplicates there, or choose another upsert_key",
    )


def _find(planner: TargetPlanner) -> Found | None:
    return catalog.find(planner.connection, planner.table.target_schema, planner.table.target_name)


def _wanted(planner: TargetPlanner, found: Found | None) -> list[Change]:
    changes = planner.changes(found)
    refused = [change.description for change in changes if change.refused]
    if refused:
        raise _refusal(planner.table, refused)
    return changes


def _refusal(table: Table, refused: list[str]) -> DestinationError:
    return DestinationError("; ".join(refused), where=_where(table))


def _where(table: Table) -> str:
    return f"{table.label} ({table.target_schema}.{table.target_name})"
