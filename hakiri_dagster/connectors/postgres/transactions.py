"""The transactions that are open at a PostgreSQL source: what a horizon is judged by."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, Final

import psycopg
from psycopg import Connection
from psycopg.rows import TupleRow, dict_row

from hakiri_dagster.connectors.postgres.config import APPLICATION_NAME, SourceConfig
from hakiri_dagster.connectors.postgres.connection import session_settings
from hakiri_dagster.connectors.postgres.cursors import Cursor
from hakiri_dagster.planning.horizon import OpenTransaction, SourceTransactions, UnknownHorizon
from hakiri_dagster.planning.windows import to_position

# The statistics are those of the moment, not of the transaction's snapshot; they are remembered until it ends.
_CLEAR: Final = "SELECT pg_stat_clear_snapshot()"

# What is read with the table: what lies beneath a view, partitions and children.
_BENEATH: Final = """
WITH RECURSIVE beneath (oid) AS (
    SELECT %(table)s::pg_catalog.regclass::pg_catalog.oid
    UNION
    SELECT read.oid
    FROM beneath
    CROSS JOIN LATERAL (
        SELECT d.refobjid AS oid
        FROM pg_catalog.pg_rewrite w
        JOIN pg_catalog.pg_class v ON v.oid = w.ev_class AND v.relkind = 'v'
        JOIN pg_catalog.pg_depend d ON d.classid = 'pg_catalog.pg_rewrite'::pg_catalog.regclass AND d.objid = w.oid
            AND d.refclassid = 'pg_catalog.pg_class'::pg_catalog.regclass AND d.refobjid <> w.ev_class
        WHERE w.ev_class = beneath.oid AND w.ev_type = '1'
        UNION ALL
        SELECT i.inhrelid FROM pg_catalog.pg_inherits i WHERE i.inhparent = beneath.oid
    ) AS read
)
"""

# Our own sessions only read. Workers of parallel queries have a leader that is listed, autovacuum writes no rows. A
# role without pg_read_all_stats sees no more of the others than that they are there.
_OPEN: Final = """
, session AS MATERIALIZED (
    SELECT s.pid, s.backend_start, s.xact_start, s.application_name, s.usename, s.state,
           s.state IS NULL AND s.query = '<insufficient privilege>' AS hidden,
           s.state IS NOT DISTINCT FROM 'disabled' AS untracked
    FROM pg_catalog.pg_stat_activity s
    WHERE s.datname = pg_catalog.current_database() AND s.pid <> pg_catalog.pg_backend_pid()
      AND s.usesysid IS NOT NULL AND s.backend_type IS DISTINCT FROM 'parallel worker'
      AND NOT (s.usename = session_user AND s.application_name LIKE %(ours)s)
      AND (s.xact_start IS NOT NULL OR s.state IS NULL OR s.state = 'disabled')
)
SELECT
    pg_catalog.clock_timestamp() AS clock,
    pg_catalog.pg_is_in_recovery() AS is_replica,
    CASE WHEN pg_catalog.pg_is_in_recovery() THEN pg_catalog.pg_last_xact_replay_timestamp() END AS replayed,
    CASE WHEN pg_catalog.pg_is_in_recovery() THEN pg_catalog.pg_last_wal_replay_lsn()
         ELSE pg_catalog.pg_current_wal_insert_lsn() END::text AS wal,
    session_user::text AS reader,
    (SELECT pg_catalog.json_agg(session) FROM session) AS sessions,
    (SELECT pg_catalog.json_agg(p) FROM pg_catalog.pg_prepared_xacts p
     WHERE p.database = pg_catalog.current_database()) AS prepared,
    ARRAY(SELECT DISTINCT c.relkind::text FROM beneath JOIN pg_catalog.pg_class c ON c.oid = beneath.oid) AS kinds,
    EXISTS (SELECT FROM pg_catalog.pg_subscription_rel WHERE srrelid IN (SELECT oid FROM beneath)) AS is_subscribed
