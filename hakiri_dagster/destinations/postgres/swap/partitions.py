"""A partitioned table is exchanged with all its partitions, each of which may have what a table may have."""

from __future__ import annotations

from typing import LiteralString

from hakiri_dagster.destinations.postgres.connection import Connection
from hakiri_dagster.destinations.postgres.swap.portrait import about

_FAMILY: LiteralString = """
SELECT relid::oid::bigint
FROM (SELECT {oid}::regclass AS relid, 0 AS level UNION SELECT relid, level FROM pg_partition_tree({oid})) AS tree
ORDER BY level, relid
"""


def family(connection: Connection, oid: int) -> list[int]:
    """The table and all its partitions, parents before their partitions; an ordinary table is alone."""
    return [member for (member,) in connection.execute(about(_FAMILY, oid)).fetchall()]
