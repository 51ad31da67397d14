"""Who may publish a chunk next: a claim raises the fence's token, a publish compares it."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence

from hakiri_dagster.destinations.contract import Fence, Load
from hakiri_dagster.destinations.postgres.catalog import target_of
from hakiri_dagster.destinations.postgres.connection import APPLICATION_NAME_PREFIX, Connection
from hakiri_dagster.errors import LeaseLost
from hakiri_dagster.manifest.tables import Table

_NAME_BYTES = 63

_BUMP = """
INSERT INTO hakiri.fence AS f (pipeline_id, table_name, target, chunk_key, token, holder, load_id)
SELECT %(pipeline)s, %(table)s, %(target)s, key, 1, %(holder)s,
       pg_catalog.nextval(pg_get_serial_sequence('hakiri.ledger', 'load_id'))
FROM pg_catalog.unnest(%(keys)s::text[]) AS key ORDER BY key
ON CONFLICT (pipeline_id, table_name, target, chunk_key) DO UPDATE
SET token = f.token + 1, holder = excluded.holder, load_id = excluded.load_id, claimed_at = clock_timestamp()
RETURNING chunk_key, token, load_id
"""

# Only this role's backends in this database: others can neither be ours nor may be ended by us.
# The mark is `chunk_mark`.
_END_BACKENDS = """
SELECT pg_catalog.pg_terminate_backend(a.pid, 5000::bigint)
FROM hakiri.fence f
JOIN pg_stat_activity a
  ON split_part(a.application_name, ':', 1) = 'hakiri'
 AND split_part(a.application_name, ':', 2)
     = left(md5(pg_catalog.concat_ws(chr(31), f.pipeline_id, f.table_name, f.target, f.chunk_key)), 16)
 AND CASE WHEN split_part(a.application_name, ':', 3) ~ '^[0-9]{1,18}$'
          THEN split_part(a.application_name, ':', 3)::bigint <= f.token - %(newer)s END
WHERE f.pipeline_id = %(pipeline)s AND f.table_name = %(table)s AND f.target = %(target)s
  AND f.chunk_key = ANY(%(keys)s)
  AND a.datname = current_database() AND a.usename = current_user AND a.pid <> pg_backend_pid()
"""

_TOKEN = """
SELECT token FROM hakiri.fence WHERE pipeline_id = %s AND table_name = %s AND target = %s AND chunk_key = %s
"""


def claim(connection: Connection, table: Table, chunk_keys: Sequence[str], holder: str) -> Mapping[str, Fence]:
    """Commits. Ends the backends of earlier attempts before and after the bump: before, lest one that hangs holds
    the fence row; after, lest one that was on its way goes on."""
    which = {
        "pipeline": table.pipeline_id,
        "table": table.name,
        "target": target_of(table),
        "keys": sorted(set(chunk_keys)),
    }
    with connection.pipeline():
        connection.execute(_END_BACKENDS, {**which, "newer": 0})
        bumped = connection.execute(_BUMP, {**which, "holder": holder})
        connection.commit()
        connection.execute(_END_BACKENDS, {**which, "newer": 1})
        fences = {key: Fence(token=token, load_id=load_id) for key, token, load_id in bumped.fetchall()}
        connection.commit()
    return fences


def check_fence(connection: Connection, load: Load, *, lock: bool) -> None:
    """With `lock`, no claim can bump the fence before the transaction ends."""
    row = connection.execute(_TOKEN + (" FOR UPDATE" if lock else ""), _chunk(load)).fetchone()
    if row is None or row[0] != load.fence.token:
        raise LeaseLost(
            f"chunk {load.slice.chunk.key} was taken over by another worker, so this attempt publishes nothing",
            where=load.table.label,
        )


def wait_for_fence(connection: Connection, load: Load) -> None:
    """Returns when no transaction holds the chunk's fence row."""
    connection.execute(_TOKEN + " FOR UPDATE", _chunk(load)).fetchone()


def name_attempt(connection: Connection, load: Load) -> None:
    """For this transaction `hakiri:<chunk>:<token>:<label>`: a later claim of the chunk finds and ends what carries a
    lower token."""
    name = attempt_name(load.table, load.slice.chunk.key, load.fence.token)
    connection.execute("SELECT set_config('application_name', %s, true)", (name,))


def attempt_name(table: Table, chunk_key: str, token: int) -> str:
    mark = chunk_mark(table.pipeline_id, table.name, target_of(table), chunk_key)
    return fitting(f"{APPLICATION_NAME_PREFIX}:{mark}:{token}:{table.label}")


def fitting(name: str) -> str:
    """As `application_name` takes it."""
    return name.encode("ascii", "replace")[:_NAME_BYTES].decode()


def chunk_mark(pipeline_id: str, table_name: str, target: str, chunk_key: str) -> str:
    """Names a chunk in the few bytes that `application_name` has room for."""
    text = "\x1f".join((pipeline_id, table_name, target, chunk_key))
    return hashlib.md5(text.encode(), usedforsecurity=False).hexdigest()[:16]


def _chunk(load: Load) -> tuple[str, str, str, str]:
    return load.table.pipeline_id, load.table.name, target_of(load.table), load.slice.chunk.key
