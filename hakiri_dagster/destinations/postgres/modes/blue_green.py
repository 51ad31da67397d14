"""blue_green: the rows go into a table of their own, which takes the target's place in one moment, with all that the
target had."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass

from psycopg import sql
from typing_extensions import override

from hakiri_dagster.destinations.contract import Target
from hakiri_dagster.destinations.hooks_contract import Relation
from hakiri_dagster.destinations.postgres import fence
from hakiri_dagster.destinations.postgres.catalog import Found, find
from hakiri_dagster.destinations.postgres.connection import Connection, relation
from hakiri_dagster.destinations.postgres.copy_parallel import copy_in_parallel
from hakiri_dagster.destinations.postgres.modes.contract import Mode, Staged, Work
from hakiri_dagster.destinations.postgres.swap import leftovers, publications, sibling
from hakiri_dagster.destinations.postgres.swap.cautions import cautions
from hakiri_dagster.destinations.postgres.swap.completion import Successors, complete
from hakiri_dagster.destinations.postgres.swap.dependents import orphans
from hakiri_dagster.destinations.postgres.swap.foreign_keys import add_foreign_keys
from hakiri_dagster.destinations.postgres.swap.matviews import build_materialized_views
from hakiri_dagster.destinations.postgres.swap.objections import objections
from hakiri_dagster.destinations.postgres.swap.partitions import family
from hakiri_dagster.destinations.postgres.swap.patience import exchanged
from hakiri_dagster.destinations.postgres.swap.portrait import Portrait, names_in_full, portrait
from hakiri_dagster.destinations.postgres.swap.relations import Pair, place_of, run, run_all
from hakiri_dagster.destinations.postgres.swap.unfinished import check_keys
from hakiri_dagster.destinations.postgres.widening import retyping
from hakiri_dagster.errors import DestinationError, HakiriError
from hakiri_dagster.manifest.tables import Table


class BlueGreen(Mode):
    clears_target = True
    locks_target_in_expose = True
    looks_for_load_ids = False

    @override
    def objections(
        self, connection: Connection, table: Table, found: Found | None, columns: Sequence[str]
    ) -> Sequence[str]:
        if found is None:
            return ()
        with _in_full(connection):
            reasons = objections(connection, found.oid)
        wrong = [f"blue_green cannot exchange the target: {reason}" for reason in reasons]
        return [*wrong, *_taken(connection, found)]

    @override
    def cautions(self, connection: Connection, found: Found) -> Sequence[str]:
        schema, name = found.target.schema, found.target.name
        target, new = f"{schema}.{name}", f"{schema}.{sibling.sibling_name(name)}"
        with _in_full(connection):
            noticed = cautions(connection, found.oid, target)
        return [*noticed, *publications.cautions(connection, found.oid, target, new)]

    @override
    def retypes_when_empty(self, found: Found) -> bool:
        """PostgreSQL does not empty alone what foreign keys refer to."""
        return not found.referenced_by

    @override
    def stage(self, work: Work) -> Staged:
        at_first, new = _make(work)
        try:
            place = relation(work.load.target.schema, sibling.sibling_name(work.load.target.name))
            rows = copy_in_parallel(work.connections, work.load, work.blocks, place, new[0].new)
            work.ask_committed_candidate((work.load.target.schema, sibling.sibling_name(work.load.target.name)))
            return _Siblings(work, rows, _complete(work, new), at_first)
        except BaseException:
            _discard(work)
            raise

    @override
    def parallel(self, target: Target) -> bool:
        return False


@dataclass(frozen=True, slots=True)
class _Siblings(Staged):
    """`<table>_new` and the materialized views on it, with rows and indexes, committed."""

    work: Work
    row_count: int
    successors: Successors
    at_first: Portrait

    @property
    @override
    def rows(self) -> int:
        return self.row_count

    @property
    @override
    def place(self) -> Relation | None:
        target = self.work.load.target
        return target.schema, sibling.sibling_name(target.name)

    @override
    def expose(self) -> None:
        connection, load = self.work.connection, self.work.load
        unchecked = exchanged(connection, load.table.label, self.successors, self.at_first, reshape=self._reshape_old)
        leftovers.forget_siblings(connection, load.fence.load_id)
        leftovers.note_unchecked(connection, load.table, unchecked)

    def _reshape_old(self) -> None:
        """Its rows are about to go anyway; without them, another type costs nothing."""
        target = self.work.load.target
        if target.retyped:
            old = relation(target.schema, target.name)
            self.work.connection.execute(sql.SQL("TRUNCATE {}").format(old))
            self.work.connection.execute(retyping(old, target.retyped))

    @override
    def finish(self) -> None:
        check_keys(self.work.connections, self.work.load.table)

    @override
    def discard(self) -> None:
        _discard(self.work)


@contextmanager
def _in_full(connection: Connection) -> Iterator[None]:
    """In a transaction that goes on afterwards with the search path of others."""
    with connection.transaction():
        names_in_full(connection)
        yield
        connection.execute("RESET search_path")


def _discard(work: Work) -> None:
    """Left to the next load where it cannot be done now."""
    with suppress(HakiriError), work.connections.transaction(work.load.table.label) as connection:
        leftovers.drop_siblings(connection, work.load.fence.load_id)


def _taken(connection: Connection, found: Found) -> list[str]:
    """A table of somebody else's that bears the name which ours is to have."""
    name = sibling.sibling_name(found.target.name)
    other = find(connection, found.target.schema, name)
    if other is None or leftovers.is_ours(connection, other.oid):
        return []
    return [f"blue_green loads into {found.target.schema}.{name}, and there is a table of that name; rename it"]


