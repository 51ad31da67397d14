"""Chunks that somebody holds without an attempt at them: what is published of them stays so, and nothing is owed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final

from sqlalchemy import Connection, Row, update

from hakiri_dagster.audit.claiming import HolderIsDead
from hakiri_dagster.audit.claims import BusyChunk
from hakiri_dagster.audit.engine import Transactions
from hakiri_dagster.audit.held_rows import locked_rows, of_table
from hakiri_dagster.audit.schema import PIPELINE_CHUNKS

_C: Final = PIPELINE_CHUNKS.c
_KEYS_A_STATEMENT: Final = 1000


@dataclass(frozen=True, slots=True)
class Held:
    """`unfinished`: the last attempt at them was killed, so that what they owe is not known yet."""

    keys: tuple[str, ...]
    busy: tuple[BusyChunk, ...] = ()
    unfinished: tuple[str, ...] = ()


class HoldStore:
    """The lease is an attempt's, and the status stays what it is: a holder that is killed leaves nothing to do."""

    def __init__(self, transactions: Transactions) -> None:
        self._transactions = transactions

    def take(
        self,
        pipeline_id: str,
        table: str,
        keys: Sequence[str],
        *,
        holder: str,
        ttl_seconds: float,
        holder_is_dead: HolderIsDead,
    ) -> Held:
        def work(connection: Connection) -> Held:
            now = self._transactions.now(connection)
            rows = locked_rows(connection, pipeline_id, table, keys, skip_locked=True)
            busy = [BusyChunk(k, _holder(rows.get(k))) for k in keys if _is_busy(rows.get(k), now, holder_is_dead)]
            taken = {chunk.key for chunk in busy}
            unfinished = [key for key in keys if key not in taken and rows[key].status == "running"]
            free = [key for key in keys if key not in taken and key not in unfinished]
            values = {"holder_node": holder, "leased_until": now + timedelta(seconds=ttl_seconds)}
            for part in _parts(free):
                connection.execute(update(PIPELINE_CHUNKS).where(*_named(pipeline_id, table, part)).values(values))
            return Held(tuple(free), tuple(busy), tuple(unfinished))

        return self._transactions.write(work)

    def heartbeat(self, pipeline_id: str, table: str, keys: Sequence[str], *, holder: str, ttl_seconds: float) -> None:
        def work(connection: Connection) -> None:
            until = self._transactions.now(connection) + timedelta(seconds=ttl_seconds)
            _update(connection, pipeline_id, table, keys, holder, {"leased_until": until})

        self._transactions.write(work)

    def let_go(self, pipeline_id: str, table: str, keys: Sequence[str], *, holder: str) -> None:
        free = {"holder_node": None, "leased_until": None}
        self._transactions.write(lambda c: _update(c, pipeline_id, table, keys, holder, free))


def _is_busy(row: Row[Any] | None, now: datetime, is_dead: HolderIsDead) -> bool:
    """A row that is locked is being claimed."""
    if row is None:
        return True
    return row.leased_until is not None and row.leased_until > now and is_dead(row.holder_node) is not True


def _holder(row: Row[Any] | None) -> str | None:
    return None if row is None else row.holder_node


def _update(
    connection: Connection, pipeline_id: str, table: str, keys: Sequence[str], holder: str, values: dict[str, Any]
) -> None:
    """Of those that are still held. An attempt that took one over has made it `running`."""
    for part in _parts(keys):
        mine = (*_named(pipeline_id, table, part), _C.holder_node == holder, _C.status != "running")
        connection.execute(update(PIPELINE_CHUNKS).where(*mine).values(values))


def _named(pipeline_id: str, table: str, keys: Sequence[str]) -> tuple[Any, ...]:
    return *of_table(pipeline_id, table), _C.chunk_id.in_(keys)


def _parts(keys: Sequence[str]) -> list[Sequence[str]]:
    return [keys[start : start + _KEYS_A_STATEMENT] for start in range(0, len(keys), _KEYS_A_STATEMENT)]
