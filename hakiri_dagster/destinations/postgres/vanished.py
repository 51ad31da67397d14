"""Published loads of which the target holds no row any more, as far as that is told without reading it.

A sample of its pages shows the loads that are there. Of those that it does not show, a few are looked for by the index
on the load ids. A target that is small is read whole. All within a fraction of a second, or nothing is said.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from typing import Final, LiteralString

from psycopg import errors, sql

from hakiri_dagster.destinations.contract import LOAD_ID_COLUMN
from hakiri_dagster.destinations.postgres import catalog
from hakiri_dagster.destinations.postgres.connection import Connection, relation
from hakiri_dagster.destinations.postgres.modes.registry import MODES, mode_of
from hakiri_dagster.manifest.tables import Table

PAGES_READ: Final = 1000
LOOKED_FOR: Final = 20
_PATIENCE: Final = "250ms"
"""Each of the questions; what takes longer is not told."""

# `pg_partition_tree` would lock the partitions.
_SIZE: LiteralString = """
WITH RECURSIVE place (relid) AS (
    SELECT %(oid)s::oid UNION SELECT inhrelid FROM pg_inherits JOIN place ON inhparent = relid)
SELECT coalesce(sum(pg_catalog.pg_relation_size(relid)), 0) / current_setting('block_size')::bigint,
       pg_catalog.row_security_active(%(oid)s::oid)
FROM place
"""

_FIND_BY_ID: LiteralString = """
SELECT load_id FROM hakiri.ledger WHERE load_id = ANY(%s) AND mode = ANY(%s) ORDER BY load_id
"""

_SAMPLE: LiteralString = (
    "SELECT DISTINCT {load_id} FROM {target} TABLESAMPLE SYSTEM ({percent}) WHERE {load_id} = ANY({loads})"
)
_ANY: LiteralString = "SELECT EXISTS (SELECT FROM {target})"
_ANY_OF: LiteralString = "SELECT EXISTS (SELECT FROM {target} WHERE {load_id} = {load})"


def without_rows(connection: Connection, table: Table, loads: Collection[int]) -> Collection[int]:
    """Where a load finds earlier rows by key, those of one load may all bear the ids of later ones: there only an empty
    target tells."""
    found = catalog.find(connection, table.target_schema, table.target_name)
    if found is None or not loads:
        return ()
    pages, hidden = connection.execute(_SIZE, {"oid": found.oid}).fetchone() or (0, True)
    if hidden:
        return ()
    connection.execute(sql.SQL("SET LOCAL statement_timeout = {}").format(sql.Literal(_PATIENCE)))
    connection.execute("SET LOCAL enable_seqscan = off")
    target = relation(found.target.schema, found.target.name)
    holds_any = _answer(connection, sql.SQL(_ANY).format(target=target)) if pages else False
    if not holds_any:
        return loads if holds_any is False else ()
    by_id = [name for name, mode in MODES.items() if mode.looks_for_load_ids]
    if not mode_of(table).looks_for_load_ids or not found.has_load_id_index:
        return ()
    known = [load_id for (load_id,) in connection.execute(_FIND_BY_ID, (sorted(loads), by_id))]
    return tuple(_missing(connection, target, known, int(pages)))


def _missing(connection: Connection, target: sql.Identifier, loads: Sequence[int], pages: int) -> Iterator[int]:
    seen = _seen(connection, target, loads, pages)
    if seen is None:
        return
    unseen = [load_id for load_id in loads if load_id not in seen]
    if pages <= PAGES_READ:
        yield from unseen
        return
    for load_id in _some(unseen):
        query = sql.SQL(_ANY_OF).format(
            target=target, load_id=sql.Identifier(LOAD_ID_COLUMN), load=sql.Literal(load_id)
        )
        found = _answer(connection, query)
        if found is None:
            return
        if not found:
            yield load_id


def _seen(connection: Connection, target: sql.Identifier, loads: Sequence[int], pages: int) -> set[int] | None:
    query = sql.SQL(_SAMPLE).format(
        target=target,
        load_id=sql.Identifier(LOAD_ID_COLUMN),
        percent=sql.Literal(min(100.0, 100.0 * PAGES_READ / pages)),
        loads=sql.Literal(list(loads)),
    )
    try:
        with connection.transaction():
            return {load_id for (load_id,) in connection.execute(query)}
    except errors.QueryCanceled:
        return None


def _some(loads: Sequence[int]) -> Sequence[int]:
    """Spread over all of them, the first and the last included."""
    if len(loads) <= LOOKED_FOR:
        return loads
    return [loads[round(place * (len(loads) - 1) / (LOOKED_FOR - 1))] for place in range(LOOKED_FOR)]


def _answer(connection: Connection, query: sql.Composed) -> bool | None:
    """None if it takes too long."""
    try:
        with connection.transaction():
            row = connection.execute(query).fetchone()
    except errors.QueryCanceled:
        return None
    return None if row is None else bool(row[0])
