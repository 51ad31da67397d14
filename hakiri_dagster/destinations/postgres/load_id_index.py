"""Block ranges that were filled since autovacuum last came by are in no BRIN summary: whoever looks for the rows of one
load reads all of them. Many chunks that are loaded again would do so once a chunk."""

from __future__ import annotations

from contextlib import suppress

from hakiri_dagster.destinations.contract import LOAD_ID_COLUMN
from hakiri_dagster.destinations.postgres.connection import Connections
from hakiri_dagster.errors import DestinationError, DestinationUnavailable

_SUM_UP = """
SELECT pg_catalog.brin_summarize_new_values(i.indexrelid)
FROM pg_index i
JOIN pg_class c ON c.oid = i.indexrelid
JOIN pg_am m ON m.oid = c.relam
JOIN pg_attribute a ON a.attrelid = i.indrelid AND a.attnum = i.indkey[0]
WHERE i.indrelid IN (SELECT %s::oid UNION SELECT relid FROM pg_catalog.pg_partition_tree(%s))
  AND a.attname = %s AND c.relkind = 'i' AND m.amname = 'brin' AND i.indisvalid
"""


def sum_up(connections: Connections, target_oid: int) -> None:
    """In a transaction of its own, for its lock would make others wait. Only speed is lost where we may not do it
    (another's table) or somebody else holds that lock (a vacuum)."""
    with suppress(DestinationError, DestinationUnavailable), connections.transaction() as connection:
        connection.execute("SET LOCAL lock_timeout = '100ms'")
        connection.execute(_SUM_UP, (target_oid, target_oid, LOAD_ID_COLUMN))
