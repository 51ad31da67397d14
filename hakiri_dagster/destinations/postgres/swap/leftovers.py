"""What outlives a load that did not end: tables that were to take a place, and keys that were to be checked."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby
from operator import itemgetter

from hakiri_dagster.destinations.postgres.catalog import target_of
from hakiri_dagster.destinations.postgres.connection import Connection
from hakiri_dagster.destinations.postgres.swap.exchange import ChildKey, check
from hakiri_dagster.destinations.postgres.swap.portrait import names_in_full
from hakiri_dagster.destinations.postgres.swap.relations import run
from hakiri_dagster.manifest.tables import Table

_GONE = """
SELECT CASE relkind WHEN 'm' THEN 'MATERIALIZED VIEW' ELSE 'TABLE' END, oid::regclass::text
FROM hakiri.sibling JOIN pg_class ON oid = relation WHERE load_id = %s
ORDER BY relkind = 'm' DESC FOR UPDATE OF sibling
"""

_ABANDONED = """
SELECT DISTINCT load_id FROM hakiri.sibling AS left_over
WHERE target = %(target)s AND NOT EXISTS (
    SELECT FROM hakiri.fence WHERE fence.load_id = left_over.load_id
        AND (pipeline_id, table_name) <> (%(pipeline)s, %(table)s))
"""


def note_siblings(connection: Connection, table: Table, relations: Sequence[int], load_id: int) -> None:
    """In the transaction that makes them."""
    with connection.cursor() as cursor:
        cursor.executemany(
            "INSERT INTO hakiri.sibling (relation, target, load_id) VALUES (%s, %s, %s)",
            [(relation, target_of(table), load_id) for relation in relations],
        )


def forget_siblings(connection: Connection, load_id: int) -> None:
    """In the transaction in which they take their places."""
    connection.execute("DELETE FROM hakiri.sibling WHERE load_id = %s", (load_id,))


def is_ours(connection: Connection, relation: int) -> bool:
    if connection.execute("SELECT to_regclass('hakiri.sibling')").fetchone() == (None,):
        return False
    row = connection.execute("SELECT EXISTS (SELECT FROM hakiri.sibling WHERE relation = %s)", (relation,)).fetchone()
    return row == (True,)


def abandoned(connection: Connection, table: Table) -> list[int]:
    """The loads of this target that left some: this table's own, and those whose chunk somebody has claimed since. What
    is neither may be at work for another table with the same target."""
    which = {"target": target_of(table), "pipeline": table.pipeline_id, "table": table.name}
    return [load_id for (load_id,) in connection.execute(_ABANDONED, which)]


def sweep(connection: Connection, table: Table) -> None:
    """Whatever loads of this target left. To be asked by the holder of the claim only."""
    left = connection.execute("SELECT DISTINCT load_id FROM hakiri.sibling WHERE target = %s", (target_of(table),))
    for (load_id,) in left.fetchall():
        drop_siblings(connection, load_id)


def drop_siblings(connection: Connection, load_id: int) -> None:
    """Of no effect once they have taken their places."""
    names_in_full(connection)
    gone = connection.execute(_GONE, (load_id,)).fetchall()
    connection.execute("DELETE FROM hakiri.sibling WHERE load_id = %s", (load_id,))
    for kind, names in groupby(gone, key=itemgetter(0)):  # those that refer to one another go together
        run(connection, f"DROP {kind} {', '.join(name for _, name in names)}")


def note_unchecked(connection: Connection, table: Table, keys: Sequence[ChildKey]) -> None:
    with connection.cursor() as cursor:
        cursor.executemany(
            "INSERT INTO hakiri.unchecked_key VALUES (%s, %s, %s) ON CONFLICT DO NOTHING",
            [(target_of(table), key.table, key.constraint) for key in keys],
        )


def unchecked(connection: Connection, table: Table) -> list[ChildKey]:
    rows = connection.execute(
        "SELECT u.child, u.constraint_name FROM hakiri.unchecked_key u WHERE target = %s ORDER BY 1, 2",
        (target_of(table),),
    )
    return [ChildKey(child, constraint) for child, constraint in rows]


def check_key(connection: Connection, key: ChildKey) -> None:
    """Keeps nobody out. One that somebody has dropped meanwhile needs no check."""
    names_in_full(connection)
    there = connection.execute(
        "SELECT EXISTS (SELECT FROM pg_constraint WHERE conrelid = to_regclass(%s) AND quote_ident(conname) = %s)",
        (key.table, key.constraint),
    ).fetchone()
    if there == (True,):
        check(connection, key)
    connection.execute(
        "DELETE FROM hakiri.unchecked_key WHERE child = %s AND constraint_name = %s", (key.table, key.constraint)
    )
