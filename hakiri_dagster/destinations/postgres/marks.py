"""What a key went through that left no row in the target: that it was deleted or, in a history, stayed as it was.

A table for each target that needs one, in the schema `hakiri`: so slices may come in any order, and the target is free
of it.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

from psycopg import sql

from hakiri_dagster.destinations.contract import Target
from hakiri_dagster.destinations.postgres.catalog import stored_name, target_of
from hakiri_dagster.destinations.postgres.connection import Connection, names, relation
from hakiri_dagster.manifest.tables import Table

AT = sql.Identifier("_hakiri_at")
"""When it happened, in the order of the cursor."""

DELETED = sql.Identifier("_hakiri_deleted")

_LOCK = "SELECT pg_advisory_xact_lock(pg_catalog.hashtextextended('hakiri marks ' || %s::text, 0::bigint))"
_NAME_CHARACTERS = 12
_COLUMNS = """
SELECT attname, format_type(atttypid, atttypmod) FROM pg_attribute
WHERE attrelid = to_regclass(%s) AND attnum > 0 AND NOT attisdropped
ORDER BY attnum
"""


def marks_of(table: Table) -> sql.Identifier:
    return sql.Identifier("hakiri", _name(table))


def exist(connection: Connection, table: Table) -> bool:
    row = connection.execute("SELECT to_regclass(%s) IS NOT NULL", (marks_of(table).as_string(connection),)).fetchone()
    return row == (True,)


def columns(connection: Connection, table: Table) -> tuple[str, ...]:
    """Empty where there are no marks."""
    rows = connection.execute(_COLUMNS, (marks_of(table).as_string(connection),)).fetchall()
    return tuple(name for name, _ in rows)


def lock(connection: Connection, table: Table) -> None:
    """One load after the other looks at the marks and adds to them."""
    connection.execute(_LOCK, (target_of(table),))


def make(connection: Connection, table: Table, target: Target, key: Sequence[str], at: str) -> sql.Identifier:
    """Made in the load's own transaction. What was noted of another key, or in another order, says nothing here."""
    marks = marks_of(table)
    lock(connection, table)
    kinds = {column.name: column.type for column in target.columns}
    wanted = [*((column, kinds[column]) for column in key), ("_hakiri_at", kinds[at]), ("_hakiri_deleted", "boolean")]
    present = connection.execute(_COLUMNS, (marks.as_string(connection),)).fetchall()
    if not _follows(present, wanted):
        connection.execute(sql.SQL("DROP TABLE IF EXISTS {}").format(marks))
        connection.execute(
            sql.SQL("CREATE TABLE {} AS SELECT {}, {} AS {}, true AS {} FROM {} WITH NO DATA").format(
                marks, names(list(key)), sql.Identifier(at), AT, DELETED, relation(target.schema, target.name)
            )
        )
        connection.execute(sql.SQL("CREATE UNIQUE INDEX ON {} ({}, {})").format(marks, names(list(key)), AT))
        connection.execute(
            sql.SQL("COMMENT ON TABLE {} IS {}").format(marks, f"deleted keys and the like of {target_of(table)}")
        )
    elif present != wanted:
        _follow_types(connection, marks, wanted)
    return marks


def forget(connection: Connection, table: Table) -> None:
    """The target holds other rows now, for which nothing of this is true."""
    connection.execute(sql.SQL("DROP TABLE IF EXISTS {}").format(marks_of(table)))


def _follows(present: Sequence[tuple[str, str]], wanted: Sequence[tuple[str, str]]) -> bool:
    if [name for name, _ in present] != [name for name, _ in wanted]:
        return False
    kinds = dict(present)["_hakiri_at"], dict(wanted)["_hakiri_at"]
    return len({_is_time(kind) for kind in kinds}) == 1


def _is_time(kind: str) -> bool:
    return kind.startswith(("timestamp", "date"))


def _follow_types(connection: Connection, marks: sql.Identifier, wanted: Sequence[tuple[str, str]]) -> None:
    """The target's columns have changed their types."""
    for name, kind in wanted:
        connection.execute(
            sql.SQL("ALTER TABLE {marks} ALTER COLUMN {name} TYPE {kind} USING {name}::{kind}").format(
                marks=marks,
                name=sql.Identifier(name),
                kind=sql.SQL(kind),  # as the catalog spells it
            )
        )


def _name(table: Table) -> str:
    """Unlike that of any other target, and still to be recognised."""
    schema, name = stored_name(table.target_schema), stored_name(table.target_name)
    digest = hashlib.sha256(f"{schema}\0{name}".encode()).hexdigest()[:_NAME_CHARACTERS]
    shown = name.encode()[: 63 - len("marks__") - _NAME_CHARACTERS].decode(errors="ignore")
    return f"marks_{shown}_{digest}"
