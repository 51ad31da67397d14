"""Which post-hooks published loads still owe: remembered in the transaction that publishes."""

from __future__ import annotations

from collections.abc import Sequence

from psycopg import errors

from hakiri_dagster.destinations.contract import Load
from hakiri_dagster.destinations.postgres.catalog import target_of
from hakiri_dagster.destinations.postgres.connection import Connection
from hakiri_dagster.manifest.tables import Table
from hakiri_dagster.planning.hooks import HookName, OwedHook

_NOTE = """
INSERT INTO hakiri.owed_hook AS owed (pipeline_id, table_name, target, hook, described, load_ids)
SELECT %(pipeline)s, %(table)s, %(target)s, hook, described, ARRAY[%(load_id)s::bigint]
FROM unnest(%(hooks)s::text[], %(texts)s::text[]) AS named (hook, described) ORDER BY hook
ON CONFLICT (pipeline_id, table_name, target, hook) DO UPDATE SET load_ids = owed.load_ids || excluded.load_ids
"""

_OWED = """
SELECT hook, described, load_ids FROM hakiri.owed_hook
WHERE pipeline_id = %(pipeline)s AND table_name = %(table)s AND target = %(target)s
"""

# Loads that were published while the hook ran still owe it.
_TAKE_OFF = """
UPDATE hakiri.owed_hook
SET load_ids = ARRAY(SELECT pg_catalog.unnest(load_ids) EXCEPT SELECT pg_catalog.unnest(%(load_ids)s::bigint[]))
WHERE pipeline_id = %(pipeline)s AND table_name = %(table)s AND target = %(target)s AND hook = %(hook)s
"""
_FORGET = """
DELETE FROM hakiri.owed_hook
WHERE pipeline_id = %(pipeline)s AND table_name = %(table)s AND target = %(target)s AND load_ids = '{}'
"""

_FORGET_ALL = """
DELETE FROM hakiri.owed_hook WHERE pipeline_id = %(pipeline)s AND table_name = %(table)s AND target = %(target)s
"""


def note(connection: Connection, load: Load, hooks: Sequence[HookName]) -> None:
    if hooks:
        keys, texts = [hook.key for hook in hooks], [hook.text for hook in hooks]
        whose = {**_of(load.table), "load_id": load.fence.load_id}
        connection.execute(_NOTE, {**whose, "hooks": keys, "texts": texts})


def owed(connection: Connection, table: Table) -> tuple[OwedHook, ...]:
    """None in a destination that has no such table yet."""
    try:
        rows = connection.execute(_OWED, _of(table)).fetchall()
    except (errors.UndefinedTable, errors.InvalidSchemaName):
        return ()
    return tuple(OwedHook(HookName(hook, text), tuple(sorted(load_ids))) for hook, text, load_ids in rows)


def settle(connection: Connection, table: Table, hook: OwedHook) -> None:
    connection.execute(_TAKE_OFF, {**_of(table), "hook": hook.name.key, "load_ids": list(hook.load_ids)})
    connection.execute(_FORGET, _of(table))


def forget(connection: Connection, table: Table) -> None:
    """Of a target that is gone: no ledger knows its loads."""
    connection.execute(_FORGET_ALL, _of(table))


def _of(table: Table) -> dict[str, object]:
    return {"pipeline": table.pipeline_id, "table": table.name, "target": target_of(table)}
