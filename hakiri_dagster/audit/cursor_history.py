"""`cursor_history`: what surveys observed of a table's cursor, so that a later one knows up to where it is complete."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import Any, Final

from sqlalchemy import Connection, select

from hakiri_dagster.audit.engine import Transactions
from hakiri_dagster.audit.schema import CURSOR_HISTORY
from hakiri_dagster.audit.upserts import upsert
from hakiri_dagster.planning.horizon import CursorHistory, CursorObservation, OpenTransaction, Reread

_C: Final = CURSOR_HISTORY.c


class CursorHistoryReader:
    def __init__(self, transactions: Transactions) -> None:
        self._transactions = transactions

    def of_table(self, pipeline_id: str, table: str) -> CursorHistory:
        """Return an empty history for a table that was never surveyed, or whose source tells nothing."""
        query = select(_C.history_json).where(_C.pipeline_id == pipeline_id, _C.table_name == table)
        text = self._transactions.read(lambda c: c.execute(query).scalar_one_or_none())
        return CursorHistory() if text is None else _from_json(text)

    def of_pipeline(self, pipeline_id: str) -> dict[str, CursorHistory]:
        """Return the histories of all tables that have one, by table."""
        query = select(_C.table_name, _C.history_json).where(_C.pipeline_id == pipeline_id)
        rows = self._transactions.read(lambda c: c.execute(query).all())
        return {row.table_name: _from_json(row.history_json) for row in rows}


class CursorHistoryStore(CursorHistoryReader):
    def save(self, pipeline_id: str, table: str, history: CursorHistory) -> None:
        """Of two surveys at once either history will do: each knows no less than the one that was saved before."""

        def work(connection: Connection) -> None:
            row = {"pipeline_id": pipeline_id, "table_name": table, "history_json": _to_json(history)}
            upsert(connection, CURSOR_HISTORY, [row | {"saved_at": self._transactions.now(connection)}])

        self._transactions.write(work)


def _to_json(history: CursorHistory) -> str:
    document = asdict(history)
    document["prepared"] = sorted(history.prepared)
    for observation in document["observations"]:
        observation["pending"] = sorted(observation["pending"])
    return json.dumps(document)


def _from_json(text: str) -> CursorHistory:
    document: dict[str, Any] = json.loads(text)
    reread = document["reread"]
    return CursorHistory(
        place=document["place"],
        observations=tuple(
            CursorObservation(**{**observation, "pending": frozenset(observation["pending"])})
            for observation in document["observations"]
        ),
        prepared=frozenset(document["prepared"]),
        reread=None
        if reread is None
        else Reread(reread["lower"], tuple(OpenTransaction(**one) for one in reread["because_of"])),
        kind=document["kind"],
        clock=document["clock"],
        saved_at=document["saved_at"],
        went_back_to=document.get("went_back_to"),
        wal=document.get("wal"),
        wal_clock=document.get("wal_clock"),
    )
