"""One COPY … FROM STDIN, fed with a candidate's blocks."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain

from psycopg import sql

from hakiri_dagster.destinations.contract import Candidate
from hakiri_dagster.destinations.postgres.connection import Connection, names
from hakiri_dagster.destinations.postgres.encode_binary import HEADER, TRAILER
from hakiri_dagster.destinations.postgres.encoding import is_binary
from hakiri_dagster.destinations.postgres.refused_rows import Refused
from hakiri_dagster.destinations.postgres.row_errors import rows_at_stake
from hakiri_dagster.destinations.postgres.row_triggers import triggers_before_rows
from hakiri_dagster.errors import RowCountMismatch, RowsLeftOut

_COPY_BYTES = 128 * 1024  # the driver cuts larger pieces itself, by copying them


class Blocks:
    """A candidate's blocks with the first one looked at, so that no lock is taken before there are rows."""

    refused: Refused | None = None
    """Where rows go that the server refuses; None: one refuses the load."""

    def __init__(self, candidate: Candidate) -> None:
        self._candidate = candidate
        self._rest = (block for block in candidate.blocks() if block)
        self._first = next(self._rest, None)

    @property
    def empty(self) -> bool:
        return self._first is None

    @property
    def set_aside(self) -> int:
        """To be asked when all blocks were taken."""
        return self._candidate.set_aside

    @property
    def cursor_max(self) -> int | None:
        """To be asked when all blocks were taken."""
        return self._candidate.cursor_max

    @property
    def rows(self) -> int:
        """Those that are loaded."""
        return self._candidate.rows

    def judge(self, connection: Connection, relation: sql.Identifier, columns: tuple[str, ...]) -> None:
        """To be asked before they are copied into a table. It leaves no trace there."""

    def all(self) -> Iterator[bytes]:
        """To be taken once."""
        return self._rest if self._first is None else chain([self._first], self._rest)

    def copy_into(
        self, connection: Connection, relation: sql.Identifier, columns: tuple[str, ...], *, freeze: bool = False
    ) -> int:
        self.judge(connection, relation, columns)
        with rows_at_stake(relation.as_string(connection)):
            fed = copy_blocks(connection, relation, columns, self.all(), freeze=freeze)
        return self.taken(connection, relation, fed)

    def taken(self, connection: Connection, relation: sql.Identifier, fed: int) -> int:
        """As `checked`; tells who may have left some out on their way into the relation."""
        if fed < self.rows:
            self._blame_triggers(connection, relation, fed)
        return self.checked(fed)

    def checked(self, fed: int) -> int:
        """Compares what Spark reports with what PostgreSQL took."""
        if fed != self.rows:
            raise RowCountMismatch(
                self._mismatch(fed), hint="the load is tried again; if this persists, report it with the run's log"
            )
        return fed

    def _blame_triggers(self, connection: Connection, relation: sql.Identifier, fed: int) -> None:
        triggers = triggers_before_rows(connection, relation)
        if not triggers:
            return
        disabling = "; ".join(f"ALTER TABLE {trigger.table} DISABLE TRIGGER {trigger.name}" for trigger in triggers)
        raise RowsLeftOut(
            f"{self._mismatch(fed)}. A trigger that fires before INSERT leaves out each row for which it returns NULL; "
            f"there is {', '.join(map(str, triggers))}",
            hint=f"drop the trigger that does so, or disable it ({disabling}), or give the table another `target`",
        )

    def _mismatch(self, fed: int) -> str:
        return f"Spark reported {self.rows} rows, PostgreSQL took {fed}; nothing was published"


def copy_blocks(
    connection: Connection,
    relation: sql.Identifier,
    columns: tuple[str, ...],
    blocks: Iterator[bytes],
    *,
    freeze: bool = False,
) -> int:
    first = next(blocks, None)
    if first is None:
        return 0
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
            for block in chain([first], blocks):
                for piece in _pieces(block):
                    copy.write(piece)
            if binary:
                copy.write(TRAILER)
        return cursor.rowcount


def _pieces(block: bytes) -> Iterator[memoryview]:
    view = memoryview(block)
    for start in range(0, len(view), _COPY_BYTES):
        yield view[start : start + _COPY_BYTES]
