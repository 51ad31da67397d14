"""Staged rows on their way into the target. Where the server has refused some row, those that it refuses are found
first, and leave the candidate."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import psycopg
from psycopg import sql

from hakiri_dagster.destinations.postgres.connection import names, relation
from hakiri_dagster.destinations.postgres.judged_blocks import CHECKED_AT_ONCE
from hakiri_dagster.destinations.postgres.modes.candidate_rows import STAGED
from hakiri_dagster.destinations.postgres.modes.contract import Work
from hakiri_dagster.destinations.postgres.refused_rows import Refused
from hakiri_dagster.destinations.postgres.row_as_json import PLACE, row_of
from hakiri_dagster.destinations.postgres.row_errors import rows_at_stake, why_refused
from hakiri_dagster.destinations.postgres.sifting import Sieve, refers_to_itself

Merge = Callable[[sql.Composable], object]
"""Brings rows into the target: all of the relation that it is given, which has the candidate's columns."""

_ROWS_AT_ONCE = 50_000

_PLACE = sql.Identifier(PLACE)


def merge_staged(work: Work, merge: Merge) -> None:
    if work.blocks.refused is not None:
        _leave_out(work, _refused_places(work, merge, work.blocks.refused))
    with rows_at_stake(_target(work).as_string(work.connection)):
        merge(STAGED)


def insert_staged(work: Work) -> int:
    """As they are. How many there were."""
    columns, added = names(work.load.columns), 0

    def merge(staged: sql.Composable) -> None:
        nonlocal added
        statement = sql.SQL("INSERT INTO {target} ({columns}) SELECT {columns} FROM {staged} AS staged")
        added = work.connection.execute(statement.format(target=_target(work), columns=columns, staged=staged)).rowcount

    merge_staged(work, merge)
    return added


def _refused_places(work: Work, merge: Merge, refused: Refused) -> list[int]:
    """What was merged on the way is undone."""
    connection, places = work.connection, list[int]()

    def refuse(rows: _Rows, error: psycopg.Error) -> None:
        places.append(rows.first)
        row = row_of(connection, STAGED, work.candidate_columns, work.load.texts, rows.condition)
        refused.add(why_refused(error), row)

    with connection.transaction(force_rollback=True):
        connection.execute(CHECKED_AT_ONCE)
        sieve = Sieve(connection, refuse, refused.spend, refers_to_itself(connection, _target(work)))
        first, last = _first_and_last(work)
        for start in range(first, last + 1, _ROWS_AT_ONCE):
            sieve.sift(_Rows(merge, start, min(start + _ROWS_AT_ONCE, last + 1)))
        sieve.settle()
    return places


def _first_and_last(work: Work) -> tuple[int, int]:
    """By their places. Made findable by them: many small parts are looked for."""
    work.connection.execute(sql.SQL("CREATE INDEX ON {} ({})").format(STAGED, _PLACE))
    work.connection.execute(sql.SQL("ANALYZE {}").format(STAGED))
    row = work.connection.execute(sql.SQL("SELECT min({0}), max({0}) FROM {1}").format(_PLACE, STAGED)).fetchone()
    return (row[0], row[1]) if row is not None and row[0] is not None else (0, -1)


def _leave_out(work: Work, places: Sequence[int]) -> None:
    if places:
        statement = sql.SQL("DELETE FROM {} WHERE {} = ANY({})").format(STAGED, _PLACE, sql.Literal(list(places)))
        work.connection.execute(statement)


def _target(work: Work) -> sql.Identifier:
    return relation(work.load.target.schema, work.load.target.name)


@dataclass(frozen=True)
class _Rows:
    """Those at the places from one to before another; some of which may be empty."""

    merge: Merge
    first: int
    after: int

    @property
    def condition(self) -> sql.Composed:
        return sql.SQL("{place} >= {first} AND {place} < {after}").format(
            place=_PLACE, first=sql.Literal(self.first), after=sql.Literal(self.after)
        )

    def take(self) -> None:
        self.merge(sql.SQL("(SELECT * FROM {} WHERE {})").format(STAGED, self.condition))

    def halves(self) -> tuple[_Rows, _Rows] | None:
        if self.after - self.first < 2:
            return None
        middle = (self.first + self.after) // 2
        return replace(self, after=middle), replace(self, first=middle)
