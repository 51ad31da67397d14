"""`source_files`: what was last seen of each file, and which version of it the chunk plan has taken in."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from sqlalchemy import Connection, Row, select

from hakiri_dagster.audit.chunk_rows import number_from_text, number_to_text
from hakiri_dagster.audit.engine import Transactions
from hakiri_dagster.audit.schema import SOURCE_FILES
from hakiri_dagster.audit.upserts import upsert
from hakiri_dagster.planning.source_files import FileVersion, unsettled

_C: Final = SOURCE_FILES.c


class FileReader:
    def __init__(self, transactions: Transactions) -> None:
        self._transactions = transactions

    def known(self, pipeline_id: str, table: str) -> dict[str, FileVersion]:
        """By path, as last looked at; files that are gone are kept."""
        rows = self._transactions.read(lambda c: _rows(c, pipeline_id, table))
        return {row.path: _seen(row) for row in rows}

    def taken_in(self, pipeline_id: str, table: str) -> dict[str, FileVersion]:
        """By path, the version that the stored chunk states reflect."""
        return self._transactions.read(lambda c: _taken_in(c, pipeline_id, table))


class FileStore(FileReader):
    def put(self, pipeline_id: str, table: str, files: Sequence[FileVersion]) -> None:
        """Remembers what was looked at, so that nothing is hashed twice. Says nothing about what is loaded."""
        rows = [_values(pipeline_id, table, file) for file in files]
        self._transactions.write(lambda c: upsert(c, SOURCE_FILES, rows))


def take_in(
    connection: Connection, pipeline_id: str, table: str, files: Sequence[FileVersion], *, settled: bool
) -> None:
    """In the transaction that stores the chunk states which follow from these versions: all of them, if `settled`."""
    versions = files if settled else unsettled(_taken_in(connection, pipeline_id, table), files)
    rows = [
        {
            **_values(pipeline_id, table, file),
            "taken_in_hash": version.content_hash,
            "taken_in_lower": number_to_text(version.lower),
            "taken_in_upper": number_to_text(version.upper),
            "taken_in_nulls": version.nulls,
        }
        for file, version in zip(files, versions, strict=True)
    ]
    upsert(connection, SOURCE_FILES, rows)


def _rows(connection: Connection, pipeline_id: str, table: str) -> Sequence[Row[Any]]:
    query = select(SOURCE_FILES).where(_C.pipeline_id == pipeline_id, _C.table_name == table)
    return connection.execute(query).all()


def _taken_in(connection: Connection, pipeline_id: str, table: str) -> dict[str, FileVersion]:
    rows = _rows(connection, pipeline_id, table)
    return {row.path: _version_taken_in(row) for row in rows if row.taken_in_hash is not None}


def _values(pipeline_id: str, table: str, file: FileVersion) -> dict[str, Any]:
    return {
        "pipeline_id": pipeline_id,
        "table_name": table,
        "path": file.path,
        "fingerprint": file.fingerprint,
        "content_hash": file.content_hash,
        "lower_cursor": number_to_text(file.lower),
        "upper_cursor": number_to_text(file.upper),
        "null_cursors": file.nulls,
        "rows": file.rows,
    }


def _seen(row: Row[Any]) -> FileVersion:
    return FileVersion(
        path=row.path,
        fingerprint=row.fingerprint,
        content_hash=row.content_hash,
        lower=number_from_text(row.lower_cursor),
        upper=number_from_text(row.upper_cursor),
        nulls=row.null_cursors,
        rows=row.rows,
    )


def _version_taken_in(row: Row[Any]) -> FileVersion:
    return FileVersion(
        path=row.path,
        fingerprint="",
        content_hash=row.taken_in_hash,
        lower=number_from_text(row.taken_in_lower),
        upper=number_from_text(row.taken_in_upper),
        nulls=row.taken_in_nulls,
    )