def _make(work: Work) -> tuple[Portrait, tuple[Pair, ...]]:
    """Partitions go with their table. The portrait is of the target."""
    load = work.load
    with work.connections.transaction(load.table.label) as connection:
        fence.name_attempt(connection, load)
        fence.check_fence(connection, load, lock=True)
        names_in_full(connection)
        leftovers.sweep(connection, load.table)  # whoever made it, the name is needed
        at_first = portrait(connection, family(connection, work.found.oid))
        tables = sibling.make(connection, work.found.oid, load.target.schema, load.target.name, _prefix(work))
        if load.target.retyped:
            place = relation(load.target.schema, sibling.sibling_name(load.target.name))
            connection.execute(retyping(place, load.target.retyped))
        leftovers.note_siblings(connection, load.table, [tables[0].new], load.fence.load_id)
    return at_first, tables


def _complete(work: Work, tables: Sequence[Pair]) -> Successors:
    """What depends on others comes first."""
    with _building(work) as connection:
        ready = complete(connection, tables, _prefix(work))
        checks = add_foreign_keys(connection, tables)
    with _building(work) as connection:
        run_all(connection, checks)
        _refuse_orphans(connection, work, tables)
        views = build_materialized_views(connection, tables, _prefix(work))
        new_views = [view.new for view in views.pairs]
        leftovers.note_siblings(connection, work.load.table, new_views, work.load.fence.load_id)
    with _building(work) as connection:
        for pair in (*views.pairs, tables[0]):
            run(connection, f"ANALYZE {place_of(connection, pair.new)[1]}")
    return views + ready


@contextmanager
def _building(work: Work) -> Iterator[Connection]:
    """What nobody waits for, and nobody sees, may be committed step by step."""
    with work.connections.transaction(work.load.table.label) as connection:
        fence.name_attempt(connection, work.load)
        names_in_full(connection)
        yield connection


def _prefix(work: Work) -> str:
    """Of provisional names."""
    return f"hakiri_{work.load.fence.load_id}_"


def _refuse_orphans(connection: Connection, work: Work, tables: Sequence[Pair]) -> None:
    lost = orphans(connection, tables)
    if lost:
        raise DestinationError(
            f"other tables hold rows that refer to rows which the source no longer has: {'; '.join(lost)}",
            where=work.load.table.label,
            hint="load or mend those tables first, or use mode upsert, which deletes nothing",
        )
