"""Loads of a target keep restores of it out, and a restore keeps loads out, until the transaction ends."""

from __future__ import annotations

from hakiri_dagster.destinations.contract import Load
from hakiri_dagster.destinations.postgres.catalog import target_of
from hakiri_dagster.destinations.postgres.connection import Connection, Connections
from hakiri_dagster.destinations.postgres.swap.leftovers import drop_siblings
from hakiri_dagster.manifest.tables import Table

RESTORE_KEY = "restore"
"""Among a table's chunks there is none of this key."""

_VOID_CLAIMS = "UPDATE hakiri.fence SET token = token + 1 WHERE target = %s AND chunk_key <> %s"

_LEFT = """
SELECT DISTINCT load_id FROM hakiri.sibling JOIN hakiri.fence USING (target, load_id)
WHERE target = %s AND chunk_key = %s
"""


def keep_loads_out(connection: Connection, table: Table) -> bool:
    """False while there is one."""
    target = target_of(table)
    row = connection.execute(
        "SELECT pg_try_advisory_xact_lock(pg_catalog.hashtextextended(%s, 0::bigint))", (_rows_of(target),)
    ).fetchone()
    return row == (True,)


def void_claims(connection: Connection, table: Table) -> None:
    """For attempts that have begun to read, and not to load: they would put their rows over what is here now."""
    connection.execute(_VOID_CLAIMS, (target_of(table), RESTORE_KEY))


def keep_restores_out(connections: Connections, connection: Connection, load: Load) -> None:
    """Waits for one that is under way. Of one that was killed, takes away what it left."""
    target = target_of(load.table)
    connection.execute(
        "SELECT pg_advisory_xact_lock_shared(pg_catalog.hashtextextended(%s, 0::bigint))", (_rows_of(target),)
    )
    for (load_id,) in connection.execute(_LEFT, (target, RESTORE_KEY)).fetchall():
        with connections.transaction(load.table.label) as other:
            drop_siblings(other, load_id)


def _rows_of(target: str) -> str:
    return f"hakiri rows of {target}"
