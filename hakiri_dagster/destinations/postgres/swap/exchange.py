"""The exchange of two tables, in the open transaction: all that refers to the one by its name or its identity refers to
the other afterwards, and the one is gone. Whatever is not as it was before makes the exchange fail."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from hakiri_dagster.destinations.postgres.connection import Connection
from hakiri_dagster.destinations.postgres.swap.belongings import BELONGINGS
from hakiri_dagster.destinations.postgres.swap.dependents import CHILD_KEYS, MADE_ANEW, RELATIONS
from hakiri_dagster.destinations.postgres.swap.portrait import about, differences, lines, portrait
from hakiri_dagster.destinations.postgres.swap.sibling import Rename, run
from hakiri_dagster.errors import DestinationUnavailable

_REVOKES = """
SELECT DISTINCT format('REVOKE ALL ON TABLE %s FROM %s CASCADE', c.oid::regclass,
                       CASE grantee WHEN 0 THEN 'PUBLIC' ELSE quote_ident(pg_get_userbyid(grantee)) END)
FROM pg_class c CROSS JOIN LATERAL aclexplode(coalesce(relacl, acldefault('r', relowner))) WHERE c.oid = {oid}
"""


@dataclass(frozen=True, slots=True)
class ChildKey:
    """A foreign key of another table that was put on again and has not been checked yet."""

    table: str
    constraint: str


def lock_against_changes(connection: Connection, oid: int) -> None:
    """Keeps out who would define the table anew, or vacuum it; neither readers nor writers."""
    run(connection, f"LOCK TABLE ONLY {_name(connection, oid)} IN SHARE UPDATE EXCLUSIVE MODE")


def lock(connection: Connection, oid: int) -> None:
    """What leads to the table first: whoever comes by it holds that already, and waits for the table."""
    for name, kind, owner in connection.execute(about(RELATIONS, oid)).fetchall():
        # LOCK TABLE of a view would lock all tables under it
        run(connection, f"ALTER VIEW {name} OWNER TO {owner}" if kind == "v" else _locked(name))
    run(connection, _locked(_name(connection, oid)))


def exchange(connection: Connection, old: int, new: int, renames: Sequence[Rename]) -> list[ChildKey]:
    """Both are locked. Answers what is to be checked when nobody waits any more."""
    before = portrait(connection, old)
    place = _name(connection, old)
    anew = [line for query in MADE_ANEW.values() for line in lines(connection, query, old)]
    children = connection.execute(about(CHILD_KEYS, old)).fetchall()
    for child, constraint, *_ in children:
        run(connection, f"ALTER TABLE {child} DROP CONSTRAINT {constraint}")
    _rename_both(connection, old, new)
    _all(connection, anew)
    _all(connection, before["sequences"])  # lest they go with the table that they still belong to
    run(connection, f"DROP TABLE {_name(connection, old)}")
    _all(connection, [f"ALTER {r.kind} {r.schema}.{r.provisional} RENAME TO {r.final}" for r in renames])
    _all(connection, lines(connection, _REVOKES, new))
    _all(connection, [line for name in BELONGINGS for line in before[name]])
    unchecked = [_put_on(connection, *child) for child in children]
    wrong = differences(before, portrait(connection, new))
    if wrong:
        raise DestinationUnavailable(
            f"{place} is not as it was before the load, so nothing was exchanged: {'; '.join(wrong)}",
            hint="if somebody has changed it meanwhile, applying again is enough",
        )
    return [key for key in unchecked if key is not None]


def check(connection: Connection, key: ChildKey) -> None:
    """Keeps nobody out."""
    run(connection, f"ALTER TABLE {key.table} VALIDATE CONSTRAINT {key.constraint}")


def _rename_both(connection: Connection, old: int, new: int) -> None:
    row = connection.execute("SELECT quote_ident(relname) FROM pg_class WHERE oid = %s", (old,)).fetchone()
    assert row is not None
    run(connection, f"ALTER TABLE {_name(connection, old)} RENAME TO hakiri_{old}_old")
    run(connection, f"ALTER TABLE {_name(connection, new)} RENAME TO {row[0]}")


def _put_on(
    connection: Connection, table: str, constraint: str, definition: str, valid: bool, comment: str | None
) -> ChildKey | None:
    put_off = "" if definition.endswith(" NOT VALID") else " NOT VALID"
    run(connection, f"ALTER TABLE {table} ADD CONSTRAINT {constraint} {definition}{put_off}")
    if comment is not None:
        run(connection, comment)
    return ChildKey(table, constraint) if valid else None


def _all(connection: Connection, statements: Sequence[str]) -> None:
    if statements:
        run(connection, ";\n".join(statement.rstrip(";") for statement in statements))


def _locked(name: str) -> str:
    return f"LOCK TABLE ONLY {name} IN ACCESS EXCLUSIVE MODE"


def _name(connection: Connection, oid: int) -> str:
    row = connection.execute("SELECT %s::oid::regclass::text", (oid,)).fetchone()
    assert row is not None
    return str(row[0])
