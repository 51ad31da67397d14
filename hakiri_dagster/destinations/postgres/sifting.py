"""Finds the rows that the server refuses, by bisection: what it refuses as a whole is tried in halves."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Generic, Protocol, Self, TypeVar

import psycopg
from psycopg import sql

from hakiri_dagster.destinations.postgres.connection import Connection
from hakiri_dagster.destinations.postgres.row_errors import is_about_a_row

_FOREIGN_KEY = "23503"

_TO_ITSELF = """
SELECT EXISTS (SELECT FROM pg_constraint WHERE contype = 'f' AND conrelid = confrelid AND conrelid = to_regclass(%s))
"""


class Piece(Protocol):
    """Some rows that follow each other."""

    def take(self) -> None:
        """Brings them to the server, which refuses all of them or none."""
        ...

    def halves(self) -> tuple[Self, Self] | None:
        """None: it is one row."""
        ...


P = TypeVar("P", bound=Piece)


@dataclass(slots=True)
class Sieve(Generic[P]):
    """What passed stays in the open transaction, so that the rows after it meet it.

    `refers_to_itself`: a row may refer to one that comes later. So what a foreign key refuses is tried again when all
    others are in, as long as that helps.
    """

    connection: Connection
    refuse: Callable[[P, psycopg.Error], None]
    spend: Callable[[float], None]
    """Is told how many seconds the search took; raises when they are too many."""

    refers_to_itself: bool = False
    _orphans: list[tuple[P, psycopg.Error]] = field(default_factory=list)

    def sift(self, piece: P) -> None:
        error = self._refusal(piece)
        if error is not None:
            self._search(piece, error)

    def _search(self, piece: P, error: psycopg.Error | None) -> None:
        """It does not pass. Where the first half does, the second does not."""
        halves = piece.halves()
        if halves is None:
            error = error or self._timed_refusal(piece)
            if error is not None:
                self._leave_out(piece, error)
            return
        first, second = halves
        error = self._timed_refusal(first)
        if error is None:
            self._search(second, None)
            return
        self._search(first, error)
        error = self._timed_refusal(second)
        if error is not None:
            self._search(second, error)

    def _leave_out(self, piece: P, error: psycopg.Error) -> None:
        if self.refers_to_itself and error.sqlstate == _FOREIGN_KEY:
            self._orphans.append((piece, error))
        else:
            self.refuse(piece, error)

    def settle(self) -> None:
        """When all pieces were sifted."""
        while self._orphans:
            tried = [(piece, self._timed_refusal(piece)) for piece, _ in self._orphans]
            left = [(piece, error) for piece, error in tried if error is not None]
            if len(left) == len(self._orphans):
                for piece, error in left:
                    self.refuse(piece, error)
                return
            self._orphans = left

    def _timed_refusal(self, piece: P) -> psycopg.Error | None:
        started = time.monotonic()
        error = self._refusal(piece)
        self.spend(time.monotonic() - started)
        return error

    def _refusal(self, piece: P) -> psycopg.Error | None:
        try:
            with self.connection.transaction():
                piece.take()
        except psycopg.Error as error:
            if not is_about_a_row(error):
                raise
            return error
        return None


def refers_to_itself(connection: Connection, relation: sql.Identifier) -> bool:
    return connection.execute(_TO_ITSELF, (relation.as_string(connection),)).fetchone() == (True,)
