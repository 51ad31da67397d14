"""Who may work on which chunk. One transaction, however many chunks."""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import cache
from typing import Any

from sqlalchemy import ColumnElement, Connection, Row

from hakiri_dagster.audit.chunk_rows import Values
from hakiri_dagster.audit.claims import BusyChunk, Claim, Claims, DeadAttempt
from hakiri_dagster.audit.held_rows import locked_rows, update_rows
from hakiri_dagster.planning.states import DueSlice

HolderIsDead = Callable[[str], bool | None]
"""None: nobody can tell from here, so only the lease's end tells."""


@dataclass(frozen=True, slots=True)
class ClaimRequest:
    pipeline_id: str
    table: str
    slices: Sequence[DueSlice]
    holder: str
    run_id: str
    ttl: timedelta
    holder_is_dead: HolderIsDead
    seen_held: Collection[str] = ()
    """Chunks that somebody held when it was judged what they owe. What came to an end since then may owe nothing."""


def claim_rows(connection: Connection, request: ClaimRequest, moment: ColumnElement[datetime]) -> Claims:
    """`moment` is asked for along with the rows, for each question costs a claim a sixth of its time."""
    keys = [due.key for due in request.slices]
    asked = (moment.label("asked_at"),)
    rows = locked_rows(connection, request.pipeline_id, request.table, keys, *asked, skip_locked=True)
    is_dead = cache(request.holder_is_dead)
    verdicts = [_judge(request, due, rows.get(due.key), is_dead) for due in request.slices]
    claimed = tuple(verdict for verdict in verdicts if isinstance(verdict, Claim))
    update_rows(connection, [(claim, _values(claim, request.ttl, rows[claim.key].asked_at)) for claim in claimed])
    return Claims(
        claimed=claimed,
        busy=tuple(verdict for verdict in verdicts if isinstance(verdict, BusyChunk)),
        overtaken=tuple(verdict for verdict in verdicts if isinstance(verdict, str)),
    )


def _judge(
    request: ClaimRequest, due: DueSlice, row: Row[Any] | None, is_dead: HolderIsDead
) -> Claim | BusyChunk | str:
    """A claim, or who is in the way, or the key alone: what the chunk owes has changed since it was planned."""
    if row is None:
        return BusyChunk(due.key, None)
    dead = None
    if row.leased_until is not None:  # by an attempt, or by a replay of what the chunk has set aside
        if row.leased_until > row.asked_at and is_dead(row.holder_node) is not True:
            return BusyChunk(due.key, row.holder_node)
        dead = DeadAttempt(row.holder_node, row.attempts)
    settled = row.status == "done" and due.key in request.seen_held
    if settled or row.attempts != due.attempts or row.status in ("retired", "superseded"):
        return due.key
    return Claim(request.pipeline_id, request.table, due, request.holder, request.run_id, row.attempts + 1, dead)


def _values(claim: Claim, ttl: timedelta, now: datetime) -> Values:
    return {
        "status": "running",
        "attempts": claim.attempt,
        "holder_node": claim.holder,
        "run_id": claim.run_id,
        "started_at": now,
        "leased_until": now + ttl,
        "attempt_seen": claim.due.seen,
        "supersedes": json.dumps(claim.due.supersedes),
        "error_kind": None,
        "error_msg": None,
    }
