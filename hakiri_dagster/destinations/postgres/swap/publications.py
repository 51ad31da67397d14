"""Publications keep what they publish, and not what subscribers have: of an exchange nothing is published."""

from __future__ import annotations

from typing import LiteralString

from hakiri_dagster.destinations.postgres.connection import Connection
from hakiri_dagster.destinations.postgres.swap.partitions import family
from hakiri_dagster.destinations.postgres.swap.portrait import lines

_PUBLICATIONS: LiteralString = """
SELECT quote_ident(pubname) FROM pg_publication_tables t
JOIN pg_namespace n ON n.nspname = t.schemaname JOIN pg_class c ON c.relnamespace = n.oid AND c.relname = t.tablename
WHERE c.oid = ANY({oids}) GROUP BY pubname ORDER BY pubname
"""

# Those of all tables, or of all of a schema, publish the new table from the beginning.
_OF_WHAT_COMES: LiteralString = """
SELECT quote_ident(pubname) FROM pg_publication p JOIN pg_class c ON c.oid = {oid}
WHERE puballtables OR EXISTS (SELECT FROM pg_publication_namespace WHERE pnpubid = p.oid AND pnnspid = relnamespace)
"""


def cautions(connection: Connection, oid: int, target: str, new: str) -> list[str]:
    of_what_comes = lines(connection, _OF_WHAT_COMES, oid)
    return [
        f"publication {name}: who subscribes keeps the old rows of {target}, because blue_green exchanges tables"
        + (f", and is sent those of {new} while they are loaded" if name in of_what_comes else "")
        + "; for a target that is replicated use truncate, delete_missing or upsert"
        for name in lines(connection, _PUBLICATIONS, *family(connection, oid))
    ]
