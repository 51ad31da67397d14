"""Which pipelines and tables have published the rows of a target, and for which project.

The ledger says who has rows in a target; `hakiri.publisher` adds which project that was. A claim records the project;
a publish checks, in its own transaction, that no other name or project has come in between.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import LiteralString

from psycopg import sql

from hakiri_dagster.destinations.postgres import catalog
from hakiri_dagster.destinations.postgres.catalog import stored_name, target_of
from hakiri_dagster.destinations.postgres.connection import Connection, relation
from hakiri_dagster.errors import DestinationError
from hakiri_dagster.manifest.tables import Table
from hakiri_dagster.planning.publishers import Move, ProjectClaim, ProjectIdentity, Publisher, TargetPublishers

# One step of the index a publisher, however many loads each has made.
_LIVE: LiteralString = """
WITH RECURSIVE live AS (
    (SELECT pipeline_id, table_name FROM hakiri.ledger
     WHERE target = %(target)s AND superseded_by IS NULL AND rows > 0
     ORDER BY pipeline_id, table_name LIMIT 1)
  UNION ALL
    SELECT next.pipeline_id, next.table_name
    FROM live CROSS JOIN LATERAL (
        SELECT pipeline_id, table_name FROM hakiri.ledger
        WHERE target = %(target)s AND superseded_by IS NULL AND rows > 0
          AND (pipeline_id, table_name) > (live.pipeline_id, live.table_name)
        ORDER BY pipeline_id, table_name LIMIT 1) AS next)
"""

_PUBLISHERS: LiteralString = """
SELECT live.pipeline_id, live.table_name, p.project_id, p.project_name, p.source
FROM live LEFT JOIN hakiri.publisher AS p
  ON p.target = %(target)s AND p.pipeline_id = live.pipeline_id AND p.table_name = live.table_name
"""

_CHUNK_COUNT: LiteralString = """
SELECT count(DISTINCT chunk_key) FROM hakiri.ledger
WHERE target = %s AND pipeline_id = %s AND table_name = %s AND superseded_by IS NULL AND rows > 0
"""

_NEWEST_RUN: LiteralString = """
SELECT run_id FROM hakiri.ledger
WHERE target = %s AND pipeline_id = %s AND table_name = %s AND superseded_by IS NULL AND rows > 0
ORDER BY load_id DESC
LIMIT 1
"""

_RECORDED: LiteralString = """
SELECT project_id, project_name, source FROM hakiri.publisher
WHERE target = %(target)s AND pipeline_id = %(pipeline)s AND table_name = %(table)s
"""

# A project that has come in since the survey is not overwritten: only what the survey saw is replaced.
_RECORD: LiteralString = """
INSERT INTO hakiri.publisher AS p (target, pipeline_id, table_name, project_id, project_name, source)
VALUES (%(target)s, %(pipeline)s, %(table)s, %(id)s, %(name)s, %(source)s)
ON CONFLICT (target, pipeline_id, table_name) DO UPDATE
SET project_id = excluded.project_id, project_name = excluded.project_name, source = excluded.source,
    claimed_at = clock_timestamp()
WHERE p.project_id IS NOT DISTINCT FROM %(seen_id)s::text AND p.project_name IS NOT DISTINCT FROM %(seen_name)s::text
  AND p.source IS NOT DISTINCT FROM %(seen_source)s::text
RETURNING true
"""

# A load without rows tells the target of a name, too.
_KNOWS_MOVE: LiteralString = """
SELECT EXISTS (SELECT FROM hakiri.ledger
               WHERE pipeline_id = %(old_pipeline)s AND table_name = %(old_table)s AND target = %(target)s
                 AND superseded_by IS NULL)
    OR %(resumed)s AND EXISTS (SELECT FROM hakiri.ledger
                               WHERE pipeline_id = %(pipeline)s AND table_name = %(table)s AND target = %(target)s
                                 AND superseded_by IS NULL)
"""

_ELSEWHERE: LiteralString = """
SELECT DISTINCT ledger.target, p.project_id, p.project_name, p.source
FROM hakiri.ledger LEFT JOIN hakiri.publisher AS p USING (target, pipeline_id, table_name)
WHERE pipeline_id = %(old_pipeline)s AND table_name = %(old_table)s AND ledger.target <> %(target)s
  AND superseded_by IS NULL AND rows > 0
