"""Whether a table may publish to its target: whose rows are there, and whether a rename is unfinished."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from hakiri_dagster.audit.database import AuditDb
from hakiri_dagster.connectors.contract import SourceTable
from hakiri_dagster.destinations.contract import Destination
from hakiri_dagster.errors import DestinationError
from hakiri_dagster.manifest.tables import Table
from hakiri_dagster.planning.publishers import (
    RENAME_COMMAND,
    ProjectClaim,
    Publisher,
    identity_of,
    published_by,
    refuse_publisher,
)


@dataclass(frozen=True, slots=True)
class Ownership:
    """`claim` is what a load records in the destination. `adopted` are publishers whose loads the table takes over
    before it loads anything itself."""

    claim: ProjectClaim | None = None
    adopted: tuple[Publisher, ...] = ()
    refusals: tuple[str, ...] = ()


def find_ownership(table: Table, source: SourceTable, destination: Destination, audit: AuditDb) -> Ownership:
    unfinished = tuple(_unfinished_renames(table, audit))
    ours = identity_of(table, source.lineage)
    if ours is None:
        return Ownership(refusals=unfinished)
    found = destination.publishers(table, ours)
    known = audit.runs.known(one.newest_run for one in found.doubtful if one.newest_run is not None)
    judged = [(publisher, published_by(table, publisher, ours, known)) for publisher in found.doubtful]
    foreign = [(publisher, by) for publisher, by in judged if by in ("an undeclared table", "another project")]
    claim = ProjectClaim(ours, found.recorded, found.has_rows_of(table))
    has_own = found.has_own or len(foreign) > 1
    if table.load.adopt and not (has_own and foreign):
        return Ownership(claim, tuple(publisher for publisher, _ in foreign), unfinished)
    refused = (refuse_publisher(table, publisher, by, ours, has_own=has_own) for publisher, by in foreign)
    return Ownership(claim, (), (*unfinished, *refused))


def _unfinished_renames(table: Table, audit: AuditDb) -> Iterator[str]:
    for rename in audit.renames.unfinished():
        if rename.concerns(table.pipeline_id, table.name):
            yield (
                f"the rename of {rename.old} to {rename.new} was begun and is not finished, so nothing is loaded; "
                f"run `{RENAME_COMMAND} {rename.old} {rename.new}` again"
            )


def adopt_published(table: Table, destination: Destination, ownership: Ownership) -> None:
    """Make the published chunks of others the table's own. The audit DB learns of them from the ledger."""
    if ownership.claim is None:
        raise DestinationError("no manifest declares the table, so it adopts nothing", where=table.label)
    destination.adopt(table, ownership.adopted, ownership.claim)
