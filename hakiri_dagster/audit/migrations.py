"""Brings an audit DB to the version of this code: one transaction, safe when two processes start at once."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from sqlalchemy import Connection, func, insert, inspect, select, update
from sqlalchemy.schema import CreateSchema

from hakiri_dagster.audit.engine import Transactions
from hakiri_dagster.audit.schema import AUDIT_VERSION, METADATA, POSTGRES_SCHEMA
from hakiri_dagster.errors import AuditTooNew

Step = Callable[[Connection], None]

_LOCK: Final = 0x68616B697269  # "hakiri"


def _first(connection: Connection) -> None:
    METADATA.create_all(connection)


STEPS: Final[tuple[Step, ...]] = (_first,)
"""The n-th brings version n - 1 to n. A step that was released is never edited."""


def migrate(transactions: Transactions, steps: Sequence[Step] = STEPS) -> None:
    if transactions.read(lambda connection: _version(connection, transactions)) != len(steps):
        transactions.write(lambda connection: _migrate(connection, transactions, steps))


def _migrate(connection: Connection, transactions: Transactions, steps: Sequence[Step]) -> None:
    if transactions.is_postgres:
        connection.execute(select(func.pg_advisory_xact_lock(_LOCK)))
        connection.execute(CreateSchema(POSTGRES_SCHEMA, if_not_exists=True))
    version = _version(connection, transactions)
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


def _version(connection: Connection, transactions: Transactions) -> int:
    schema = POSTGRES_SCHEMA if transactions.is_postgres else None
    if not inspect(connection).has_table(AUDIT_VERSION.name, schema=schema):
        return 0
    return connection.execute(select(AUDIT_VERSION.c.version)).scalar_one_or_none() or 0
