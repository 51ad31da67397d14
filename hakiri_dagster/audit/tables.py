"""What is remembered of a table as a whole: its inferred schema, and the plan its chunks were cut by."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Final

from sqlalchemy import Connection, func, select

from hakiri_dagster.audit.chunk_rows import number_from_text, number_to_text
from hakiri_dagster.audit.chunks import save_states
from hakiri_dagster.audit.engine import Transactions
from hakiri_dagster.audit.files import take_in
from hakiri_dagster.audit.schema import REWIND, TABLE_SCHEMA, TABLE_STATE
from hakiri_dagster.audit.upserts import upsert
from hakiri_dagster.planning.columns import Column, SourceSchema
from hakiri_dagster.planning.source_files import FileVersion
from hakiri_dagster.planning.states import Due

_SCHEMA: Final = TABLE_SCHEMA.c
_STATE: Final = TABLE_STATE.c


@dataclass(frozen=True, slots=True)
class StoredPlan:
    """`start` is where the first window of the newest plan begins; None for plans without windows. `source_upper`: the
    source's newest cursor then that was not in the future."""

    text: str
    start: int | None
    source_upper: int | None = None


class TableReader:
    def __init__(self, transactions: Transactions) -> None:
        self._transactions = transactions

    def schema(self, pipeline_id: str, table: str, read_as: str = "") -> SourceSchema | None:
        """None too if it was found when the source was read otherwise."""
        query = select(_SCHEMA.schema_json).where(_SCHEMA.pipeline_id == pipeline_id, _SCHEMA.table_name == table)
        text = self._transactions.read(lambda c: c.execute(query).scalar_one_or_none())
        return None if text is None else _schema_from_json(text, read_as)

    def plan(self, pipeline_id: str, table: str) -> str | None:
        """How the newest stored plan was cut (`1mo`, `full`, `files` …); another text begins a new generation."""
        query = select(_STATE.plan).where(_STATE.pipeline_id == pipeline_id, _STATE.table_name == table)
        found: str | None = self._transactions.read(lambda c: c.execute(query).scalar_one_or_none())
        return found

    def plans(self) -> dict[tuple[str, str], StoredPlan]:
        """Of all tables at once: what partitions are made from."""
        query = select(_STATE.pipeline_id, _STATE.table_name, _STATE.plan, _STATE.start, _STATE.source_upper)
        rows = self._transactions.read(lambda c: c.execute(query).all())
        return {
            (row.pipeline_id, row.table_name): StoredPlan(
                row.plan, number_from_text(row.start), number_from_text(row.source_upper)
            )
            for row in rows
        }


class TableStore(TableReader):
    def put_schema(self, pipeline_id: str, table: str, schema: SourceSchema, read_as: str = "") -> None:
        self._transactions.write(
            lambda c: upsert(
                c,
                TABLE_SCHEMA,
                [
                    {
                        "pipeline_id": pipeline_id,
                        "table_name": table,
                        "schema_json": json.dumps(asdict(schema) | {"read_as": read_as}),
                        "updated_at": self._transactions.now(c),
                    }
                ],
            )
        )

    def sync(
        self,
        pipeline_id: str,
        table: str,
        due: Due,
        *,
        plan: StoredPlan,
        files: Sequence[FileVersion] = (),
        last_rewind: int = 0,
    ) -> bool:
        """Stores a plan's states and the versions of files they follow from: both, or neither. Returns whether it did.

        The row of a chunk that an attempt holds is left alone, so what files touch in it is to be found again.
        `last_rewind` is the newest that the plan knows of: one that was made before it says too much is published.
        """

        def work(connection: Connection) -> bool:
            planned = {
                "pipeline_id": pipeline_id,
                "table_name": table,
                "plan": plan.text,
                "start": number_to_text(plan.start),
                "planned_at": self._transactions.now(connection),
                "source_upper": number_to_text(plan.source_upper),
            }
            lock_plan(connection, pipeline_id, table)
            if last_rewind < newest_rewind(connection, pipeline_id, table):
                return False
            upsert(connection, TABLE_STATE, [planned])
            save_states(connection, pipeline_id, table, due.states)
            take_in(connection, pipeline_id, table, files, settled=not due.busy)
            return True

        return self._transactions.write(work)


def lock_plan(connection: Connection, pipeline_id: str, table: str) -> None:
    """Whoever changes what is planned of the table waits here for others."""
    lock = select(_STATE.plan).where(_STATE.pipeline_id == pipeline_id, _STATE.table_name == table).with_for_update()
    connection.execute(lock).all()


def newest_rewind(connection: Connection, pipeline_id: str, table: str) -> int:
    """0 where there was none."""
    of_table = (REWIND.c.pipeline_id == pipeline_id) & (REWIND.c.table_name == table)
    return connection.execute(select(func.max(REWIND.c.rewind_id)).where(of_table)).scalar_one() or 0


def _schema_from_json(text: str, read_as: str) -> SourceSchema | None:
    document = json.loads(text)
    if document.get("read_as") != read_as:
        return None
    return SourceSchema(
        columns=tuple(Column(**column) for column in document["columns"]),
        primary_key=tuple(document["primary_key"]),
    )
