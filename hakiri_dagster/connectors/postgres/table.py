"""A table of a PostgreSQL source: what it holds, and its rows as a Spark frame."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from functools import partial
from typing import Final

from psycopg import Connection, sql
from psycopg.rows import TupleRow
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import DataType, StructField, StructType

from hakiri_dagster.connectors.contract import (
    NO_LOOKBACK,
    Discovery,
    FileState,
    Forms,
    Known,
    Reading,
    SourceTally,
    SparkProvider,
)
from hakiri_dagster.connectors.postgres import partitions, snapshot
from hakiri_dagster.connectors.postgres.catalog import Relation, describe
from hakiri_dagster.connectors.postgres.column_types import selection
from hakiri_dagster.connectors.postgres.comparison import SourceComparison
from hakiri_dagster.connectors.postgres.config import SourceConfig
from hakiri_dagster.connectors.postgres.connection import connect, session_settings, source_transaction
from hakiri_dagster.connectors.postgres.cursors import Cursor, cursor_of, extent, fingerprint
from hakiri_dagster.connectors.postgres.failures import source_errors
from hakiri_dagster.connectors.postgres.row_security import (
    find_filtered_relations,
    refuse_filtered,
    row_security_warnings,
)
from hakiri_dagster.connectors.postgres.stale_server import refuse_stale_server, refuse_stale_survey
from hakiri_dagster.connectors.postgres.tallying import row_of, tallies
from hakiri_dagster.connectors.postgres.transactions import list_transactions
from hakiri_dagster.connectors.postgres.worker import PartReader
from hakiri_dagster.errors import SourceError
from hakiri_dagster.planning.backfill_hint import MONOTONIC, BackfillHint
from hakiri_dagster.planning.chunks import Slice
from hakiri_dagster.planning.columns import Column, SourceSchema, is_ours, left_out
from hakiri_dagster.planning.horizon import (
    CursorHistory,
    Horizon,
    Lookback,
    judge_horizon,
    may_be_awaited,
)
from hakiri_dagster.planning.windows import MINUTE
from hakiri_dagster.quality.table_comparison import ComparedColumns

_SOON: Final = MINUTE
"""A transaction that has been open for longer is not expected to end within the patience of a survey."""
_POLL_SECONDS: Final = 0.1


@dataclass(frozen=True, slots=True)
class PostgresTable:
    config: SourceConfig
    name: str
    label: str
    text_format: bool = False
    read_as: str = ""
    chunked_by_file: bool = False
    tallies_itself: bool = True
    slices_a_pass: int | None = None
    hint: BackfillHint = MONOTONIC

    @property
    def lineage(self) -> tuple[str, ...]:
        return (*self.config.lineage, self.name)

    @property
    def _identifier(self) -> sql.Identifier:
        return sql.Identifier(self.config.schema, self.name)

    def discover(
        self, *, cursor: str | None, known: Known, spark: SparkProvider, lookback: Lookback = NO_LOOKBACK
    ) -> Discovery:
        with source_transaction(self.config, self.label) as connection:
            relation = self._describe(connection)
            schema = SourceSchema(self._columns(relation), tuple(relation.primary_key))
            filtered = find_filtered_relations(connection, self.config.schema, self.name)
            if not self.config.row_security:
                refuse_filtered(filtered, self.label)
            warnings = (*left_out(column.name for column in relation.columns), *row_security_warnings(filtered))
            if cursor is None:
                return Discovery(schema, rows_estimate=relation.rows_estimate, warnings=warnings)
            by = cursor_of(relation, cursor, self.config.text_columns, self.label)
            found = extent(connection, self._identifier, by, relation, self.label)
            horizon = self._judge_horizon(connection, by, found.newest, lookback) if lookback.judges else None
            reread = None if horizon is None else horizon.reread(found.newest, lookback.lag)
            stretches = dict.fromkeys(one.lower for one in (lookback.history.reread, reread) if one is not None)
            fingerprints = [(lower, fingerprint(connection, self._identifier, by, lower)) for lower in stretches]
            return Discovery(
                schema,
                by.kind,
                replace(found, fingerprints=tuple(fingerprints)),
                rows_estimate=relation.rows_estimate,
                warnings=warnings,
                horizon=horizon,
            )

    def _judge_horizon(
        self, connection: Connection[TupleRow], by: Cursor, newest: int | None, lookback: Lookback
    ) -> Horizon:
        """List the open transactions after the extent was read, never before: it has to be older than any of them.

        A table that is loaded for the first time has no older observation to fall back on, so that transactions which
        are about to end are awaited.
        """

        def judge(history: CursorHistory, *, observes: bool) -> Horizon:
            qualified = self._identifier.as_string(connection)
            transactions = list_transactions(connection, self.config, by, qualified, again=not observes)
            refuse_stale_survey(history, transactions, self.label)
            return judge_horizon(
                history,
                transactions,
                newest,
                by.kind,
                observes=observes,
                trusts_lag=lookback.lag is not None,
                zoned=by.type == "timestamptz",
                saved_now=time.time_ns() // 1000,
            )

        horizon = judge(lookback.history, observes=True)
        deadline = time.monotonic_ns() // 1000 + lookback.patience
        while time.monotonic_ns() // 1000 < deadline and may_be_awaited(horizon, _SOON):
            time.sleep(_POLL_SECONDS)
            horizon = judge(horizon.history, observes=False)
        return horizon

    def read(
        self,
        spark: SparkSession,
        schema: SourceSchema,
        cursor: str | None,
        slices: Sequence[Slice],
        files: Mapping[str, FileState],
        *,
        tallied: bool = False,
        twice: bool = False,
        horizon: Horizon | None = None,
    ) -> Reading:
        wal = None if horizon is None else horizon.transactions.wal
        with ExitStack() as on_failure:
            holder = connect(self.config, self.label)
            on_failure.callback(holder.close)
            with source_errors(self.config, self.label):
                if wal is not None:
                    refuse_stale_server(holder, wal, self.label)
                holder.execute(session_settings(self.config))
                reader = self._plan(holder, schema, cursor, slices, wal, shares=tallied or twice)
            if reader.snapshot is None and not tallied:
                holder.close()  # a single statement is consistent by itself
            frame = _frame(spark, reader)
            on_failure.pop_all()
        tally = partial(self._tally, holder, cursor) if tallied else None
        return Reading(frame, schema, close=holder.close, tally=tally, direct=reader)

    def _tally(
        self,
        holder: Connection[TupleRow],
        cursor: str | None,
        slices: Sequence[Slice],
        forms: Forms,
        empty_as_null: bool,
    ) -> list[SourceTally]:
        with source_errors(self.config, self.label):
            by = None
            if cursor is not None:
                by = cursor_of(self._describe(holder), cursor, self.config.text_columns, self.label)
            return tallies(holder, self._identifier, by, slices, row_of(forms, empty_as_null=empty_as_null))

    def _plan(
        self,
        holder: Connection[TupleRow],
        schema: SourceSchema,
        cursor: str | None,
        slices: Sequence[Slice],
        wal: str | None,
        *,
        shares: bool,
    ) -> PartReader:
        relation = self._describe(holder)
        self._refuse_changed(schema, relation)
        by = None if cursor is None else cursor_of(relation, cursor, self.config.text_columns, self.label)
        wanted = partitions.Selection(
            columns=sql.SQL(", ").join(selection(column) for column in schema.columns),
            table=self._identifier,
            condition=None if by is None else by.condition([one.bounds for one in slices]),
        )
        statements = partitions.parts(holder, wanted, relation, by, self.config.max_connections)
        shared = snapshot.export(holder, self.config, self.label) if shares or len(statements) > 1 else None
        if shared is None:
            statements = [wanted.where()]
        return PartReader(
            config=self.config,
            statements=tuple(statement.as_string(holder) for statement in statements),
            columns=schema.columns,
            snapshot=shared,
            wal=wal,
        )

    def comparison(self, columns: ComparedColumns) -> SourceComparison:
        with source_transaction(self.config, self.label) as connection:
            relation = self._describe(connection)
        by = None
        if columns.cursor is not None:
            by = cursor_of(relation, columns.cursor, self.config.text_columns, self.label)
        return SourceComparison(self.config, relation, self._identifier, by, columns, self.label)

    def _describe(self, connection: Connection[TupleRow]) -> Relation:
        return describe(connection, self.config.schema, self.name, self.label)

    def _columns(self, relation: Relation) -> tuple[Column, ...]:
        as_text = self.config.text_columns
        return tuple(
            column.as_column(as_text=column.name in as_text) for column in relation.columns if not is_ours(column.name)
        )

    def _refuse_changed(self, planned: SourceSchema, relation: Relation) -> None:
        now = {column.name: column for column in self._columns(relation)}
        for column in planned.columns:
            found = now.get(column.name)
            if found is None or (found.spark_type, found.native_type) != (column.spark_type, column.native_type):
                change = "is gone" if found is None else f"was {column.native_type} and is {found.native_type}"
                raise SourceError(
                    f"column {column.name!r} {change} since the table was planned",
                    where=self.label,
                    hint="plan again; the next plan reads the columns anew",
                )


def _frame(spark: SparkSession, reader: PartReader) -> DataFrame:
    """One task a part."""
    types = StructType([StructField(c.name, DataType.fromDDL(c.spark_type)) for c in reader.columns])
    return spark.range(0, reader.parts, 1, reader.parts).mapInArrow(reader, types)