"""

# What a cursor's default draws its numbers from: the sequence of an identity or a serial, or that of any other default.
# A view's column may have any name beneath it.
_SEQUENCES: Final = """
SELECT drawn.oid::pg_catalog.regclass::text, s.seqcache, s.seqincrement, s.seqcycle
FROM beneath
JOIN pg_catalog.pg_attribute a ON a.attrelid = beneath.oid AND a.attnum > 0
JOIN LATERAL (
    SELECT d.objid AS oid FROM pg_catalog.pg_depend d
    WHERE d.refclassid = 'pg_catalog.pg_class'::regclass AND d.refobjid = a.attrelid AND d.refobjsubid = a.attnum
      AND d.classid = 'pg_catalog.pg_class'::regclass AND d.deptype IN ('a', 'i')
    UNION ALL
    SELECT d.refobjid FROM pg_catalog.pg_attrdef f JOIN pg_catalog.pg_depend d ON d.objid = f.oid
    WHERE f.adrelid = a.attrelid AND f.adnum = a.attnum
      AND d.classid = 'pg_catalog.pg_attrdef'::regclass AND d.refclassid = 'pg_catalog.pg_class'::regclass
) drawn ON true
JOIN pg_catalog.pg_sequence s ON s.seqrelid = drawn.oid
WHERE a.attname = %(column)s
   OR EXISTS (SELECT FROM pg_catalog.pg_class v WHERE v.oid = %(table)s::pg_catalog.regclass AND v.relkind = 'v')
"""

# Of a replica that has replayed no commit since it was started, as of no replica that stands still, the clock says
# nothing: it has come at least as far as this.
_RESTARTPOINT: Final = "SELECT checkpoint_time FROM pg_catalog.pg_control_checkpoint()"

_UNSUPPORTED: Final = (
    psycopg.errors.UndefinedFunction,
    psycopg.errors.UndefinedTable,
    psycopg.errors.UndefinedColumn,
    psycopg.errors.FeatureNotSupported,
    psycopg.errors.InsufficientPrivilege,
)
"""What servers answer that speak PostgreSQL's protocol and are none, or are an old one."""

_GRANT: Final = "GRANT pg_read_all_stats TO {reader}"


def list_transactions(
    connection: Connection[TupleRow],
    config: SourceConfig,
    cursor: Cursor,
    qualified: str,
    *,
    again: bool = False,
) -> SourceTransactions:
    """List the transactions that are open now. `qualified` is the table's quoted name.

    It has to be called after the extent was read and before the rows are: a transaction that begins in between is then
    either listed, or stamps its rows with values beyond the extent. `again`: it was called in this transaction before.
    """
    table = {"table": qualified, "column": cursor.name, "ours": f"%{APPLICATION_NAME}"}
    try:
        if again:
            connection.execute(_CLEAR)
        with connection.cursor(row_factory=dict_row) as rows:
            row = rows.execute(_BENEATH + _OPEN, table).fetchone()
        assert row is not None, "a SELECT without FROM answers one row"
        came_to = row["replayed"]
        if row["is_replica"] and came_to is None:
            (came_to,) = connection.execute(_RESTARTPOINT).fetchone() or (None,)
        unknown = _unknown_by_server(row) or _unknown_by_kind(row)
        if unknown is None and cursor.kind == "numeric":
            unknown = _unknown_by_sequence(connection.execute(_BENEATH + _SEQUENCES, table).fetchall(), cursor)
    except _UNSUPPORTED as error:
        connection.rollback()
        connection.execute(session_settings(config))
        return SourceTransactions(_now(), config.place, unknown=_not_supported(error, config))
    return SourceTransactions(
        clock=to_position(row["clock"] if came_to is None else came_to),
        place=config.place,
        open=(
            *(_session(one) for one in row["sessions"] or () if one["xact_start"] is not None),
            *map(_prepared, row["prepared"] or ()),
        ),
        unknown=unknown,
        wal=row["wal"],
        is_replica=row["is_replica"],
    )


