"""`alert`: what somebody should hear of, though nothing failed. One open row a condition, however often it is met."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any, Final, Literal

from sqlalchemy import ColumnElement, Connection, Row, and_, case, null, or_, select, update
from sqlalchemy.dialects import postgresql, sqlite

from hakiri_dagster.audit.engine import Transactions
from hakiri_dagster.audit.schema import ALERT, OPEN_ALERT
from hakiri_dagster.security.secrets import redact, redact_within

AlertKind = Literal[
    "empty_source",
    "row_count_anomaly",
    "schema_change",
    "hook_warning",
    "hooks_owed",
    "unchecked_key",
    "foreign_message",
    "queue_trouble",
    "trigger_failed",
    "unread_part",
    "long_transaction",
    "drift",
]
Severity = Literal["warning", "error"]

REMINDED_AFTER: Final = timedelta(days=1)
"""What goes on being met is passed on once more, lest one word that was overlooked is the last."""

_C: Final = ALERT.c


@dataclass(frozen=True, slots=True)
class Alert:
    """`subject` tells conditions of one kind and table apart: a column, a hook. `details` is what JSON can hold."""

    kind: AlertKind
    message: str
    severity: Severity = "warning"
    details: Mapping[str, Any] = field(default_factory=dict)
    subject: str = ""


@dataclass(frozen=True, slots=True)
class AlertRecord:
    id: int
    pipeline_id: str
    table: str
    kind: AlertKind
    subject: str
    severity: Severity
    message: str
    details: Mapping[str, Any]
    run_id: str | None
    raised_at: datetime
    last_seen: datetime
    times: int
    acknowledged_at: datetime | None
    passed_on_at: datetime | None
    tries: int


class AlertReader:
    def __init__(self, transactions: Transactions) -> None:
        self._transactions = transactions

    def newest(
        self, pipelines: Collection[str] | None = None, *, acknowledged: bool = False
    ) -> tuple[AlertRecord, ...]:
        """The one that was met last comes first. Only open ones, unless `acknowledged`."""
        query = select(ALERT).order_by(_C.last_seen.desc(), _C.alert_id.desc())
        if pipelines is not None:
            query = query.where(_C.pipeline_id.in_(pipelines))
        if not acknowledged:
            query = query.where(OPEN_ALERT)
        return self._transactions.read(lambda c: tuple(map(_record, c.execute(query))))

    def to_pass_on(self, limit: int) -> tuple[AlertRecord, ...]:
        """The least tried first: what a receiver goes on refusing holds up nothing new."""
        query = (
            select(ALERT).where(OPEN_ALERT, _C.passed_on_at.is_(null())).order_by(_C.tries, _C.alert_id).limit(limit)
        )
        return self._transactions.read(lambda c: tuple(map(_record, c.execute(query))))


class AlertStore(AlertReader):
    def raise_(self, pipeline_id: str, table: str, alert: Alert, run_id: str | None) -> AlertRecord:
        """A condition that is open already is met once more: it takes over the newest words."""
        row = {
            "pipeline_id": pipeline_id,
            "table_name": table,
            "kind": alert.kind,
            "subject": redact(alert.subject),
            "severity": alert.severity,
            "message": redact(alert.message),
            "details_json": json.dumps(redact_within(dict(alert.details)), ensure_ascii=False),
            "run_id": run_id,
            "times": 1,
            "tries": 0,
        }

        def work(connection: Connection) -> AlertRecord:
            now = self._transactions.now(connection)
            return _record(_met(connection, row | {"raised_at": now, "last_seen": now}, now))

        return self._transactions.write(work)

    def acknowledge(self, alert_ids: Collection[int]) -> tuple[int, ...]:
        """open → acknowledged. Answers those that there are."""

        def work(connection: Connection) -> tuple[int, ...]:
            now = self._transactions.now(connection)
            connection.execute(update(ALERT).where(_C.alert_id.in_(alert_ids), OPEN_ALERT).values(acknowledged_at=now))
            known = select(_C.alert_id).where(_C.alert_id.in_(alert_ids)).order_by(_C.alert_id)
            return tuple(connection.execute(known).scalars())

        return self._transactions.write(work)

    def passed_on(self, alert: AlertRecord) -> None:
        """As it was when it was read: what it has said since then is still to be passed on."""
        self._transactions.write(
            lambda c: c.execute(
                update(ALERT)
                .where(_C.alert_id == alert.id, _C.severity == alert.severity)
                .values(passed_on_at=self._transactions.now(c), tries=_C.tries + 1)
            )
        )

    def not_passed_on(self, alert: AlertRecord) -> None:
        self._transactions.write(
            lambda c: c.execute(update(ALERT).where(_C.alert_id == alert.id).values(tries=_C.tries + 1))
        )


def _met(connection: Connection, row: Mapping[str, Any], now: datetime) -> Row[Any]:
    dialect = postgresql if connection.dialect.name == "postgresql" else sqlite
    statement = dialect.insert(ALERT).values(row)
    proposed = statement.excluded
    worse = and_(_C.severity == "warning", proposed.severity == "error")
    anew: ColumnElement[bool] = or_(worse, _C.passed_on_at < now - REMINDED_AFTER)
    newest = {name: proposed[name] for name in ("severity", "message", "details_json", "run_id", "last_seen")}
    return connection.execute(
        statement.on_conflict_do_update(
            index_elements=[_C.pipeline_id, _C.table_name, _C.kind, _C.subject],
            index_where=OPEN_ALERT,
            set_={
                **newest,
                "times": _C.times + 1,
                "passed_on_at": case((anew, null()), else_=_C.passed_on_at),
                "tries": case((anew, 0), else_=_C.tries),
            },
        ).returning(ALERT)
    ).one()


def _record(row: Row[Any]) -> AlertRecord:
    return AlertRecord(
        id=row.alert_id,
        pipeline_id=row.pipeline_id,
        table=row.table_name,
        kind=row.kind,
        subject=row.subject,
        severity=row.severity,
        message=row.message,
        details=json.loads(row.details_json),
        run_id=row.run_id,
        raised_at=row.raised_at,
        last_seen=row.last_seen,
        times=row.times,
        acknowledged_at=row.acknowledged_at,
        passed_on_at=row.passed_on_at,
        tries=row.tries,
    )
