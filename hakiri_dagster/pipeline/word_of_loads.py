"""What the audit DB and the destination's ledger say of a table's loads, so that neither is older than the other."""

from __future__ import annotations

from hakiri_dagster.audit.database import AuditDb
from hakiri_dagster.destinations.contract import Destination, LedgerEntry, Target
from hakiri_dagster.manifest.tables import Table
from hakiri_dagster.planning.repair import published_since, relied_on
from hakiri_dagster.planning.states import ChunkState


def word_of_loads(
    table: Table, destination: Destination, audit: AuditDb
) -> tuple[tuple[ChunkState, ...], Target | None, tuple[LedgerEntry, ...]]:
    """Target and ledger after the audit DB: what that has as done is there by then, whoever is at work meanwhile.

    What was claimed and published in between is read again, for the ledger alone does not tell what the source said
    then, and the chunk would be owed once more. Where the audit DB knows no more of it than before, it was lost.
    """
    stored = audit.chunks.states(table.pipeline_id, table.name)
    while True:
        target = destination.describe(table)
        ledger = tuple(destination.ledger(table, relied_on(stored))) if target is not None else ()
        missed = published_since(stored, ledger)
        if not missed:
            return stored, target, ledger
        again = audit.chunks.states(table.pipeline_id, table.name)
        if {state for state in again if state.key in missed} <= set(stored):
            return stored, target, ledger
        stored = again