def _unknown_by_server(row: Mapping[str, Any]) -> UnknownHorizon | None:
    if row["is_replica"]:
        return UnknownHorizon(
            "the source is a hot standby, which does not list the transactions that are open at its primary",
            "read from the primary, or set `load.lag` to more than the longest transaction takes",
        )
    hidden = sum(session["hidden"] for session in row["sessions"] or ())
    if hidden:
        reader = psycopg.sql.Identifier(row["reader"]).as_string()
        return UnknownHorizon(
            f"the role {row['reader']} may not see since when {hidden} session(s) of other roles have been in a "
            "transaction",
            f"run `{_GRANT.format(reader=reader)}` at the source",
        )
    untracked = sorted({session["usename"] or "" for session in row["sessions"] or () if session["untracked"]})
    if untracked:
        return UnknownHorizon(
            f"sessions of {', '.join(untracked)} have track_activities off, so that the source does not tell since "
            "when they have been in a transaction",
            "set `track_activities = on` for these roles at the source and let them connect again, or set `load.lag` "
            "to more than the longest transaction takes",
        )
    return None


def _unknown_by_kind(row: Mapping[str, Any]) -> UnknownHorizon | None:
    """Name what makes rows appear whose transaction, as far as this server knows, has long ended."""
    if "f" in row["kinds"]:
        return UnknownHorizon(
            "it is a foreign table, or reads one, and the transactions that write it are open elsewhere",
            "read from the server that has the table, or set `load.lag`",
        )
    if "m" in row["kinds"]:
        return UnknownHorizon(
            "it is a materialized view, or reads one, in which rows appear when it is refreshed",
            "set `load.lag` to more than the time between two refreshes",
        )
    if row["is_subscribed"]:
        return UnknownHorizon(
            "a subscription fills it, and the transactions that wrote its rows were open at the publisher",
            "read from the publisher, or set `load.lag` to more than the longest transaction there takes",
        )
    return None


def _unknown_by_sequence(sequences: Sequence[TupleRow], cursor: Cursor) -> UnknownHorizon | None:
    for sequence, cache, increment, cycles in sequences:
        lag = "set `load.lag` to a number of ids"
        if increment != 1 or cycles:  # which applications may rely on
            setting, hint = (
                f"INCREMENT BY {increment}" if increment != 1 else "CYCLE",
                f"{lag}, or take a time as cursor",
            )
        elif cache != 1:
            setting = f"CACHE {cache}"
            hint = f"run `ALTER SEQUENCE {sequence} CACHE 1` at the source and let its sessions connect again, or {lag}"
        else:
            continue
        return UnknownHorizon(
            f"the sequence {sequence} of {cursor.name} has {setting}, so its numbers are not drawn in their order", hint
        )
    return None


def _not_supported(error: psycopg.Error, config: SourceConfig) -> UnknownHorizon:
    reason = config.without_secrets(str(error)).splitlines()[0]
    return UnknownHorizon(
        f"the source does not list its open transactions: {reason}",
        "set `load.lag` to more than the longest transaction takes",
    )


def _session(row: Mapping[str, Any]) -> OpenTransaction:
    return OpenTransaction(
        key=f"{row['pid']}/{row['backend_start']}/{row['xact_start']}",
        began_at=to_position(datetime.fromisoformat(row["xact_start"])),
        pid=row["pid"],
        application=row["application_name"] or "",
        user=row["usename"] or "",
        state=row["state"] or "",
    )


def _prepared(row: Mapping[str, Any]) -> OpenTransaction:
    return OpenTransaction(
        key=f"prepared/{row['transaction']}/{row['gid']}",
        began_at=to_position(datetime.fromisoformat(row["prepared"])),
        user=row["owner"] or "",
        prepared=row["gid"],
    )


def _now() -> int:
    return to_position(datetime.now(UTC))
