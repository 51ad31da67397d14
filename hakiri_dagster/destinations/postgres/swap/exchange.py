"""The exchange of two tables, in the open transaction: all that refers to the one by its name or its identity refers to
the other afterwards, and the one is gone. Whatever is not as it was before makes the exchange fail."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from hakiri_dagster.destinations.postgres.connection import Connection
from hakiri_dagster.destinations.postgres.swap.belongings import BELONGINGS
from hakiri_dagster.destinations.postgres.swap.dependents import CHILD_KEYS, MADE_ANEW, RELATIONS
from hakiri_dagster.destinations.postgres.swap.portrait import Portrait, about, differences, lines, portrait
from hakiri_dagster.destinations.postgres.swap.sibling import Pair, run
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


def lock_against_changes(connection: Connection, pair: Pair) -> None:
    """Keeps out who would define the table anew, or vacuum it; neither readers nor writers."""
    if pair.kind == "TABLE":
        run(connection, f"LOCK TABLE ONLY {_name(connection, pair.old)} IN SHARE UPDATE EXCLUSIVE MODE")


def lock(connection: Connection, pairs: Sequence[Pair]) -> None:
    """What leads to a relation before it: whoever comes by it holds that already, and waits for the relation. So those
    that depend on others come first among the pairs."""
    for pair in pairs:
        for name, kind, owner in connection.execute(about(RELATIONS, pair.old)).fetchall():
            run(connection, _locking(name, kind, owner))
    for pair in pairs:
        name, kind, owner = _one(connection, pair.old)
        run(connection, _locking(name, kind, owner))


def exchange(connection: Connection, pairs: Sequence[Pair]) -> list[ChildKey]:
    """All is locked; what depends on others comes first. Answers what is to be checked when nobody waits any more."""
    before = {pair: portrait(connection, pair.old) for pair in pairs}
    anew = [line for pair in pairs for query in MADE_ANEW.values() for line in lines(connection, query, pair.old)]
    children = [child for pair in pairs for child in connection.execute(about(CHILD_KEYS, pair.old)).fetchall()]
    for child, constraint, *_ in children:
        run(connection, f"ALTER TABLE {child} DROP CONSTRAINT {constraint}")
    for pair in pairs:
        _rename_both(connection, pair)
    _all(connection, anew)
    for pair in pairs:
        _all(connection, before[pair]["sequences"])  # lest they go with the table that they still belong to
        run(connection, f"DROP {pair.kind} {_name(connection, pair.old)}")
        _give(connection, pair, before[pair])
    unchecked = [_put_on(connection, *child) for child in children]
    for pair in pairs:
        _refuse_difference(connection, pair, before[pair])
    return [key for key in unchecked if key is not None]


def _give(connection: Connection, pair: Pair, before: Portrait) -> None:
    _all(connection, [f"ALTER {r.kind} {r.schema}.{r.provisional} RENAME TO {r.final}" for r in pair.renames])
    _all(connection, lines(connection, _REVOKES, pair.new))
    _all(connection, [line for name in BELONGINGS for line in before[name]])


def _refuse_difference(connection: Connection, pair: Pair, before: Portrait) -> None:
    wrong = differences(before, portrait(connection, pair.new))
    if wrong:
        raise DestinationUnavailable(
            f"{_name(connection, pair.new)} is not as it was before the load, so nothing was exchanged: "
            f"{'; '.join(wrong)}",
            hint="if somebody has changed it meanwhile, applying again is enough",
        )


def check(connection: Connection, key: ChildKey) -> None:
    """Keeps nobody out."""
    run(connection, f"ALTER TABLE {key.table} VALIDATE CONSTRAINT {key.constraint}")


def _rename_both(connection: Connection, pair: Pair) -> None:
    row = connection.execute("SELECT quote_ident(relname) FROM pg_class WHERE oid = %s", (pair.old,)).fetchone()
    assert row is not None
    run(connection, f"ALTER TABLE {_name(connection, pair.old)} RENAME TO hakiri_{pair.old}_old")
    run(connection, f"ALTER TABLE {_name(connection, pair.new)} RENAME TO {row[0]}")


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


def _locking(name: str, kind: str, owner: str) -> str:
    """Nothing but a table can be locked alone by LOCK; giving something to the owner that it has locks it as well."""
    match kind:
        case "v":
            return f"ALTER VIEW {name} OWNER TO {owner}"
        case "m":
            return f"ALTER MATERIALIZED VIEW {name} OWNER TO {owner}"
        case _:
            return f"LOCK TABLE ONLY {name} IN ACCESS EXCLUSIVE MODE"


def _one(connection: Connection, oid: int) -> tuple[str, str, str]:
    row = connection.execute(
        "SELECT oid::regclass::text, relkind::text, quote_ident(pg_get_userbyid(relowner)) FROM pg_class"
        " WHERE oid = %s",
        (oid,),
    ).fetchone()
    assert row is not None
    return row[0], row[1], row[2]


def _name(connection: Connection, oid: int) -> str:
    row = connection.execute("SELECT %s::oid::regclass::text", (oid,)).fetchone()
    assert row is not None
    return str(row[0])
