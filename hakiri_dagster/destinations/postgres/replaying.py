"""A replay's other half: rows leave the quarantine in the transaction that puts them into the target."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import chain

from psycopg import sql

from hakiri_dagster.destinations.contract import BadRow, Candidate, Load
from hakiri_dagster.destinations.postgres import fence, loading, quarantine
from hakiri_dagster.destinations.postgres.connection import Connection, Connections, relation
from hakiri_dagster.destinations.quarantine_contract import Verdict, Verdicts
from hakiri_dagster.errors import DestinationUnavailable

_MAKE = (
    "CREATE TEMPORARY TABLE hakiri_tried (id bigint NOT NULL) ON COMMIT DROP",
    "CREATE TEMPORARY TABLE hakiri_told (id bigint NOT NULL, rule text NOT NULL, message text, on_fail text NOT NULL) "
    "ON COMMIT DROP",
    "CREATE TEMPORARY TABLE hakiri_overtaken (id bigint NOT NULL) ON COMMIT DROP",
)
_DROP = "DROP TABLE pg_temp.hakiri_tried, pg_temp.hakiri_told, pg_temp.hakiri_overtaken"
_FILL_IDS = sql.SQL("COPY pg_temp.{} (id) FROM STDIN")
_FILL_TOLD = "COPY pg_temp.hakiri_told (id, rule, message, on_fail) FROM STDIN"

# Rows that are loaded, and that a rule warns of: the load that brought them into the target is this one.
_KEEP_WARNED = """
INSERT INTO {place} ("pipelineId", "runId", "nodeId", "ruleId", "row", message, "sourceFile", "sourceLine", "chunkKey",
                     "loadId", attempt, target, "onFail")
SELECT kept."pipelineId", %(run)s, kept."nodeId", told.rule, kept."row", told.message, kept."sourceFile",
       kept."sourceLine", kept."chunkKey", %(load_id)s, %(attempt)s, kept.target, 'warn'
FROM {place} AS kept JOIN pg_temp.hakiri_told AS told USING (id)
WHERE told.on_fail = 'warn' AND NOT EXISTS (
    SELECT FROM pg_temp.hakiri_told AS held WHERE held.id = told.id AND held.on_fail = 'skip')
"""

# What stays is in the quarantine for the reason that holds today.
_RETELL = """
UPDATE {place} AS kept SET "ruleId" = told.rule, message = told.message
FROM pg_temp.hakiri_told AS told
WHERE told.id = kept.id AND told.on_fail = 'skip' AND told.rule <> ''
  AND (kept."ruleId", kept.message) IS DISTINCT FROM (told.rule, told.message)
"""

_DELETE_LOADED = """
DELETE FROM {place} AS kept USING pg_temp.hakiri_tried AS tried
WHERE tried.id = kept.id
  AND NOT EXISTS (SELECT FROM pg_temp.hakiri_told AS held WHERE held.id = tried.id AND held.on_fail = 'skip')
  AND NOT EXISTS (SELECT FROM pg_temp.hakiri_overtaken AS gone WHERE gone.id = tried.id)
"""

_DELETE_OVERTAKEN = """
DELETE FROM {place} AS kept USING pg_temp.hakiri_overtaken AS gone WHERE gone.id = kept.id
"""


def prepare(connections: Connections, load: Load, candidate: Candidate, verdicts: Verdicts) -> loading.OpenLoad:
    def also(connection: Connection, rows: int, refused: Iterable[BadRow]) -> None:
        settle(connection, load, verdicts, rows, refused)

    return loading.prepare(connections, load, candidate, also)


def settle(connection: Connection, load: Load, verdicts: Verdicts, rows: int, refused: Iterable[BadRow]) -> None:
    """`rows` are those of the candidate, less what PostgreSQL has refused of it: just as many leave the quarantine, or
    somebody else was here meanwhile, and nothing is published. The fence first, as whoever sets rows aside takes it."""
    fence.check_fence(connection, load, lock=True)
    schema, name = load.table.quarantine_table
    quarantine.complete(connection, schema, name, quarantine.columns_of(connection, schema, name))
    for statement in _MAKE:
        connection.execute(statement)
    _fill_ids(connection, "hakiri_tried", verdicts.tried())
    _fill_ids(connection, "hakiri_overtaken", verdicts.overtaken())
    with connection.cursor() as cursor, cursor.copy(_FILL_TOLD) as copy:
        for one in chain(verdicts.told(), map(_verdict, refused)):
            copy.write_row((one.kept_id, one.rule, one.message.replace("\0", "\\u0000"), one.on_fail))
    for own in ("tried", "told", "overtaken"):
        connection.execute(sql.SQL("ANALYZE pg_temp.{}").format(sql.Identifier(f"hakiri_{own}")))
    place = relation(schema, name)
    asked = {"run": load.run_id, "load_id": load.fence.load_id, "attempt": load.attempt}
    connection.execute(sql.SQL(_KEEP_WARNED).format(place=place), asked)
    connection.execute(sql.SQL(_RETELL).format(place=place))
    connection.execute(sql.SQL(_DELETE_OVERTAKEN).format(place=place))
    loaded = connection.execute(sql.SQL(_DELETE_LOADED).format(place=place)).rowcount
    connection.execute(_DROP)
    if loaded != rows:
        raise DestinationUnavailable(
            f"{rows} row(s) were read from the quarantine to be loaded, and {loaded} of them are still there: somebody "
            "else has loaded or deleted some meanwhile, so nothing was changed",
            where=load.table.label,
            hint="the replay is tried again",
        )


def _verdict(refused: BadRow) -> Verdict:
    assert refused.kept_id is not None  # the candidate bears it
    return Verdict(refused.kept_id, refused.rule, refused.message, refused.on_fail)


def _fill_ids(connection: Connection, name: str, ids: Iterable[int]) -> None:
    with connection.cursor() as cursor, cursor.copy(_FILL_IDS.format(sql.Identifier(name))) as copy:
        for one in ids:
            copy.write_row((one,))
