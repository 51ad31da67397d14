"""Brings an audit DB to the version of this code: one transaction, safe when two processes start at once."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from sqlalchemy import Connection, Table, func, insert, inspect, select, text, update
from sqlalchemy.schema import CreateSchema

from hakiri_dagster.audit.engine import Transactions
from hakiri_dagster.audit.schema import (
    ACCEPTED_SCHEMA,
    ALERT,
    AUDIT_VERSION,
    BUDGET_USE,
    CURSOR_HISTORY,
    DELIVERIES,
    DELIVERY_ENDS,
    METADATA,
    PASS_PLACE,
    PIPELINE_CHUNKS,
    PIPELINE_RENAME,
    PIPELINE_RUN,
    POSTGRES_SCHEMA,
    RATE_BUDGET,
    REWIND,
    REWOUND_CHUNK,
    RUN_OPEN,
    SCHEMA_LOG,
    SILENT_PART,
    SOURCE_LOOK,
    TABLE_STATE,
)
from hakiri_dagster.errors import AuditTooNew

Step = Callable[[Connection], None]

_LOCK: Final = 0x68616B697269  # "hakiri"


def _first(connection: Connection) -> None:
    METADATA.create_all(connection)


def _second(connection: Connection) -> None:
    """Runs tell who runs them. The first step makes today's tables, so a new audit DB has the column already."""
    _add_column(connection, PIPELINE_RUN, "holder_node", "TEXT")


def _third(connection: Connection) -> None:
    """Alerts."""
    ALERT.create(connection, checkfirst=True)


def _schema_log(connection: Connection) -> None:
    """What sources change is remembered. The first step makes these tables in a new audit DB."""
    METADATA.create_all(connection, [ACCEPTED_SCHEMA, SCHEMA_LOG])


def _rewinds(connection: Connection) -> None:
    """What somebody asked to be loaded again, and why."""
    METADATA.create_all(connection, [REWIND, REWOUND_CHUNK])
    _add_column(connection, PIPELINE_CHUNKS, "rewind_id", "BIGINT")


def _gaps(connection: Connection) -> None:
    """Chunks of which the ledger knows nothing any more."""
    _add_column(connection, PIPELINE_CHUNKS, "gap", "INTEGER")


def _add_column(connection: Connection, table: Table, name: str, kind: str) -> None:
    known = {column["name"] for column in inspect(connection).get_columns(table.name, schema=_schema_of(connection))}
    if name not in known:
        place = f"{POSTGRES_SCHEMA}.{table.name}" if _schema_of(connection) else table.name
        connection.execute(text(f"ALTER TABLE {place} ADD COLUMN {name} {kind}"))


def _budgets(connection: Connection) -> None:
    METADATA.create_all(connection, [RATE_BUDGET, BUDGET_USE])


def _pass_places(connection: Connection) -> None:
    METADATA.create_all(connection, [PASS_PLACE])


def _deliveries(connection: Connection) -> None:
    """What reached the triggers of pipelines."""
    METADATA.create_all(connection, [DELIVERIES])


def _source_upper(connection: Connection) -> None:
    """How far the source reached when it was last looked at."""
    _add_column(connection, TABLE_STATE, "source_upper", "TEXT")


def _cursor_kinds(connection: Connection) -> None:
    """Segments tell where the next one begins."""
    _add_column(connection, PIPELINE_CHUNKS, "token", "TEXT")


def _source_looks(connection: Connection) -> None:
    """What sensors remember of sources."""
    METADATA.create_all(connection, [SOURCE_LOOK])


def _open_runs(connection: Connection) -> None:
    """They are looked for twice a minute, among all that ever ran."""
    RUN_OPEN.create(connection, checkfirst=True)


def _silent_parts(connection: Connection) -> None:
    METADATA.create_all(connection, [SILENT_PART])


def _delivery_ends(connection: Connection) -> None:
    """Whoever closes a batch forgets old deliveries without reading all of them."""
    DELIVERY_ENDS.create(connection, checkfirst=True)


def _cursor_history(connection: Connection) -> None:
    """Which transactions were open when a source's cursor was read."""
    METADATA.create_all(connection, [CURSOR_HISTORY])


def _renames(connection: Connection) -> None:
    METADATA.create_all(connection, [PIPELINE_RENAME])


def _schema_of(connection: Connection) -> str | None:
    return POSTGRES_SCHEMA if connection.dialect.name == "postgresql" else None


STEPS: Final[tuple[Step, ...]] = (
    _first,
    _second,
    _third,
    _schema_log,
    _rewinds,
    _gaps,
    _budgets,
    _pass_places,
    _deliveries,
    _source_upper,
    _cursor_kinds,
    _source_looks,
    _open_runs,
    _silent_parts,
    _delivery_ends,
    _cursor_history,
    _renames,
)
"""The n-th brings version n - 1 to n. A step that was released is never edited."""


def migrate(transactions: Transactions, steps: Sequence[Step] = STEPS) -> None:
    if transactions.read(_version) != len(steps):
        transactions.write(lambda connection: _migrate(connection, transactions, steps))


def _migrate(connection: Connection, transactions: Transactions, steps: Sequence[Step]) -> None:
    if transactions.is_postgres:
        connection.execute(select(func.pg_advisory_xact_lock(_LOCK)))
        connection.execute(CreateSchema(POSTGRES_SCHEMA, if_not_exists=True))
    version = _version(connection)
    if version > len(steps):
        raise AuditTooNew(
            f"the audit DB has version {version}, and this hakiri knows versions up to {len(steps)}",
            where=transactions.where,
            hint="upgrade hakiri-dagster on this machine",
        )
    for step in steps[version:]:
        step(connection)
    stamp = insert(AUDIT_VERSION) if version == 0 else update(AUDIT_VERSION)
    connection.execute(stamp.values(version=len(steps)))


def _version(connection: Connection) -> int:
    if not inspect(connection).has_table(AUDIT_VERSION.name, schema=_schema_of(connection)):
        return 0
    return connection.execute(select(AUDIT_VERSION.c.version)).scalar_one_or_none() or 0
