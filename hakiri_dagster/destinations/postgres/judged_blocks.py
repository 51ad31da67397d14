"""A candidate of which the server has refused some row: the rows that it refuses are found, and the others loaded."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import psycopg
from psycopg import sql
from typing_extensions import override

from hakiri_dagster.destinations.contract import Candidate
from hakiri_dagster.destinations.postgres.block_rows import row_bounds
from hakiri_dagster.destinations.postgres.connection import Connection
from hakiri_dagster.destinations.postgres.copy import Blocks, copy_blocks
from hakiri_dagster.destinations.postgres.encoding import is_binary
from hakiri_dagster.destinations.postgres.refused_rows import Refused, RefusedRow
from hakiri_dagster.destinations.postgres.row_as_json import JsonOfRows
from hakiri_dagster.destinations.postgres.row_errors import why_refused
from hakiri_dagster.destinations.postgres.sifting import Sieve, refers_to_itself

CHECKED_AT_ONCE = "SET CONSTRAINTS ALL IMMEDIATE"


class JudgedBlocks(Blocks):
    """Blocks are known by their places in the candidate, and rows by theirs in a block."""

    def __init__(self, candidate: Candidate, refused: Refused, texts: Collection[str]) -> None:
        """`texts`: columns that are texts at the source."""
        self._all = candidate.rows  # waits until no block can come that moves the others
        super().__init__(candidate)
        self.refused: Refused = refused
        self._texts = texts
        self._cuts: defaultdict[int, list[tuple[int, int]]] = defaultdict(list)

    @property
    @override
    def set_aside(self) -> int:
        return super().set_aside + self.refused.rows

    @property
    @override
    def rows(self) -> int:
        return self._all - self.refused.rows

    @override
    def all(self) -> Iterator[bytes]:
        for block in self._numbered():
            yield from block.without(self._cuts.get(block.number, []))

    @override
    def judge(self, connection: Connection, relation: sql.Identifier, columns: tuple[str, ...]) -> None:
        """Block by block; what was copied is undone."""
        with connection.transaction(force_rollback=True):
            connection.execute(CHECKED_AT_ONCE)
            place = _Place(connection, relation, columns, self._texts)

            def refuse(rows: _Rows, error: psycopg.Error) -> None:
                self._cuts[rows.block.number].append(rows.span)
                self.refused.add(why_refused(error), place.row_as_json(rows.encoded))

            sieve = Sieve(connection, refuse, self.refused.spend, refers_to_itself(connection, relation))
            for block in self._numbered():
                sieve.sift(_Rows(place, block))
            sieve.settle()

    def _numbered(self) -> Iterator[_Block]:
        return (_Block(*each) for each in enumerate(block for block in self._candidate.blocks() if block))


@dataclass
class _Block:
    number: int
    encoded: bytes

    @cached_property
    def bounds(self) -> list[int]:
        return row_bounds(self.encoded)

    def without(self, cuts: Sequence[tuple[int, int]]) -> Iterator[bytes]:
        start = 0
        for first, end in sorted(cuts):
            if start < first:
                yield self.encoded[start:first]
            start = end
        if start < len(self.encoded):
            yield self.encoded[start:] if start else self.encoded


@dataclass
class _Place:
    """Where the rows are to go."""

    connection: Connection
    relation: sql.Identifier
    columns: tuple[str, ...]
    texts: Collection[str]
    _json: JsonOfRows | None = None

    def take(self, encoded: bytes) -> None:
        copy_blocks(self.connection, self.relation, self.columns, iter([encoded]))

    def row_as_json(self, encoded: bytes) -> RefusedRow:
        if self._json is None:
            binary = is_binary(encoded)
            self._json = JsonOfRows(self.connection, self.relation, self.columns, self.texts, binary=binary)
        return self._json.of(encoded)


@dataclass(frozen=True)
class _Rows:
    """Some of a block, from one to before another; None: all of them. Where they lie in it is asked when it matters."""

    place: _Place
    block: _Block
    which: tuple[int, int] | None = None

    @property
    def span(self) -> tuple[int, int]:
        if self.which is None:
            return 0, len(self.block.encoded)
        first, after = self.which
        return self.block.bounds[first], self.block.bounds[after]

    @property
    def encoded(self) -> bytes:
        start, end = self.span
        return self.block.encoded[start:end]

    def take(self) -> None:
        self.place.take(self.encoded)

    def halves(self) -> tuple[_Rows, _Rows] | None:
        first, after = self.which or (0, len(self.block.bounds) - 1)
        if after - first < 2:
            return None
        middle = (first + after) // 2
        return (
            replace(self, which=(first, middle)),
            replace(self, which=(middle, after)),
        )
