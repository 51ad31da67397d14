"""What others may notice of an exchange."""

from __future__ import annotations

from collections.abc import Iterator

from hakiri_dagster.destinations.postgres.connection import Connection
from hakiri_dagster.destinations.postgres.swap.dependents import PARENTS
from hakiri_dagster.destinations.postgres.swap.partitions import family
from hakiri_dagster.destinations.postgres.swap.portrait import about

_LOCKED_BY_WHO_MAY_MAINTAIN = 170_000


def cautions(connection: Connection, oid: int, target: str) -> list[str]:
    return list(_of_parents(connection, oid, target))


def _of_parents(connection: Connection, oid: int, target: str) -> Iterator[str]:
    """What may not be locked beforehand is waited for in the midst of the exchange."""
    right = "MAINTAIN" if connection.info.server_version >= _LOCKED_BY_WHO_MAY_MAINTAIN else "UPDATE"
    role = connection.execute("SELECT quote_ident(current_user)").fetchone()
    assert role is not None
    for parent, may_lock in connection.execute(about(PARENTS, *family(connection, oid))).fetchall():
        if not may_lock:
            yield (
                f"table {parent}, to which {target} refers by a foreign key: {role[0]} may not lock it, so in an"
                f" exchange readers of {target} may wait for its readers; GRANT {right} ON TABLE {parent} TO {role[0]}"
            )
