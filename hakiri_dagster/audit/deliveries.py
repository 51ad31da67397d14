"""`deliveries`: what reached a pipeline's triggers, and what became of it. Every transition is one method here.

pending → started (in a batch, whose runs Dagster's daemon starts) → done or failed. A delivery that is known stays as
it is, so that whoever was not answered may send it again.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final, Literal, TypedDict

from sqlalchemy import ColumnElement, Connection, Row, delete, func, select, update
from sqlalchemy.dialects import postgresql, sqlite

from hakiri_dagster.audit.engine import Transactions
from hakiri_dagster.audit.schema import DELIVERIES, OPEN_DELIVERY
from hakiri_dagster.security.secrets import redact

DeliverySource = Literal["webhook", "sqs", "cloudflare_queue"]
DeliveryState = Literal["pending", "started", "done", "failed"]

KEPT_FOR: Final = timedelta(days=90)
"""How long what is over is remembered: what comes again later is new."""

_C: Final = DELIVERIES.c


@dataclass(frozen=True, slots=True)
class Arrival:
    """`proof` is what nobody but the sender can make, where it is made anew for each sending: whoever has caught one
    and sends it under another id starts nothing."""

    pipeline_id: str
    source: DeliverySource
    delivery_id: str
    body_sha256: str
    body_bytes: int
    proof: str | None = None


@dataclass(frozen=True, slots=True)
class OpenWork:
    """A pipeline with deliveries to serve. `batch`: of those that are started already; what came later waits. `tries`:
    how often it was put off, and of looks that did not come back."""

    pipeline_id: str
    batch: str | None
    tries: int


@dataclass(frozen=True, slots=True)
class Delivery:
    number: int
    pipeline_id: str
    source: DeliverySource
    delivery_id: str
    received_at: datetime
    body_bytes: int
    body_sha256: str
    state: DeliveryState
    batch: str | None
    started_at: datetime | None
    ended_at: datetime | None
    run_ids: tuple[str, ...]
    error: str | None


class DeliveryNumbers(TypedDict):
    pending: int
    started: int
    done: int
    failed: int
    last_received_at: str | None


class DeliveryReader:
    def __init__(self, transactions: Transactions) -> None:
        self._transactions = transactions

    def open_work(self, pipelines: Collection[str]) -> tuple[OpenWork, ...]:
        """Those that were looked at longest ago come first. One indexed query."""

        def work(connection: Connection) -> tuple[OpenWork, ...]:
            if connection.execute(select(_C.number).where(OPEN_DELIVERY).limit(1)).first() is None:
                return ()
            query = (
                select(_C.pipeline_id, _C.batch, func.max(_C.tries).label("tries"), func.min(_C.look_after).label("at"))
                .where(OPEN_DELIVERY, _C.pipeline_id.in_(pipelines))
                .group_by(_C.pipeline_id, _C.batch)
                .having(func.min(_C.look_after) <= self._transactions.now(connection))
                .order_by("at")
            )
            return _one_each(connection.execute(query).all(), self._started(connection))

        return self._transactions.read(work)

    def newest(self, pipelines: Collection[str], limit: int) -> tuple[Delivery, ...]:
        query = select(DELIVERIES).where(_C.pipeline_id.in_(pipelines)).order_by(_C.number.desc()).limit(limit)
        return self._transactions.read(lambda c: tuple(map(_delivery, c.execute(query))))

    def numbers(self, pipeline_id: str) -> DeliveryNumbers:
        query = (
            select(_C.state, func.count().label("many"), func.max(_C.received_at).label("last"))
            .where(_C.pipeline_id == pipeline_id)
            .group_by(_C.state)
        )
        rows = {row.state: row for row in self._transactions.read(lambda c: c.execute(query).all())}
        last = max((row.last for row in rows.values()), default=None)
        count: dict[str, int] = {state: row.many for state, row in rows.items()}
        return DeliveryNumbers(
            pending=count.get("pending", 0),
            started=count.get("started", 0),
            done=count.get("done", 0),
            failed=count.get("failed", 0),
            last_received_at=None if last is None else last.isoformat(timespec="seconds").replace("+00:00", "Z"),
        )

    def _started(self, connection: Connection) -> set[str]:
        query = select(_C.pipeline_id).where(OPEN_DELIVERY, _C.batch.is_not(None)).distinct()
        return set(connection.execute(query).scalars())


class DeliveryStore(DeliveryReader):
    def store(self, arrivals: Sequence[Arrival]) -> tuple[bool, ...]:
        """Which of them are new. They outlive a loss of power: whoever sent them forgets them now."""

        def work(connection: Connection) -> tuple[bool, ...]:
            now = self._transactions.now(connection)
            return tuple(_stored(connection, arrival, now) for arrival in arrivals)

        return self._transactions.write(work, kept="surely")

    def take(self, pipeline_id: str, batch: str) -> int:
        """pending → started, all of a pipeline together, as one load serves them all. Answers how many."""
        taken = (
            update(DELIVERIES)
            .where(_C.pipeline_id == pipeline_id, _C.state == "pending")
            .values(state="started", batch=batch, tries=0)
        )
        return self._transactions.write(
            lambda c: c.execute(taken.values(started_at=self._transactions.now(c))).rowcount, kept="surely"
        )

    def begin_look(self, batch: str, by: timedelta, tries: int) -> None:
        """Put off until its end is told: a look that never comes back lets the others go first."""
        self._look_after(_C.batch == batch, by, tries)

    def end_look(self, batch: str, tries: int) -> None:
        self._look_after(_C.batch == batch, timedelta(), tries)

    def put_off(self, work: OpenWork, by: timedelta, tries: int) -> None:
        self._look_after(_C.pipeline_id == work.pipeline_id, by, tries)

    def note_runs(self, batch: str, run_ids: Sequence[str]) -> None:
        told = json.dumps(list(run_ids))
        self._transactions.write(lambda c: c.execute(update(DELIVERIES).where(_C.batch == batch).values(run_ids=told)))

    def close(self, batch: str, state: Literal["done", "failed"], error: str | None = None) -> None:
        """started → done or failed. What was over long ago is forgotten."""

        def work(connection: Connection) -> None:
            now = self._transactions.now(connection)
            told = None if error is None else redact(error)
            of_batch = update(DELIVERIES).where(_C.batch == batch, _C.state == "started")
            connection.execute(of_batch.values(state=state, ended_at=now, error=told))
            connection.execute(delete(DELIVERIES).where(_C.ended_at < now - KEPT_FOR))

        self._transactions.write(work)

    def _look_after(self, whose: ColumnElement[bool], by: timedelta, tries: int) -> None:
        self._transactions.write(
            lambda c: c.execute(
                update(DELIVERIES)
                .where(OPEN_DELIVERY, whose)
                .values(look_after=self._transactions.now(c) + by, tries=tries)
            )
        )


def _one_each(rows: Sequence[Row[*tuple[Any, ...]]], started: set[str]) -> tuple[OpenWork, ...]:
    """Of a pipeline that has a batch under way, that batch."""
    return tuple(
        OpenWork(row.pipeline_id, row.batch, 0 if row.batch is None else row.tries)
        for row in rows
        if row.batch is not None or row.pipeline_id not in started
    )


def _stored(connection: Connection, arrival: Arrival, now: datetime) -> bool:
    dialect = postgresql if connection.dialect.name == "postgresql" else sqlite
    row = {
        "pipeline_id": arrival.pipeline_id,
        "source": arrival.source,
        "delivery_id": arrival.delivery_id,
        "proof": arrival.proof,
        "received_at": now,
        "body_sha256": arrival.body_sha256,
        "body_bytes": arrival.body_bytes,
        "state": "pending",
        "run_ids": "[]",
        "look_after": now,
        "tries": 0,
    }
    statement = dialect.insert(DELIVERIES).values(row).on_conflict_do_nothing().returning(_C.number)
    return connection.execute(statement).first() is not None


def _delivery(row: Row[Any]) -> Delivery:
    return Delivery(
        number=row.number,
        pipeline_id=row.pipeline_id,
        source=row.source,
        delivery_id=row.delivery_id,
        received_at=row.received_at,
        body_bytes=row.body_bytes,
        body_sha256=row.body_sha256,
        state=row.state,
        batch=row.batch,
        started_at=row.started_at,
        ended_at=row.ended_at,
        run_ids=tuple(json.loads(row.run_ids)),
        error=row.error,
    )
