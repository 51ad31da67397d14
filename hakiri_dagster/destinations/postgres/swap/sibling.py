"""`<table>_new`: an empty table like another one, with partitions like the other's."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import LiteralString

from hakiri_dagster.destinations.postgres.connection import Connection, relation
from hakiri_dagster.destinations.postgres.privacy import keep_private
from hakiri_dagster.destinations.postgres.swap.indexes import make_index_of_load_ids
from hakiri_dagster.destinations.postgres.swap.partitions import family
from hakiri_dagster.destinations.postgres.swap.portrait import about
from hakiri_dagster.destinations.postgres.swap.relations import Pair, oid_of, place_of, run, run_all
from hakiri_dagster.destinations.postgres.swap.sequences import sequences_of
from hakiri_dagster.errors import DestinationError

_SUFFIX = "_new"
_NAME_BYTES = 63

_MADE_WITH: LiteralString = """
SELECT c.relpersistence = 'u', pg_get_partkeydef(c.oid), quote_ident(a.amname), quote_ident(s.spcname),
       array_cat(c.reloptions, (SELECT array_agg('toast.' || option) FROM unnest(t.reloptions) AS option)),
       quote_ident(pg_get_userbyid(c.relowner))
FROM pg_class c LEFT JOIN pg_am a ON a.oid = c.relam LEFT JOIN pg_tablespace s ON s.oid = c.reltablespace
LEFT JOIN pg_class t ON t.oid = c.reltoastrelid
WHERE c.oid = {oid}
"""

_PARTITIONS: LiteralString = """
SELECT inhparent::bigint, inhrelid::bigint, pg_get_expr(c.relpartbound, c.oid)
FROM pg_inherits JOIN pg_class c ON c.oid = inhrelid WHERE inhparent = ANY({oids}) AND c.relispartition
"""

# What a partition has of its parent is right when the parent's is.
_UNCHECKED: LiteralString = """
SELECT quote_ident(conname), pg_get_constraintdef(oid) FROM pg_constraint
WHERE conrelid = {oid} AND contype IN ('c', 'n') AND NOT convalidated AND coninhcount = 0
"""


def sibling_name(name: str) -> str:
    """As long as PostgreSQL keeps names."""
    return name.encode()[: _NAME_BYTES - len(_SUFFIX)].decode(errors="ignore") + _SUFFIX


def make(connection: Connection, oid: int, schema: str, name: str, prefix: str) -> tuple[Pair, ...]:
    """Empty and ready for rows: without indexes, but for the one that need not read them. The table itself comes first;
    partitions bear provisional names."""
    run(connection, "SET LOCAL default_tablespace = ''")
    place = relation(schema, sibling_name(name)).as_string(connection)
    root, *partitions = family(connection, oid)
    pairs = [Pair("TABLE", root, _make_empty(connection, root, place))]
    for partition in partitions:
        of_schema, _ = place_of(connection, partition)
        new = _make_empty(connection, partition, f"{of_schema}.{prefix}{partition}")
        pairs.append(Pair("TABLE", partition, new, partition=True))
    _attach(connection, pairs)
    for pair in pairs:
        _correct(connection, pair)
        make_index_of_load_ids(connection, pair, prefix)
    return tuple(pairs)


def _make_empty(connection: Connection, old: int, place: str) -> int:
    """A partition has its parent's identity columns from the moment on when it is attached."""
    made_with = storage_of(connection, old)
    identity = any(sequence.identity for sequence in sequences_of(connection, old))
    run(
        connection,
        f"CREATE {'UNLOGGED' if made_with.unlogged else ''} TABLE {place} (LIKE {place_of(connection, old)[1]}"
        " INCLUDING DEFAULTS INCLUDING CONSTRAINTS INCLUDING GENERATED INCLUDING STORAGE INCLUDING COMPRESSION"
        f" {'INCLUDING IDENTITY' if identity else ''}) {made_with.clauses}",
    )
    run(connection, f"ALTER TABLE {place} OWNER TO {made_with.owner}")
    new = oid_of(connection, place)
    keep_private(connection, new)
    return new


@dataclass(frozen=True, slots=True)
class Storage:
    """`clauses` stand after a relation's columns where it is made."""

    unlogged: bool
    clauses: str
    owner: str


def storage_of(connection: Connection, oid: int) -> Storage:
    row = connection.execute(about(_MADE_WITH, oid)).fetchone()
    if row is None:
        raise DestinationError("the target was dropped while it was being loaded")
    unlogged, partition_key, method, tablespace, options, owner = row
    clauses = [
        f"PARTITION BY {partition_key}" if partition_key else "",
        f"USING {method}" if method else "",
        f"WITH ({', '.join(options)})" if options else "",
        f"TABLESPACE {tablespace}" if tablespace else "",
    ]
    return Storage(unlogged, " ".join(clauses), owner)


def _attach(connection: Connection, pairs: list[Pair]) -> None:
    """While all are empty, which spares PostgreSQL a look at the rows."""
    new = {pair.old: pair.new for pair in pairs}
    for parent, partition, bound in connection.execute(about(_PARTITIONS, *new)).fetchall():
        places = [place_of(connection, new[old])[1] for old in (parent, partition)]
        run(connection, f"ALTER TABLE {places[0]} ATTACH PARTITION {places[1]} {bound}")


def _correct(connection: Connection, pair: Pair) -> None:
    """LIKE takes constraints for checked that were not, and sequences of all identities for `bigint`."""
    run_all(connection, list(_corrections(connection, pair)))


def _corrections(connection: Connection, pair: Pair) -> Iterator[str]:
    _, place = place_of(connection, pair.new)
    for name, definition in connection.execute(about(_UNCHECKED, pair.old)).fetchall():
        yield f"ALTER TABLE {place} DROP CONSTRAINT {name}, ADD CONSTRAINT {name} {definition}"
    types = {sequence.column: sequence.type for sequence in sequences_of(connection, pair.old)}
    for sequence in sequences_of(connection, pair.new):
        if sequence.type != types[sequence.column]:
            yield f"ALTER SEQUENCE {sequence.place} AS {types[sequence.column]}"
