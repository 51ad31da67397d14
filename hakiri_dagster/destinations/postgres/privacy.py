"""Rows that are not published, or not any more, are their owner's alone, whatever default privileges give to others."""

from __future__ import annotations

from hakiri_dagster.destinations.postgres.connection import Connection

_GIVEN_AWAY = """
SELECT DISTINCT pg_catalog.format('REVOKE ALL ON TABLE %%s FROM %%s', c.oid::regclass,
                       CASE grantee WHEN 0 THEN 'PUBLIC' ELSE quote_ident(pg_get_userbyid(grantee)) END)
FROM pg_class c CROSS JOIN LATERAL (
    SELECT grantee FROM aclexplode(relacl)
  UNION
    SELECT grantee FROM pg_attribute CROSS JOIN LATERAL aclexplode(attacl) WHERE attrelid = c.oid) AS given
WHERE c.oid = %s AND grantee <> relowner
"""


def keep_private(connection: Connection, relation: int) -> None:
    """In the transaction that makes the relation, after it has its owner."""
    for (revoke,) in connection.execute(_GIVEN_AWAY, (relation,)).fetchall():
        connection.execute(revoke.encode())
