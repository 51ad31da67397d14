"""`pipeline_rename`: which pipelines and tables were renamed, and renaming what the audit DB knows of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from sqlalchemy import Column, ColumnElement, Connection, Table, and_, delete, exists, insert, select, update

from hakiri_dagster.audit.engine import Transactions
from hakiri_dagster.audit.schema import (
    ACCEPTED_SCHEMA,
    ALERT,
    BUDGET_USE,
    CURSOR_HISTORY,
    DELIVERIES,
    OPEN_ALERT,
    PIPELINE_CHUNKS,
    PIPELINE_CURSOR,
    PIPELINE_RENAME,
    PIPELINE_RUN,
    RATE_BUDGET,
    REWIND,
    SCHEMA_LOG,
    SILENT_PART,
    SOURCE_FILES,
    SOURCE_LOOK,
    TABLE_SCHEMA,
    TABLE_STATE,
)
from hakiri_dagster.errors import UsageError

_C: Final = PIPELINE_RENAME.c

STATE: Final = (
    PIPELINE_CHUNKS,
    PIPELINE_CURSOR,
    CURSOR_HISTORY,
    TABLE_STATE,
    TABLE_SCHEMA,
    ACCEPTED_SCHEMA,
    SOURCE_FILES,
    SOURCE_LOOK,
    SILENT_PART,
)
"""What a table has come to. Of the new name there may be a plan already, made by a survey that was refused: the state
of the old name replaces it as a whole."""

HISTORY: Final = (PIPELINE_RUN, REWIND, SCHEMA_LOG, ALERT, BUDGET_USE)
"""What happened to a table: it is added to what is known of the new name."""

OF_PIPELINE: Final = (RATE_BUDGET, DELIVERIES)
"""What has no table: it is renamed with a whole pipeline. Where the new name has an entry of its own, that counts."""


@dataclass(frozen=True, slots=True)
class Rename:
    """`old_table` and `new_table` are empty where a whole pipeline is renamed."""

    old_pipeline: str
    new_pipeline: str
    old_table: str = ""
    new_table: str = ""

    @property
    def old(self) -> str:
        return f"{self.old_pipeline}/{self.old_table}" if self.old_table else self.old_pipeline

    @property
    def new(self) -> str:
        return f"{self.new_pipeline}/{self.new_table}" if self.new_table else self.new_pipeline

    def concerns(self, pipeline_id: str, table: str) -> bool:
        if not self.old_table:
            return pipeline_id in (self.old_pipeline, self.new_pipeline)
        return (pipeline_id, table) in (
            (self.old_pipeline, self.old_table),
            (self.new_pipeline, self.new_table),
        )

    def overlaps(self, other: Rename) -> bool:
        ends = ((other.old_pipeline, other.old_table), (other.new_pipeline, other.new_table))
        return any(
            pipeline in (self.old_pipeline, self.new_pipeline) and (not table or self.concerns(pipeline, table))
            for pipeline, table in ends
        )


class RenameStore:
    def __init__(self, transactions: Transactions) -> None:
        self._transactions = transactions

    def unfinished(self) -> tuple[Rename, ...]:
        query = select(_C.old_pipeline, _C.new_pipeline, _C.old_table, _C.new_table).where(_C.finished_at.is_(None))
        return self._transactions.read(lambda c: tuple(Rename(*row) for row in c.execute(query)))

    def was_finished(self, rename: Rename) -> bool:
        query = select(exists().where(*_is(rename), _C.finished_at.is_not(None)))
        return bool(self._transactions.read(lambda c: c.execute(query).scalar_one()))

    def knows(self, pipeline_id: str, table: str = "") -> bool:
        """Whether anything is recorded of a pipeline, or of one of its tables."""

        def work(connection: Connection) -> bool:
            queries = (select(exists().where(*_of(one, pipeline_id, table))) for one in (*STATE, PIPELINE_RUN))
            return any(connection.execute(query).scalar_one() for query in queries)

        return self._transactions.read(work)

    def begin(self, rename: Rename) -> None:
        """Record that the rename has begun: from now on neither name is loaded until it is finished. One that goes back
        to the old name takes the place of one that was broken off."""
        back = Rename(rename.new_pipeline, rename.old_pipeline, rename.new_table, rename.old_table)

        def work(connection: Connection) -> None:
            connection.execute(delete(PIPELINE_RENAME).where(*_is(back), _C.finished_at.is_(None)))
            query = select(_C.old_pipeline, _C.new_pipeline, _C.old_table, _C.new_table)
            open_ones = [Rename(*row) for row in connection.execute(query.where(_C.finished_at.is_(None)))]
            if rename in open_ones:
                return
            for other in open_ones:
                if rename.overlaps(other):
                    raise UsageError(
                        f"the rename of {other.old} to {other.new} is not finished",
                        hint=f"run `hakiri pipeline rename {other.old} {other.new}` first",
                    )
            connection.execute(
                insert(PIPELINE_RENAME).values(
                    old_pipeline=rename.old_pipeline,
                    old_table=rename.old_table,
                    new_pipeline=rename.new_pipeline,
                    new_table=rename.new_table,
                    started_at=self._transactions.now(connection),
                )
            )

        self._transactions.write(work, kept="surely")

    def move(self, rename: Rename) -> int:
        """Give everything that is recorded of the old name the new one. Return how many rows that were."""

        def work(connection: Connection) -> int:
            moved = 0
            for table in STATE:
                moved += _replace_state(connection, table, rename)
            for table in HISTORY:
                _drop_repeated(connection, table, rename)
                moved += connection.execute(update(table).where(*_old(table, rename)).values(_new(rename))).rowcount
            if not rename.old_table:
                moved += sum(_keep_new(connection, table, rename) for table in OF_PIPELINE)
            return moved

        return self._transactions.write(work, kept="surely")

    def finish(self, rename: Rename) -> None:
        def work(connection: Connection) -> None:
            now = self._transactions.now(connection)
            mine = (*_is(rename), _C.finished_at.is_(None))
            connection.execute(update(PIPELINE_RENAME).where(*mine).values(finished_at=now))

        self._transactions.write(work, kept="surely")


def _replace_state(connection: Connection, table: Table, rename: Rename) -> int:
    """Table by table: of a pipeline, tables of which only the new name is known stay as they are."""
    known = connection.execute(select(table.c.table_name).where(*_old(table, rename)).distinct()).scalars().all()
    if not known:
        return 0
    new_names = [rename.new_table] if rename.old_table else list(known)
    connection.execute(
        delete(table).where(table.c.pipeline_id == rename.new_pipeline, table.c.table_name.in_(new_names))
    )
    return connection.execute(update(table).where(*_old(table, rename)).values(_new(rename))).rowcount


def _drop_repeated(connection: Connection, table: Table, rename: Rename) -> None:
    """What is recorded under both names was recorded under the old one first. Of alerts only the open ones count: a
    condition has one of them."""
    if table is REWIND:
        return
    other, is_alert = table.alias(), table is ALERT
    keys = ("kind", "subject") if is_alert else [column.name for column in table.primary_key]
    same = [other.c[name] == table.c[name] for name in keys if name not in ("pipeline_id", "table_name")]
    if is_alert:
        same += [other.c.acknowledged_at.is_(None), OPEN_ALERT]
    if not rename.old_table:
        same.append(other.c.table_name == table.c.table_name)
    mine = _of(table, rename.new_pipeline, rename.new_table)
    connection.execute(delete(table).where(*mine, exists().where(*_old(other, rename), *same)))


def _keep_new(connection: Connection, table: Table, rename: Rename) -> int:
    keys: Sequence[Sequence[Column[Any]]] = (
        [(RATE_BUDGET.c.of,)]
        if table is RATE_BUDGET
        else [(DELIVERIES.c.source, DELIVERIES.c.delivery_id), (DELIVERIES.c.proof,)]
    )
    for columns in keys:
        other = table.alias()
        same = and_(*(other.c[column.name] == column for column in columns))
        taken = exists().where(other.c.pipeline_id == rename.new_pipeline, same)
        connection.execute(delete(table).where(table.c.pipeline_id == rename.old_pipeline, taken))
    moved = update(table).where(table.c.pipeline_id == rename.old_pipeline).values(pipeline_id=rename.new_pipeline)
    return connection.execute(moved).rowcount


def _is(rename: Rename) -> tuple[ColumnElement[bool], ...]:
    return (
        _C.old_pipeline == rename.old_pipeline,
        _C.old_table == rename.old_table,
        _C.new_pipeline == rename.new_pipeline,
        _C.new_table == rename.new_table,
    )


def _of(table: Any, pipeline_id: str, name: str) -> tuple[ColumnElement[bool], ...]:
    of_pipeline = (table.c.pipeline_id == pipeline_id,)
    return (*of_pipeline, table.c.table_name == name) if name else of_pipeline


def _old(table: Any, rename: Rename) -> tuple[ColumnElement[bool], ...]:
    return _of(table, rename.old_pipeline, rename.old_table)


def _new(rename: Rename) -> dict[str, str]:
    named = {"table_name": rename.new_table} if rename.old_table else {}
    return {"pipeline_id": rename.new_pipeline, **named}
