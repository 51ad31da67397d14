"""truncate: the target holds what the source holds, and nothing else."""

from __future__ import annotations

from collections.abc import Sequence

from psycopg import sql
from typing_extensions import override

from hakiri_dagster.destinations.contract import Target
from hakiri_dagster.destinations.postgres.between_readers import between_readers
from hakiri_dagster.destinations.postgres.catalog import Found
from hakiri_dagster.destinations.postgres.connection import Connection, relation
from hakiri_dagster.destinations.postgres.modes.contract import InTransaction, Mode, Work
from hakiri_dagster.destinations.postgres.widening import retyping
from hakiri_dagster.manifest.tables import Table


class Truncate(Mode):
    clears_target = True
    looks_for_load_ids = False

    @override
    def objections(
        self, connection: Connection, table: Table, found: Found | None, columns: Sequence[str]
    ) -> Sequence[str]:
        if found is None or not found.referenced_by:
            return ()
        children = ", ".join(f"{child} ({constraint})" for child, constraint in found.referenced_by)
        return (
            f"PostgreSQL refuses to truncate a table that foreign keys refer to: {children}; "
            "use mode blue_green or upsert",
        )

    @override
    def retypes_when_empty(self, found: Found) -> bool:
        return True

    @override
    def stage(self, work: Work) -> InTransaction:
        """The lock that keeps readers out is taken when the first rows are there, not before."""
        target = relation(work.load.target.schema, work.load.target.name)
        between_readers(work.connection, lambda turn: turn.lock_table(work.found.oid), where=work.load.table.label)
        work.connection.execute(sql.SQL("TRUNCATE {}").format(target))
        if work.load.target.retyped:
            work.connection.execute(retyping(target, work.load.target.retyped))
        # frozen rows are seen by snapshots older than this load, which would see an empty table otherwise
        freeze = not work.found.partitioned
        rows = work.blocks.copy_into(work.connection, target, work.load.columns, freeze=freeze)
        work.ask_candidate((work.load.target.schema, work.load.target.name))
        return InTransaction(rows)

    @override
    def parallel(self, target: Target) -> bool:
        return False