ORDER BY ledger.target
"""

_LOADS_ELSEWHERE: LiteralString = """
SELECT load_id, target FROM hakiri.ledger
WHERE load_id = ANY(%(loads)s) AND pipeline_id = %(pipeline)s AND table_name = %(table)s AND target <> %(target)s
  AND superseded_by IS NULL
"""

_OID: LiteralString = """
SELECT pg_class.oid FROM pg_class JOIN pg_namespace ON pg_namespace.oid = relnamespace
WHERE nspname = %s AND relname = %s AND relkind IN ('r', 'p')
"""

_LIVE_NAMES: LiteralString = "SELECT pipeline_id, table_name FROM live"

_TARGET_LOCK: LiteralString = """
SELECT pg_advisory_xact_lock(pg_catalog.hashtextextended('hakiri ledger of ' || %s::text, 0::bigint))
"""

_FORGET_VANISHED: LiteralString = """
UPDATE hakiri.ledger SET superseded_by = 0
WHERE target = %s AND pipeline_id = %s AND table_name = %s AND superseded_by IS NULL
"""


def read_publishers(connection: Connection, table: Table, ours: ProjectIdentity) -> TargetPublishers:
    """Return who has published the rows that the target holds. Of an empty target that is only another project with
    the same names, and a missing target has no publishers."""
    if connection.execute("SELECT to_regclass('hakiri.publisher')").fetchone() == (None,):
        return TargetPublishers()
    target, recorded = target_of(table), recorded_project(connection, table)
    found = connection.execute(_LIVE + _PUBLISHERS, {"target": target}).fetchall()
    doubtful = [row for row in found if _is_doubtful(row, table, ours)]
    has_own = any(row[:2] == (table.pipeline_id, table.name) and row not in doubtful for row in found)
    if not doubtful or catalog.find(connection, table.target_schema, table.target_name) is None:
        return TargetPublishers(recorded, has_own=has_own)
    if not _holds_rows(connection, table.target_schema, table.target_name):
        # entries of the table's own name would still count as published by it
        doubtful = [row for row in doubtful if row[:2] == (table.pipeline_id, table.name)]
    return TargetPublishers(recorded, tuple(_publisher(connection, target, row) for row in doubtful), has_own)


def find_published_elsewhere(connection: Connection, move: Move, *, resumed: bool) -> dict[str, Publisher]:
    """Return by target the rows that other targets hold under the old name, if the table's own target knows no loads of
    that name. A rename that is `resumed` may have given them the new name already."""
    if connection.execute("SELECT to_regclass('hakiri.publisher')").fetchone() == (None,):
        return {}
    own = _of(move.table)
    old = {"old_pipeline": move.old_pipeline, "old_table": move.old_table}
    if connection.execute(_KNOWS_MOVE, {**own, **old, "resumed": resumed}).fetchone() == (True,):
        return {}
    found = connection.execute(_ELSEWHERE, {"target": own["target"], **old}).fetchall()
    return {
        target: _publisher(connection, target, (move.old_pipeline, move.old_table, *project))
        for target, *project in found
        if _holds_rows(connection, *catalog.split_target(target))
    }


def find_loads_elsewhere(connection: Connection, table: Table, loads: Collection[int]) -> dict[int, str]:
    """Return those of the table's loads that were published to another target, which holds rows still."""
    if connection.execute("SELECT to_regclass('hakiri.ledger')").fetchone() == (None,):
        return {}
    found: dict[int, str] = dict(connection.execute(_LOADS_ELSEWHERE, {**_of(table), "loads": list(loads)}).fetchall())
    filled = {target for target in set(found.values()) if _holds_rows(connection, *catalog.split_target(target))}
    return {load_id: target for load_id, target in found.items() if target in filled}


def _is_doubtful(row: tuple[object, ...], table: Table, ours: ProjectIdentity) -> bool:
    pipeline_id, name, *project = row
    recorded = _identity(*project)
    return (pipeline_id, name) != (table.pipeline_id, table.name) or recorded not in (None, ours)


