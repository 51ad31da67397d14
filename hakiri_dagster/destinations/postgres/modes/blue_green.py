"""blue_green: the rows go into a table of their own, which takes the target's place in one moment, with all that the
target had."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass

from psycopg import sql
from typing_extensions import override

from hakiri_dagster.destinations.contract import Target
from hakiri_dagster.destinations.postgres import fence
from hakiri_dagster.destinations.postgres.catalog import Found, find
from hakiri_dagster.destinations.postgres.connection import Connection, relation
from hakiri_dagster.destinations.postgres.copy_parallel import copy_in_parallel
from hakiri_dagster.destinations.postgres.modes.contract import Mode, Staged, Work
from hakiri_dagster.destinations.postgres.modes.empty_source import refuse_empty_source
from hakiri_dagster.destinations.postgres.swap import leftovers, sibling
from hakiri_dagster.destinations.postgres.swap.dependents import OBJECTIONS, orphans
from hakiri_dagster.destinations.postgres.swap.patience import exchanged
from hakiri_dagster.destinations.postgres.swap.portrait import lines, names_in_full
from hakiri_dagster.errors import DestinationError, HakiriError
from hakiri_dagster.manifest.tables import Table


class BlueGreen(Mode):
    clears_target = True
    looks_for_load_ids = False

    @override
    def objections(
        self, connection: Connection, table: Table, found: Found | None, columns: Sequence[str]
    ) -> Sequence[str]:
        if found is None:
            return ()
        with connection.transaction():
            names_in_full(connection)
            reasons = lines(connection, OBJECTIONS, found.oid)
            connection.execute("RESET search_path")
        wrong = [f"blue_green cannot exchange the target: {reason}" for reason in reasons]
        return [*wrong, *_taken(connection, found)]

    @override
    def key(self, table: Table) -> tuple[str, ...]:
        return ()

    @override
    def stage(self, work: Work) -> Staged:
        refuse_empty_source(work)
        new = _make(work)
        staged = _Sibling(work, new, 0, ())
        try:
            place = relation(work.load.target.schema, sibling.sibling_name(work.load.target.name))
            rows = copy_in_parallel(work.connections, work.load, work.blocks, place)
            renames = _complete(work, new)
        except BaseException:
            staged.discard()
            raise
        return _Sibling(work, new, rows, renames)

    @override
    def parallel(self, target: Target) -> bool:
        return False


@dataclass(frozen=True, slots=True)
class _Sibling(Staged):
    """`<table>_new`, with its rows and indexes, committed."""

    work: Work
    new: int
    row_count: int
    renames: tuple[sibling.Rename, ...]

    @property
    @override
    def rows(self) -> int:
        return self.row_count

    @override
    def expose(self) -> None:
        connection, table = self.work.connection, self.work.load.table
        unchecked = exchanged(connection, table.label, self.work.found.oid, self.new, self.renames)
        leftovers.forget_sibling(connection, self.new)
        leftovers.note_unchecked(connection, table, unchecked)

    @override
    def finish(self) -> None:
        """What cannot be checked now is tried again, and told, before the next load."""
        with suppress(HakiriError):
            check_keys(self.work)

    @override
    def discard(self) -> None:
        """Left to the next load where it cannot be done now."""
        with suppress(HakiriError), self.work.connections.transaction(self.work.load.table.label) as connection:
            leftovers.drop_sibling(connection, self.new)


def check_keys(work: Work) -> None:
    table = work.load.table
    with work.connections.transaction(table.label) as connection:
        left = leftovers.unchecked(connection, table)
    for key in left:
        with work.connections.transaction(f"{table.label} ({key.table})") as connection:
            leftovers.check_key(connection, key)


def _taken(connection: Connection, found: Found) -> list[str]:
    """A table of somebody else's that bears the name which ours is to have."""
    name = sibling.sibling_name(found.target.name)
    other = find(connection, found.target.schema, name)
    if other is None or leftovers.is_ours(connection, other.oid):
        return []
    return [f"blue_green loads into {found.target.schema}.{name}, and there is a table of that name; rename it"]


def _make(work: Work) -> int:
    load = work.load
    check_keys(work)
    with work.connections.transaction(load.table.label) as connection:
        fence.name_attempt(connection, load)
        fence.check_fence(connection, load, lock=True)
        leftovers.sweep(connection, load.table)
        new = sibling.make(connection, work.found.oid, load.target.schema, load.target.name)
        leftovers.note_sibling(connection, load.table, new, load.fence.load_id)
    return new


def _complete(work: Work, new: int) -> tuple[sibling.Rename, ...]:
    load = work.load
    with work.connections.transaction(load.table.label) as connection:
        fence.name_attempt(connection, load)
        names_in_full(connection)
        renames = sibling.complete(connection, work.found.oid, new, f"hakiri_{load.fence.load_id}_")
        lost = orphans(connection, work.found.oid, new)
        if lost:
            raise DestinationError(
                f"other tables hold rows that refer to rows which the source no longer has: {'; '.join(lost)}",
                where=load.table.label,
                hint="load or mend those tables first, or use mode upsert, which deletes nothing",
            )
    with work.connections.transaction(load.table.label) as connection:
        fence.name_attempt(connection, load)
        connection.execute(
            sql.SQL("ANALYZE {}").format(relation(load.target.schema, sibling.sibling_name(load.target.name)))
        )
    return tuple(renames)
