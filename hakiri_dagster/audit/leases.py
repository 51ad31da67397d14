"""Leases whose holder is dead, and those that have ended: found, taken over and closed, without waiting for claims."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import cache
from itertools import groupby
from typing import Any, Final

from sqlalchemy import Connection, Row, delete, null, select, update

from hakiri_dagster.audit.chunk_rows import KILLED
from hakiri_dagster.audit.claiming import HolderIsDead
from hakiri_dagster.audit.engine import Transactions
from hakiri_dagster.audit.held_rows import locked_rows, of_table
from hakiri_dagster.audit.schema import PASS_PLACE, PIPELINE_CHUNKS, PIPELINE_RUN

_C: Final = PIPELINE_CHUNKS.c
_RUN: Final = PIPELINE_RUN.c
_PLACE: Final = PASS_PLACE.c


@dataclass(frozen=True, slots=True, order=True)
class StaleLease:
    """`holder` works on the chunk no more, as far as can be told."""

    pipeline_id: str
    table: str
    key: str
    holder: str
    attempt: int


class LeaseStore:
    def __init__(self, transactions: Transactions) -> None:
        self._transactions = transactions

    def stale(self, holder_is_dead: HolderIsDead) -> tuple[StaleLease, ...]:
        is_dead = cache(holder_is_dead)
        query = select(PIPELINE_CHUNKS).where(_C.leased_until.is_not(null()))

        def work(connection: Connection) -> tuple[StaleLease, ...]:
            rows = connection.execute(query).all()
            now = self._transactions.now(connection)
            return tuple(sorted(_lease(row) for row in rows if _is_stale(row, now, is_dead)))

        return self._transactions.read(work)

    def living_holders(self) -> frozenset[str]:
        """Of chunks and of places, by their leases alone: also those on hosts of which nothing else can be told."""
        chunks = select(_C.holder_node, _C.leased_until).where(_C.leased_until.is_not(null()))
        places = select(_PLACE.holder_node, _PLACE.leased_until)

        def work(connection: Connection) -> frozenset[str]:
            now = self._transactions.now(connection)
            leases = [*connection.execute(chunks), *connection.execute(places)]
            return frozenset(holder for holder, until in leases if until > now)

        return self._transactions.read(work)

    def take_over(
        self, stale: Sequence[StaleLease], *, holder: str, ttl_seconds: float, holder_is_dead: HolderIsDead
    ) -> tuple[StaleLease, ...]:
        """stale → held by the sweeper. Answers those that nobody has taken over meanwhile."""
        is_dead = cache(holder_is_dead)

        def work(connection: Connection) -> tuple[StaleLease, ...]:
            now = self._transactions.now(connection)
            taken = [
                lease for lease, row in _locked(connection, stale)
                if (row.holder_node, row.attempts) == (lease.holder, lease.attempt) and _is_stale(row, now, is_dead)
            ]  # fmt: skip
            mine = {"holder_node": holder, "leased_until": now + timedelta(seconds=ttl_seconds)}
            _update(connection, taken, mine)
            return tuple(taken)

        return self._transactions.write(work)

    def keep(self, taken: Sequence[StaleLease], *, holder: str, ttl_seconds: float) -> None:
        """held by the sweeper → the same, for longer."""

        def work(connection: Connection) -> None:
            until = self._transactions.now(connection) + timedelta(seconds=ttl_seconds)
            mine = [lease for lease, row in _locked(connection, taken) if row.holder_node == holder]
            _update(connection, mine, {"leased_until": until})

        self._transactions.write(work)

    def close(self, taken: Sequence[StaleLease], *, holder: str, message: str) -> None:
        """running → failed, so that the chunk comes after those that were not tried yet; as killed, so that it counts
        for none whose load has failed. Others, which were only held, stay what they are."""

        def work(connection: Connection) -> None:
            mine = [(lease, row) for lease, row in _locked(connection, taken) if row.holder_node == holder]
            free: dict[str, Any] = {"holder_node": None, "leased_until": None}
            failed = free | {"status": "failed", "error_kind": KILLED, "error_msg": message}
            _update(connection, [lease for lease, row in mine if row.status == "running"], failed)
            _update(connection, [lease for lease, row in mine if row.status != "running"], free)

        self._transactions.write(work)

    def close_runs(self, holder_is_dead: HolderIsDead) -> tuple[str, ...]:
        """running → failed, of runs whose process is dead; their places are free. Answers their ids."""
        runs = select(_RUN.holder_node, _RUN.run_id).where(_RUN.status == "running", _RUN.holder_node.is_not(null()))
        places = select(_PLACE.holder_node).distinct()
        found, waiting = self._transactions.read(lambda c: (c.execute(runs).all(), c.execute(places).scalars().all()))
        holders = {*(row.holder_node for row in found), *waiting}
        dead = [holder for holder in holders if holder_is_dead(holder) is True]
        if dead:
            self._transactions.write(lambda c: self._close_runs(c, dead))
        return tuple(sorted({row.run_id for row in found if row.holder_node in dead}))

    def _close_runs(self, connection: Connection, dead: Collection[str]) -> None:
        ended = {"ended_at": self._transactions.now(connection), "status": "failed"}
        why = {"error_kind": "transient", "error_msg": "its process died"}
        of_dead = (_RUN.status == "running", _RUN.holder_node.in_(dead))
        connection.execute(update(PIPELINE_RUN).where(*of_dead).values(ended | why))
        connection.execute(delete(PASS_PLACE).where(_PLACE.holder_node.in_(dead)))


def _is_stale(row: Row[Any], now: datetime, holder_is_dead: HolderIsDead) -> bool:
    return row.leased_until is not None and (row.leased_until <= now or holder_is_dead(row.holder_node) is True)


def _lease(row: Row[Any]) -> StaleLease:
    return StaleLease(row.pipeline_id, row.table_name, row.chunk_id, row.holder_node, row.attempts)


def _locked(connection: Connection, leases: Iterable[StaleLease]) -> list[tuple[StaleLease, Row[Any]]]:
    """Of those that nobody else is at."""
    found: list[tuple[StaleLease, Row[Any]]] = []
    for (pipeline_id, table), group in groupby(sorted(leases), key=lambda lease: (lease.pipeline_id, lease.table)):
        of_one = list(group)
        rows = locked_rows(connection, pipeline_id, table, [lease.key for lease in of_one], skip_locked=True)
        found += [(lease, rows[lease.key]) for lease in of_one if lease.key in rows]
    return found


def _update(connection: Connection, leases: Sequence[StaleLease], values: dict[str, Any]) -> None:
    for lease in leases:
        where = (*of_table(lease.pipeline_id, lease.table), _C.chunk_id == lease.key)
        connection.execute(update(PIPELINE_CHUNKS).where(*where).values(values))
