"""The exchange of tables, in the open transaction: all that refers to the ones by their names or identities refers to
the others afterwards, and the ones are gone. Whatever is not as it was before makes the exchange fail."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from psycopg import errors

from hakiri_dagster.destinations.postgres.between_readers import Turn
from hakiri_dagster.destinations.postgres.connection import Connection
from hakiri_dagster.destinations.postgres.swap.belongings import BELONGINGS
from hakiri_dagster.destinations.postgres.swap.completion import Successors
from hakiri_dagster.destinations.postgres.swap.dependents import CHILD_KEYS, MADE_ANEW, PARENTS, RELATIONS
from hakiri_dagster.destinations.postgres.swap.grants import REVOKES
from hakiri_dagster.destinations.postgres.swap.partitions import family
from hakiri_dagster.destinations.postgres.swap.portrait import (
    Portrait,
    about,
    differences,
    lines,
    not_kept,
    portrait,
)
from hakiri_dagster.destinations.postgres.swap.relations import Pair, of_each, run, run_all
from hakiri_dagster.destinations.postgres.swap.sequences import go_on
from hakiri_dagster.errors import DestinationError, DestinationUnavailable

_NAMES = """
SELECT oid::bigint, oid::regclass::text, quote_ident(relname), relkind::text, quote_ident(pg_get_userbyid(relowner))
FROM pg_class WHERE oid = ANY({oids})
"""


@dataclass(frozen=True, slots=True)
class ChildKey:
    """A foreign key of another table that was put on again and has not been checked yet."""

    table: str
    constraint: str


@dataclass(frozen=True, slots=True)
class _Named:
    place: str
    name: str
    kind: str
    owner: str


def lock_against_changes(connection: Connection, pairs: Sequence[Pair]) -> None:
    """Keeps out who would define the tables anew, or vacuum them; neither readers nor writers."""
    named = _named(connection, [pair.old for pair in pairs])
    tables = [named[pair.old].place for pair in pairs if pair.kind == "TABLE"]
    run(connection, f"LOCK TABLE {_only(tables)} IN SHARE UPDATE EXCLUSIVE MODE")


def lock_parents(turn: Turn, pairs: Sequence[Pair]) -> None:
    """Lest the drop of the old tables wait for them, and all readers of the tables for the drop."""
    olds, _ = of_each(pairs)
    for place, may_lock in turn.connection.execute(about(PARENTS, *olds)).fetchall():
        if may_lock:
            turn.lock(_locking_table(place).encode())


def lock(turn: Turn, pairs: Sequence[Pair]) -> None:
    """What leads to a relation before it: whoever comes by it holds that already, and waits for the relation. So those
    that depend on others come first among the pairs, and a table before its partitions."""
    olds, _ = of_each(pairs)
    for name, kind, owner in turn.connection.execute(about(RELATIONS, *olds)).fetchall():
        turn.lock(_locking(name, kind, owner).encode())
    named = _named(turn.connection, olds)
    for pair in pairs:
        it = named[pair.old]
        turn.lock(_locking(it.place, it.kind, it.owner).encode())


def exchange(connection: Connection, successors: Successors, at_first: Portrait) -> list[ChildKey]:
    """All is locked; what depends on others comes first. Answers what is to be checked when nobody waits any more.

    `at_first` shows the tables as they were when their successors were made."""
    olds, news = of_each(successors.pairs)
    _refuse_other_partitions(connection, successors.pairs)
    before = portrait(connection, olds)
    anew = [line for query in MADE_ANEW.values() for line in lines(connection, query, *olds)]
    children = connection.execute(about(CHILD_KEYS, *olds)).fetchall()
    run_all(connection, [f"ALTER TABLE {child} DROP CONSTRAINT {constraint}" for child, constraint, *_ in children])
    _rename_all(connection, successors.pairs)
    run_all(connection, anew)
    run_all(connection, before["sequences"])  # lest they go with the tables that they still belong to
    go_on(connection, successors.sequences)
    _drop(connection, successors.pairs)
    _give(connection, successors, before)
    unchecked = [_put_on(connection, *child) for child in children]
    _refuse_difference(at_first, before, portrait(connection, news))
    return [key for key in unchecked if key is not None]


def _refuse_other_partitions(connection: Connection, pairs: Sequence[Pair]) -> None:
    tables = [pair.old for pair in pairs if pair.kind == "TABLE"]
    differing = set(tables).symmetric_difference(family(connection, tables[0]))
    if differing:
        places = [named.place for named in _named(connection, list(differing)).values()]
        raise _changed_meanwhile(f"partitions came or went: {', '.join(sorted(places))}")


def _drop(connection: Connection, pairs: Sequence[Pair]) -> None:
    named = _named(connection, [pair.old for pair in pairs])
    try:
        run_all(connection, [f"DROP {pair.kind} {named[pair.old].place}" for pair in pairs if not pair.partition])
    except errors.DependentObjectsStillExist as error:
        raise _changed_meanwhile(error.diag.message_detail or str(error)) from error


def _give(connection: Connection, successors: Successors, before: Portrait) -> None:
    _, news = of_each(successors.pairs)
    final = [f"ALTER {r.kind} {r.schema}.{r.provisional} RENAME TO {r.final}" for r in successors.renames]
    run_all(connection, final)
    run_all(connection, lines(connection, REVOKES, *news))
    run_all(connection, [line for name in BELONGINGS for line in before[name]])


def _refuse_difference(at_first: Portrait, before: Portrait, after: Portrait) -> None:
    """What nobody changed meanwhile would be so at each try, all of which copy all rows."""
    lost = not_kept(at_first, before, after)
    if lost:
        raise DestinationError(
            f"the exchange does not keep what the target has, so nothing was exchanged: {'; '.join(lost)}",
            hint="load it with another mode, or take that off the target",
        )
    wrong = differences(before, after)
    if wrong:
        raise _changed_meanwhile("; ".join(wrong))


def _changed_meanwhile(what: str) -> DestinationUnavailable:
    return DestinationUnavailable(
        f"the target is not as it was before the load, so nothing was exchanged: {what}",
        hint="if somebody has changed it meanwhile, applying again is enough",
    )


def check(connection: Connection, key: ChildKey) -> None:
    """Keeps nobody out."""
    run(connection, f"ALTER TABLE {key.table} VALIDATE CONSTRAINT {key.constraint}")


def _rename_all(connection: Connection, pairs: Sequence[Pair]) -> None:
    olds, news = of_each(pairs)
    named = _named(connection, [*olds, *news])
    away = [f"ALTER TABLE {named[pair.old].place} RENAME TO hakiri_{pair.old}_old" for pair in pairs]
    run_all(connection, away)
    run_all(connection, [f"ALTER TABLE {named[pair.new].place} RENAME TO {named[pair.old].name}" for pair in pairs])


def _put_on(
    connection: Connection, table: str, constraint: str, definition: str, valid: bool, comment: str | None
) -> ChildKey | None:
    put_off = "" if definition.endswith(" NOT VALID") else " NOT VALID"
    run(connection, f"ALTER TABLE {table} ADD CONSTRAINT {constraint} {definition}{put_off}")
    if comment is not None:
        run(connection, comment)
    return ChildKey(table, constraint) if valid else None


def _locking(name: str, kind: str, owner: str) -> str:
    """Nothing but a table can be locked alone by LOCK; giving something to the owner that it has locks it as well."""
    match kind:
        case "v":
            return f"ALTER VIEW {name} OWNER TO {owner}"
        case "m":
            return f"ALTER MATERIALIZED VIEW {name} OWNER TO {owner}"
        case _:
            return _locking_table(name)


def _locking_table(name: str) -> str:
    return f"LOCK TABLE {_only([name])} IN ACCESS EXCLUSIVE MODE"


def _only(tables: Sequence[str]) -> str:
    return ", ".join(f"ONLY {table}" for table in tables)


def _named(connection: Connection, oids: Sequence[int]) -> dict[int, _Named]:
    named = {oid: _Named(*rest) for oid, *rest in connection.execute(about(_NAMES, *oids)).fetchall()}
    if len(named) < len(oids):
        raise _changed_meanwhile("somebody dropped it, a partition of it, or a materialized view on it")
    return named
