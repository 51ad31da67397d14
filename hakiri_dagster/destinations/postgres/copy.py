"""One COPY … FROM STDIN, fed with a candidate's blocks."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain

from psycopg import sql

from hakiri_dagster.destinations.contract import Candidate
from hakiri_dagster.destinations.postgres.connection import Connection, names
from hakiri_dagster.destinations.postgres.encode_binary import HEADER, TRAILER
from hakiri_dagster.destinations.postgres.encoding import is_binary
from hakiri_dagster.errors import RowCountMismatch

_COPY_BYTES = 128 * 1024  # the driver cuts larger pieces itself, by copying them


class Blocks:
    """A candidate's blocks with the first one looked at, so that no lock is taken before there are rows."""

    def __init__(self, candidate: Candidate) -> None:
        self._candidate = candidate
        self._rest = (block for block in candidate.blocks() if block)
        self._first = next(self._rest, None)

    @property
    def empty(self) -> bool:
        return self._first is None

    def copy_into(
        self, connection: Connection, relation: sql.Identifier, columns: tuple[str, ...], *, freeze: bool = False
    ) -> int:
        """Compares what Spark reports with what PostgreSQL took."""
        fed = 0 if self._first is None else self._copy(connection, relation, columns, self._first, freeze)
        if fed != self._candidate.rows:
            raise RowCountMismatch(
                f"Spark reported {self._candidate.rows} rows, PostgreSQL took {fed}; nothing was published",
                hint="the load is tried again; if this persists, report it with the run's log",
            )
        return fed

    def _copy(
        self, connection: Connection, relation: sql.Identifier, columns: tuple[str, ...], first: bytes, freeze: bool
    ) -> int:
        binary = is_binary(first)
        options = sql.SQL(", ").join(
            [
                sql.SQL("FORMAT {}").format(sql.SQL("binary" if binary else "text")),
                *([sql.SQL("FREEZE")] if freeze else []),
            ]
        )
        statement = sql.SQL("COPY {} ({}) FROM STDIN (ENCODING 'UTF8', {})").format(relation, names(columns), options)
        with connection.cursor() as cursor:
            with cursor.copy(statement) as copy:
                if binary:
                    copy.write(HEADER)
                for block in chain([first], self._rest):
                    for piece in _pieces(block):
                        copy.write(piece)
                if binary:
                    copy.write(TRAILER)
            return cursor.rowcount


def _pieces(block: bytes) -> Iterator[memoryview]:
    view = memoryview(block)
    for start in range(0, len(view), _COPY_BYTES):
        yield view[start : start + _COPY_BYTES]
