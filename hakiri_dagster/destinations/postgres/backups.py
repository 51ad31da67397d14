"""Copies of a target as it was before a load. A copy is made in the load's own transaction, so that there is one if,
and only if, the load is published; what it copies is what was committed when the load began."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Literal

from psycopg import errors, sql

from hakiri_dagster.destinations.backups_contract import Backup
from hakiri_dagster.destinations.contract import Load
from hakiri_dagster.destinations.postgres.catalog import stored_name, target_of
from hakiri_dagster.destinations.postgres.connection import Connection, Connections, relation
from hakiri_dagster.destinations.postgres.control_schema import SCHEMA
from hakiri_dagster.destinations.postgres.privacy import keep_private
from hakiri_dagster.errors import HakiriError
from hakiri_dagster.manifest.tables import Table

_NAME_BYTES = 63

# The newest first.
_BACKUPS = """
SELECT load_id, run_id, relation::text, rows, made_before, made_at
FROM hakiri.backup
WHERE pipeline_id = %s AND table_name = %s AND target = %s
  AND to_regclass(pg_catalog.format('hakiri.%%I', relation)) IS NOT NULL
ORDER BY made_at DESC, load_id DESC
"""

# Whatever loads many chunks, in one run or several, makes one copy, before the first of them.
_MADE = """
SELECT EXISTS (SELECT FROM hakiri.backup
               WHERE load_id = %s OR (pipeline_id, table_name, target, occasion) = (%s, %s, %s, %s))
"""

_NOTE = """
INSERT INTO hakiri.backup (load_id, pipeline_id, table_name, target, occasion, run_id, relation, rows, made_before)
VALUES (%s, %s, %s, %s, %s, %s, %s, %s, %s)
"""

_TAKE = "SELECT load_id FROM hakiri.backup WHERE load_id = %s FOR UPDATE SKIP LOCKED"
_HOLD = "SELECT load_id FROM hakiri.backup WHERE load_id = %s FOR SHARE"


def entries(connection: Connection, table: Table) -> tuple[Backup, ...]:
    """None in a destination that never made one."""
    try:
        rows = connection.execute(_BACKUPS, _of(table)).fetchall()
    except (errors.UndefinedTable, errors.InvalidSchemaName):
        connection.rollback()
        return ()
    return tuple(Backup(generation, *row) for generation, row in enumerate(rows, start=1))


def keep_rows(connection: Connection, load: Load, before: Literal["load", "restore"] = "load") -> bool:
    """Of an empty target there is nothing to keep."""
    if before == "load" and _is_made(connection, load):
        return True
    target = relation(load.target.schema, load.target.name)
    with _every_row(connection):
        found = connection.execute(sql.SQL("SELECT EXISTS (SELECT FROM {})").format(target)).fetchone()
        if found != (True,):
            return False
        name = backup_name(load.target.schema, load.target.name, load.fence.load_id)
        copied = connection.execute(
            sql.SQL("CREATE TABLE {} AS SELECT * FROM {}").format(relation(SCHEMA, name), target)
        ).rowcount
    keep_private(connection, _oid(connection, name))
    connection.execute(
        _NOTE, (load.fence.load_id, *_of(load.table), _occasion(load), load.run_id, name, copied, before)
    )
    return True


def hold(connection: Connection, backup: Backup) -> bool:
    """Until the transaction ends, nobody takes the copy away. False if somebody has."""
    if connection.execute(_HOLD, (backup.load_id,)).fetchone() is None:
        return False
    try:
        with connection.transaction():
            place = relation(SCHEMA, backup.relation)
            connection.execute(sql.SQL("LOCK TABLE {} IN ACCESS SHARE MODE").format(place))
    except errors.UndefinedTable:
        return False
    return True


def prune(connections: Connections, table: Table, keep: int) -> None:
    """Who still reads an old copy, or restores it, keeps it until the next load."""
    with suppress(HakiriError), connections.transaction(table.label) as connection:
        connection.execute("SET LOCAL lock_timeout = '1s'")
        for backup in entries(connection, table)[keep:]:
            if connection.execute(_TAKE, (backup.load_id,)).fetchone() is None:
                continue
            connection.execute(sql.SQL("DROP TABLE IF EXISTS {}").format(relation(SCHEMA, backup.relation)))
            connection.execute("DELETE FROM hakiri.backup WHERE load_id = %s", (backup.load_id,))


def backup_name(schema: str, name: str, load_id: int) -> str:
    """The load id makes it the only one, however much of the rest is cut off."""
    tail = f"_{load_id}"
    whole = f"backup_{stored_name(schema)}_{stored_name(name)}".encode()
    return whole[: _NAME_BYTES - len(tail)].decode(errors="ignore") + tail


def _is_made(connection: Connection, load: Load) -> bool:
    made = connection.execute(_MADE, (load.fence.load_id, *_of(load.table), _occasion(load)))
    return made.fetchone() == (True,)


def _occasion(load: Load) -> str:
    return load.occasion or load.run_id


@contextmanager
def _every_row(connection: Connection) -> Iterator[None]:
    """A policy that hides rows from this role is an error here: a copy without them would be none."""
    was = connection.execute("SHOW row_security").fetchone()
    connection.execute("SET LOCAL row_security = off")
    yield
    connection.execute("SELECT set_config('row_security', %s, true)", was)


def _oid(connection: Connection, name: str) -> int:
    place = "SELECT to_regclass(pg_catalog.format('hakiri.%%I', %s::text))::oid::bigint"
    found = connection.execute(place, (name,)).fetchone()
    assert found is not None
    return int(found[0])


def _of(table: Table) -> tuple[str, str, str]:
    return table.pipeline_id, table.name, target_of(table)
