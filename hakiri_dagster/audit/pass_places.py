"""`pass_place`: the passes that are at work or wait, of all processes. Leases, as chunks have them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final

from sqlalchemy import Connection, Row, delete, func, insert, select, update

from hakiri_dagster.audit.claiming import HolderIsDead
from hakiri_dagster.audit.engine import Transactions
from hakiri_dagster.audit.schema import PASS_PLACE
from hakiri_dagster.planning.pass_places import PassPlace, may_begin

_C: Final = PASS_PLACE.c
_LOCK: Final = 0x706C61636573  # "places"
_WAITS_SECONDS: Final = 30.0
"""So long a place in the queue is kept for somebody who does not ask again."""


@dataclass(frozen=True, slots=True)
class PassOf:
    """Who asks for a place. `most`: over all pipelines, if that is limited."""

    pipeline_id: str
    table: str
    holder: str
    parallelism: int
    most: int | None = None


@dataclass(frozen=True, slots=True)
class Turn:
    """`number` is kept while one waits."""

    number: int
    begins: bool


class PassPlaceStore:
    def __init__(self, transactions: Transactions) -> None:
        self._transactions = transactions

    def ask(self, of: PassOf, holder_is_dead: HolderIsDead, *, number: int | None, ttl_seconds: float) -> Turn:
        """waits → at work, if there is room. `number`: of an earlier answer."""

        def work(connection: Connection) -> Turn:
            self._lock(connection)
            now = self._transactions.now(connection)
            mine = _kept(connection, of, number, now + timedelta(seconds=_WAITS_SECONDS))
            begins = may_begin(_places(_living(connection, now)), mine, of.most)
            if not begins and _forget_dead(connection, now, holder_is_dead):
                begins = may_begin(_places(_living(connection, now)), mine, of.most)
            if begins:
                until = now + timedelta(seconds=ttl_seconds)
                connection.execute(update(PASS_PLACE).where(_C.number == mine).values(at_work=True, leased_until=until))
            return Turn(mine, begins)

        return self._transactions.write(work)

    def heartbeat(self, of: PassOf, number: int, ttl_seconds: float) -> None:
        """Also of one whose lease has ended meanwhile: it is at work."""

        def work(connection: Connection) -> None:
            self._lock(connection)
            now = self._transactions.now(connection)
            _kept(connection, of, number, now + timedelta(seconds=ttl_seconds), at_work=True)

        self._transactions.write(work)

    def give_back(self, number: int) -> None:
        self._transactions.write(lambda c: c.execute(delete(PASS_PLACE).where(_C.number == number)))

    def _lock(self, connection: Connection) -> None:
        """What is counted must not change before it is written; SQLite's writers are alone."""
        if self._transactions.is_postgres:
            connection.execute(select(func.pg_advisory_xact_lock(_LOCK)))


def _kept(connection: Connection, of: PassOf, number: int | None, until: datetime, *, at_work: bool = False) -> int:
    """The number of its row, which is made where there is none (any more)."""
    if number is not None:
        kept = connection.execute(update(PASS_PLACE).where(_C.number == number).values(leased_until=until))
        if kept.rowcount:
            return number
    values = {
        "pipeline_id": of.pipeline_id,
        "table_name": of.table,
        "holder_node": of.holder,
        "parallelism": of.parallelism,
        "at_work": at_work,
        "leased_until": until,
        **({} if number is None else {"number": number}),
    }
    return int(connection.execute(insert(PASS_PLACE).values(values).returning(_C.number)).scalar_one())


def _living(connection: Connection, now: datetime) -> Sequence[Row[Any]]:
    return connection.execute(select(PASS_PLACE).where(_C.leased_until > now)).all()


def _places(rows: Sequence[Row[Any]]) -> list[PassPlace]:
    return [PassPlace(row.number, row.pipeline_id, row.parallelism, row.at_work) for row in rows]


def _forget_dead(connection: Connection, now: datetime, holder_is_dead: HolderIsDead) -> bool:
    """Those whose lease has ended, too."""
    holders = connection.execute(select(_C.holder_node).distinct()).scalars().all()
    dead = [holder for holder in holders if holder_is_dead(holder)]
    gone = connection.execute(delete(PASS_PLACE).where(_C.holder_node.in_(dead) | (_C.leased_until <= now)))
    return bool(gone.rowcount)
