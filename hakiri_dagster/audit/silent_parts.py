"""`silent_part`: since when a source does not answer for a part of a table, from look to look."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from datetime import timedelta
from typing import Final

from sqlalchemy import Connection, delete, select

from hakiri_dagster.audit.engine import Transactions
from hakiri_dagster.audit.schema import SILENT_PART
from hakiri_dagster.audit.upserts import insert_new

_C: Final = SILENT_PART.c


class SilentPartStore:
    def __init__(self, transactions: Transactions) -> None:
        self._transactions = transactions

    def note(self, pipeline_id: str, table: str, silent: Collection[str]) -> Mapping[str, timedelta]:
        """What a look has found: for how long each has been silent. The others are silent no more."""
        of_table = (_C.pipeline_id == pipeline_id, _C.table_name == table)
        known = select(_C.part, _C.since).where(*of_table)
        if not silent and not self._transactions.read(lambda c: c.execute(known).first()):
            return {}

        def work(connection: Connection) -> Mapping[str, timedelta]:
            now = self._transactions.now(connection)
            connection.execute(delete(SILENT_PART).where(*of_table, _C.part.not_in(silent)))
            of = {"pipeline_id": pipeline_id, "table_name": table, "since": now}
            insert_new(connection, SILENT_PART, [of | {"part": part} for part in silent])
            return {part: now - since for part, since in connection.execute(known)}

        return self._transactions.write(work, kept="perhaps")
