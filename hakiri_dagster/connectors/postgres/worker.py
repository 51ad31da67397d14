"""The part of a reading that runs in Spark's workers: COPY out of the source, straight into Arrow."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass

import adbc_driver_postgresql.dbapi as adbc
import pyarrow as pa
from adbc_driver_manager import Error as AdbcError
from psycopg import sql

from hakiri_dagster.connectors.postgres.config import SourceConfig
from hakiri_dagster.connectors.postgres.connection import SESSION_SETTINGS
from hakiri_dagster.connectors.postgres.failures import failure
from hakiri_dagster.connectors.postgres.row_shape import RowShape
from hakiri_dagster.errors import SourceError, SourceUnavailable
from hakiri_dagster.planning.columns import Column

_BATCH_BYTES = 4 * 1024 * 1024
_BATCH_OPTION = "adbc.postgresql.batch_size_hint_bytes"


@dataclass(frozen=True, slots=True)
class PartReader:
    """For `mapInArrow` over part numbers. Pickled into the plan, where nothing of it can be read."""

    config: SourceConfig
    where: str
    statements: tuple[str, ...]
    columns: tuple[Column, ...]
    snapshot: str | None
    text_is_valid: bool

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for part in batch.column(0).to_pylist():
                yield from self.read(part)

    def read(self, part: int) -> Iterator[pa.RecordBatch]:
        shape = RowShape(self.columns, self.text_is_valid, self.where)
        try:
            with closing(adbc.connect(self.config.conninfo, autocommit=True)) as connection:
                self._begin(connection)
                with closing(connection.cursor()) as cursor:
                    cursor.adbc_statement.set_options(**{_BATCH_OPTION: str(_BATCH_BYTES)})
                    cursor.execute(self.statements[part])
                    for batch in cursor.fetch_record_batch():
                        yield shape.fit(batch)
        except (AdbcError, OSError) as error:
            raise self._failure(error) from None  # the original quotes the statement with its values

    def _begin(self, connection: adbc.Connection) -> None:
        _execute(connection, "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")
        if self.snapshot is not None:
            try:
                _execute(
                    connection, sql.SQL("SET TRANSACTION SNAPSHOT {}").format(sql.Literal(self.snapshot)).as_string()
                )
            except AdbcError as error:
                reason = str(failure(error, self.config, self.where))
                raise SourceUnavailable(f"the snapshot of this reading is gone: {reason}") from None
        _execute(connection, SESSION_SETTINGS)

    def _failure(self, error: AdbcError | OSError) -> SourceError:
        if isinstance(error, AdbcError):
            return failure(error, self.config, self.where)
        return SourceUnavailable(self.config.without_secrets(str(error)), where=self.where)


def _execute(connection: adbc.Connection, statement: str) -> None:
    with closing(connection.cursor()) as cursor:
        cursor.execute(statement)
