"""`accepted_schema` and `schema_log`: a source's columns as they were last accepted, and what became of each change."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from datetime import datetime
from typing import Final

from sqlalchemy import Connection, func, select

from hakiri_dagster.audit.engine import Transactions
from hakiri_dagster.audit.schema import ACCEPTED_SCHEMA, SCHEMA_LOG
from hakiri_dagster.audit.upserts import insert_new, upsert
from hakiri_dagster.planning.evolution import Decision
from hakiri_dagster.planning.schema_diff import Change, ChangeKind, KnownColumn, KnownSchema

_KNOWN: Final = ACCEPTED_SCHEMA.c
_LOG: Final = SCHEMA_LOG.c


@dataclass(frozen=True, slots=True)
class SchemaEvent:
    """`actor` and `reason` are of whoever accepted a change."""

    at: datetime
    pipeline_id: str
    table: str
    kind: ChangeKind
    column: str
    before: str | None
    after: str | None
    decision: Decision
    run_id: str | None
    actor: str | None
    reason: str | None


@dataclass(frozen=True, slots=True)
class Decided:
    change: Change
    decision: Decision


class SchemaReader:
    def __init__(self, transactions: Transactions) -> None:
        self._transactions = transactions

    def known(self, pipeline_id: str, table: str) -> KnownSchema | None:
        query = select(_KNOWN.schema_json).where(_KNOWN.pipeline_id == pipeline_id, _KNOWN.table_name == table)
        text = self._transactions.read(lambda c: c.execute(query).scalar_one_or_none())
        return None if text is None else _from_json(text)

    def accepted(self, pipeline_id: str, table: str) -> frozenset[str]:
        """Identities of the changes that somebody permitted."""
        query = select(_LOG.change_id).where(
            _LOG.pipeline_id == pipeline_id, _LOG.table_name == table, _LOG.decision == "accepted"
        )
        return self._transactions.read(lambda c: frozenset(c.execute(query).scalars()))

    def events(self, pipeline_id: str | None = None, table: str | None = None) -> tuple[SchemaEvent, ...]:
        """The oldest first."""
        query = select(SCHEMA_LOG).order_by(_LOG.at, _LOG.pipeline_id, _LOG.table_name, _LOG.position)
        if pipeline_id is not None:
            query = query.where(_LOG.pipeline_id == pipeline_id)
        if table is not None:
            query = query.where(_LOG.table_name == table)
        return self._transactions.read(
            lambda c: tuple(
                SchemaEvent(
                    row.at, row.pipeline_id, row.table_name, row.kind, row.column_name, row.before, row.after,
                    row.decision, row.run_id, row.actor, row.reason,
                )
                for row in c.execute(query)
            )
        )  # fmt: skip


class SchemaStore(SchemaReader):
    def settle(
        self, pipeline_id: str, table: str, known: KnownSchema, decided: Sequence[Decided], run_id: str | None = None
    ) -> None:
        """What a load follows, and what became of each change on the way there: both, or neither. Of two that settle
        the same at once, the later one changes nothing."""

        def work(connection: Connection) -> None:
            row = {
                "pipeline_id": pipeline_id,
                "table_name": table,
                "version": known.version,
                "schema_json": json.dumps(asdict(known), ensure_ascii=False),
                "updated_at": self._transactions.now(connection),
            }
            upsert(connection, ACCEPTED_SCHEMA, [row], only_if=lambda new: _KNOWN.version < new["version"])
            self._note(connection, pipeline_id, table, decided, run_id=run_id)

        self._transactions.write(work)

    def note(
        self,
        pipeline_id: str,
        table: str,
        decided: Sequence[Decided],
        *,
        run_id: str | None = None,
        actor: str | None = None,
        reason: str | None = None,
    ) -> None:
        """Each once, however often it is met."""
        self._transactions.write(
            lambda c: self._note(c, pipeline_id, table, decided, run_id=run_id, actor=actor, reason=reason)
        )

    def _note(
        self,
        connection: Connection,
        pipeline_id: str,
        table: str,
        decided: Sequence[Decided],
        *,
        run_id: str | None = None,
        actor: str | None = None,
        reason: str | None = None,
    ) -> None:
        of_table = (_LOG.pipeline_id == pipeline_id) & (_LOG.table_name == table)
        last = connection.execute(select(func.coalesce(func.max(_LOG.position), 0)).where(of_table)).scalar_one()
        at = self._transactions.now(connection)
        insert_new(
            connection,
            SCHEMA_LOG,
            [
                {
                    "pipeline_id": pipeline_id,
                    "table_name": table,
                    "change_id": one.change.identity,
                    "decision": one.decision,
                    "position": last + number,
                    "at": at,
                    "kind": one.change.kind,
                    "column_name": one.change.column,
                    "before": one.change.before,
                    "after": one.change.after,
                    "run_id": run_id,
                    "actor": actor,
                    "reason": reason,
                }
                for number, one in enumerate(decided, 1)
            ],
        )


def _from_json(text: str) -> KnownSchema:
    document = json.loads(text)
    columns = tuple(KnownColumn(**column) for column in document["columns"])
    return KnownSchema(columns, tuple(document["key"]), document["version"])
