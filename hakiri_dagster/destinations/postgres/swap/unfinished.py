"""What exchanges that did not come to their end have left, made good by the next load, whatever its mode is by then."""

from __future__ import annotations

from contextlib import suppress

from hakiri_dagster.destinations.contract import Load
from hakiri_dagster.destinations.postgres import fence
from hakiri_dagster.destinations.postgres.connection import Connection, Connections
from hakiri_dagster.destinations.postgres.swap import leftovers
from hakiri_dagster.destinations.postgres.swap.exchange import ChildKey
from hakiri_dagster.errors import HakiriError
from hakiri_dagster.manifest.tables import Table


def make_good(connections: Connections, connection: Connection, load: Load) -> None:
    """Asked on the load's own connection; what there is to do is committed on others, lest its locks last."""
    for load_id in leftovers.abandoned(connection, load.table):
        with connections.transaction(load.table.label) as other:
            fence.name_attempt(other, load)
            fence.check_fence(other, load, lock=True)
            leftovers.drop_siblings(other, load_id)
    if leftovers.unchecked(connection, load.table):
        check_keys(connections, load.table)


def check_keys(connections: Connections, table: Table) -> None:
    """What cannot be checked now is told after the load, and tried again by the next, whose rows may mend it."""
    left: list[ChildKey] = []
    with suppress(HakiriError), connections.transaction(table.label) as connection:
        left = leftovers.unchecked(connection, table)
    for key in left:
        with suppress(HakiriError), connections.transaction(f"{table.label} ({key.table})") as connection:
            leftovers.check_key(connection, key)