def _publisher(connection: Connection, target: str, row: tuple[object, ...]) -> Publisher:
    pipeline_id, name, *project = row
    of = (target, pipeline_id, name)
    (chunks,) = connection.execute(_CHUNK_COUNT, of).fetchone() or (0,)
    (newest,) = connection.execute(_NEWEST_RUN, of).fetchone() or (None,)
    return Publisher(str(pipeline_id), str(name), chunks, _identity(*project), newest)


def _identity(id_: object = None, name: object = None, source: object = None) -> ProjectIdentity | None:
    if name is None:
        return None
    return ProjectIdentity(None if id_ is None else str(id_), str(name), None if source is None else str(source))


def _holds_rows(connection: Connection, schema: str, name: str) -> bool:
    """A policy that hides rows makes a target look empty that is not."""
    schema, name = stored_name(schema), stored_name(name)
    found = connection.execute(_OID, (schema, name)).fetchone()
    if found is None:
        return False
    query = sql.SQL("SELECT pg_catalog.row_security_active({}::oid) OR EXISTS (SELECT FROM {})").format(
        sql.Literal(found[0]), relation(schema, name)
    )
    return connection.execute(query).fetchone() == (True,)


def recorded_project(connection: Connection, table: Table) -> ProjectIdentity | None:
    """Return for which project the table was last claimed in its target."""
    row = connection.execute(_RECORDED, _of(table)).fetchone()
    return None if row is None else _identity(*row)


def record_project(connection: Connection, table: Table, claim: ProjectClaim) -> None:
    """Record for which project the table is claimed."""
    ours, seen = claim.ours, claim.seen
    if recorded_project(connection, table) == ours:
        return
    lock_target(connection, table)
    published = (table.pipeline_id, table.name) in _live(connection, table)
    exists = catalog.find(connection, table.target_schema, table.target_name) is not None
    if seen is not None and published and exists and not claim.rows_seen:
        raise _overtaken(table, f"the project {seen} has published to the target")
    values = {
        **_of(table),
        "id": ours.id,
        "name": ours.name,
        "source": ours.source,
        "seen_id": None if seen is None else seen.id,
        "seen_name": None if seen is None else seen.name,
        "seen_source": None if seen is None else seen.source,
    }
    if connection.execute(_RECORD, values).fetchone() is None:
        raise _overtaken(table, "another project has claimed the target")


def forget_vanished(connection: Connection, table: Table) -> None:
    """Drop from the ledger what other tables have published to a target that is empty by now."""
    others = _undeclared(connection, table)
    if others and not _holds_rows(connection, table.target_schema, table.target_name):
        for pipeline_id, name in others:
            connection.execute(_FORGET_VANISHED, (target_of(table), pipeline_id, name))


def refuse_other_publishers(connection: Connection, table: Table) -> None:
    """Check in the publish transaction, under the lock on the target's entries, that since the survey no rename has
    moved the table's loads to another name, and no other project has published."""
    key = table.project
    if key is None:
        return
    for pipeline_id, name in _undeclared(connection, table):
        raise _overtaken(table, f"{pipeline_id}/{name} has published to the target")
    recorded = recorded_project(connection, table)
    if recorded is not None and (recorded.id, recorded.name) != (key.id, key.name):
        raise _overtaken(table, f"the project {recorded} has claimed the target")


def lock_target(connection: Connection, table: Table) -> None:
    """Publishes to one target pass here one by one, so that each sees what the others have entered into the ledger."""
    connection.execute(_TARGET_LOCK, (target_of(table),))


def _undeclared(connection: Connection, table: Table) -> Collection[tuple[str, str]]:
    if table.project is None:
        return ()
    declared = table.project.publishers_of(table)
    return [of for of in _live(connection, table) if of not in declared]


def _live(connection: Connection, table: Table) -> list[tuple[str, str]]:
    found = connection.execute(_LIVE + _LIVE_NAMES, {"target": target_of(table)})
    return [(pipeline_id, name) for pipeline_id, name in found]


def _overtaken(table: Table, what: str) -> DestinationError:
    return DestinationError(
        f"{what} meanwhile, so this attempt publishes nothing",
        where=table.label,
        hint="`hakiri plan` says whose rows the target holds, and what can be done",
    )


def _of(table: Table) -> dict[str, str]:
    return {"target": target_of(table), "pipeline": table.pipeline_id, "table": table.name}
