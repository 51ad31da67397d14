"""Rows of loads that the ledger has lost: somebody deleted from it, or restored it without the target. They are ours,
and nobody knows their chunks any more: a load of the place where they lie replaces them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import LiteralString

from psycopg import sql

from hakiri_dagster.destinations.contract import LOAD_ID_COLUMN
from hakiri_dagster.destinations.postgres import catalog
from hakiri_dagster.destinations.postgres.connection import Connection, relation
from hakiri_dagster.destinations.postgres.modes.registry import mode_of
from hakiri_dagster.manifest.tables import Table

_UNKNOWN: LiteralString = """
SELECT DISTINCT target.{load_id} FROM {target} AS target
WHERE target.{load_id} IS NOT NULL AND NOT EXISTS (SELECT FROM hakiri.ledger WHERE ledger.load_id = target.{load_id})
ORDER BY 1
"""


def unknown(connection: Connection, table: Table) -> Sequence[int]:
    """Only where a load finds earlier rows by their load ids: elsewhere it finds them by key, or clears the target."""
    found = catalog.find(connection, table.target_schema, table.target_name)
    if found is None or not mode_of(table).looks_for_load_ids or not _has_load_ids(found):
        return ()
    target = relation(found.target.schema, found.target.name)
    query = sql.SQL(_UNKNOWN).format(target=target, load_id=sql.Identifier(LOAD_ID_COLUMN))
    return tuple(load_id for (load_id,) in connection.execute(query))


def _has_load_ids(found: catalog.Found) -> bool:
    return any(column.name == LOAD_ID_COLUMN for column in found.target.columns)
