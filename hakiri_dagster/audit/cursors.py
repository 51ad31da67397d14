"""`pipeline_cursor`: one opaque cursor a table. Last write wins: reading more than needed is harmless."""

from __future__ import annotations

import json
from typing import Any

from sqlalchemy import select

from hakiri_dagster.audit.engine import Transactions
from hakiri_dagster.audit.schema import PIPELINE_CURSOR
from hakiri_dagster.audit.upserts import upsert

_C = PIPELINE_CURSOR.c


class CursorReader:
    def __init__(self, transactions: Transactions) -> None:
        self._transactions = transactions

    def get(self, pipeline_id: str, table: str) -> dict[str, Any] | None:
        """Like `{"updated_at": "2026-05-11T08:00:00Z"}` or `{"id": 12834782}`."""
        query = select(_C.cursor_json).where(_C.pipeline_id == pipeline_id, _C.table_name == table)
        text = self._transactions.read(lambda c: c.execute(query).scalar_one_or_none())
        return None if text is None else json.loads(text)


class CursorStore(CursorReader):
    def put(self, pipeline_id: str, table: str, cursor: dict[str, Any]) -> None:
        self._transactions.write(
            lambda c: upsert(
                c,
                PIPELINE_CURSOR,
                [
                    {
                        "pipeline_id": pipeline_id,
                        "table_name": table,
                        "cursor_json": json.dumps(cursor),
                        "updated_at": self._transactions.now(c),
                    }
                ],
            )
        )
