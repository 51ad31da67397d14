"""What others may notice of an exchange."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import LiteralString

from hakiri_dagster.destinations.postgres.connection import Connection
from hakiri_dagster.destinations.postgres.swap.dependents import PARENTS
from hakiri_dagster.destinations.postgres.swap.matviews import materialized_views
from hakiri_dagster.destinations.postgres.swap.partitions import family
from hakiri_dagster.destinations.postgres.swap.portrait import about, lines

_LOCKED_BY_WHO_MAY_MAINTAIN = 170_000

# A body that is kept as what it means, not as text, depends on the tables. Nothing can lock a function.
_FUNCTIONS: LiteralString = """
SELECT concat(pg_describe_object(classid, objid, 0), ' reads ', string_agg(DISTINCT refobjid::regclass::text, ', '))
FROM pg_depend
WHERE classid = 'pg_proc'::regclass AND refclassid = 'pg_class'::regclass AND refobjid = ANY({oids})
GROUP BY classid, objid ORDER BY 1
"""


def cautions(connection: Connection, oid: int, target: str) -> list[str]:
    members = family(connection, oid)
    views = [view for view, _ in materialized_views(connection, members)]
    return [*_of_functions(connection, [*members, *views]), *_of_parents(connection, members, target)]


def _of_functions(connection: Connection, relations: Sequence[int]) -> Iterator[str]:
    for reading in lines(connection, _FUNCTIONS, *relations):
        yield (
            f"{reading} in a body that PostgreSQL has resolved: who calls it in the moment of an exchange may get the"
            ' error "could not open relation with OID"; write the body as a string (AS $$ … $$), whose names are looked'
            " up at each call, or use mode truncate"
        )


def _of_parents(connection: Connection, members: Sequence[int], target: str) -> Iterator[str]:
    """What may not be locked beforehand is waited for in the midst of the exchange."""
    right = "MAINTAIN" if connection.info.server_version >= _LOCKED_BY_WHO_MAY_MAINTAIN else "UPDATE"
    role = connection.execute("SELECT quote_ident(current_user)").fetchone()
    assert role is not None
    for parent, may_lock in connection.execute(about(PARENTS, *members)).fetchall():
        if not may_lock:
            yield (
                f"table {parent}, to which {target} refers by a foreign key: {role[0]} may not lock it, so in an"
                f" exchange readers of {target} may wait for its readers; GRANT {right} ON TABLE {parent} TO {role[0]}"
            )
