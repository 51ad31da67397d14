"""The part of a reading that runs in Spark's workers: COPY out of the source, straight into Arrow."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from contextlib import closing
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import pyarrow as pa
from adbc_driver_manager import Error as AdbcError
from psycopg import sql

from hakiri_dagster.connectors.postgres.config import SourceConfig
from hakiri_dagster.connectors.postgres.connection import session_settings
from hakiri_dagster.connectors.postgres.failures import DRIVER_ERRORS, failure
from hakiri_dagster.connectors.postgres.row_shape import RowShape
from hakiri_dagster.connectors.postgres.stale_server import reached, stale_server
from hakiri_dagster.errors import SourceUnavailable
from hakiri_dagster.planning.columns import Column

if TYPE_CHECKING:
    import adbc_driver_postgresql.dbapi as adbc

_BATCH_BYTES = 4 * 1024 * 1024
_BATCH_OPTION = "adbc.postgresql.batch_size_hint_bytes"


@dataclass(frozen=True, slots=True)
class PartReader:
    """Pickled into Spark's plan, where it cannot be read. Its errors leave it to the driver to say which table."""

    config: SourceConfig
    statements: tuple[str, ...]
    columns: tuple[Column, ...]
    snapshot: str | None
    wal: str | None = None
    """How far the server must have come with its log."""

    @property
    def parts(self) -> int:
        return len(self.statements)

    @property
    def same_twice(self) -> bool:
        """A view may show other rows at each try, also in one snapshot."""
        return False

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """For `mapInArrow` over part numbers."""
        for batch in batches:
            for part in batch.column(0).to_pylist():
                yield from self.read(part)

    def read(self, part: int) -> Iterator[pa.RecordBatch]:
        import adbc_driver_postgresql.dbapi as adbc  # brings pandas, 45 MB that whoever only plans has no use for

        shape = RowShape(self.columns)
        try:
            with closing(adbc.connect(self.config.conninfo, autocommit=True)) as connection:
                self._begin(connection)
                with closing(connection.cursor()) as cursor:
                    cursor.adbc_statement.set_options(**{_BATCH_OPTION: str(_BATCH_BYTES)})
                    cursor.execute(self.statements[part])
                    with closing(cursor.fetch_record_batch()) as batches:
                        yield from map(shape.fit, batches)
        except DRIVER_ERRORS as error:
            raise failure(error, self.config) from None  # the original quotes the statement with its values

    def only(self, names: Collection[str]) -> PartReader:
        """The server leaves out what is not asked for."""
        kept = tuple(column for column in self.columns if column.name in names)
        statement = sql.SQL("SELECT {} FROM ({{}}) AS rows ({})").format(
            sql.SQL(", ").join(_place(self.columns.index(column)) for column in kept),
            sql.SQL(", ").join(map(_place, range(len(self.columns)))),
        )
        around = statement.as_string()
        return replace(
            self, statements=tuple(around.replace("{}", inner, 1) for inner in self.statements), columns=kept
        )

    def _begin(self, connection: adbc.Connection) -> None:
        """One transaction, so that settings and snapshot hold behind a pooler too."""
        if self.snapshot is None and self.wal is not None and not _is_true(connection, reached(self.wal)):
            raise stale_server()
        _execute(connection, "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")
        if self.snapshot is not None:
            self._import(connection, self.snapshot)
        _execute(connection, session_settings(self.config))

    def _import(self, connection: adbc.Connection, snapshot: str) -> None:
        try:
            _execute(connection, sql.SQL("SET TRANSACTION SNAPSHOT {}").format(sql.Literal(snapshot)).as_string())
        except AdbcError as error:
            reason = failure(error, self.config).what
            raise SourceUnavailable(f"the view of the source that this reading shares is gone: {reason}") from None


def _execute(connection: adbc.Connection, statement: str) -> None:
    with closing(connection.cursor()) as cursor:
        cursor.execute(statement)


def _is_true(connection: adbc.Connection, query: str) -> bool:
    with closing(connection.cursor()) as cursor:
        cursor.execute(query)
        return bool(cursor.fetchone() == (True,))


def _place(index: int) -> sql.Identifier:
    return sql.Identifier(f"c{index}")
