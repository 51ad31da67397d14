"""Sequences of columns go on after all that they gave, and after all that the new rows hold."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import LiteralString

from psycopg import sql

from hakiri_dagster.destinations.postgres.connection import Connection
from hakiri_dagster.destinations.postgres.swap.portrait import about, lines
from hakiri_dagster.destinations.postgres.swap.relations import Pair, Rename, name_in, place_of

# A sequence holds whole numbers only; what it could not give within its bounds it need not go past.
_OF_COLUMNS: LiteralString = """
SELECT quote_ident(a.attname), d.objid::bigint, d.objid::regclass::text, s.seqtypid::regtype::text,
       s.seqincrement < 0, s.seqmin, s.seqmax, d.deptype = 'i'
FROM pg_depend d JOIN pg_sequence s ON s.seqrelid = d.objid
JOIN pg_attribute a ON a.attrelid = d.refobjid AND a.attnum = d.refobjsubid
WHERE d.classid = 'pg_class'::regclass AND d.refclassid = 'pg_class'::regclass AND d.refobjid = {oid}
  AND d.deptype IN ('a', 'i') ORDER BY a.attnum, d.objid
"""

# Of the new table: a load may give a column another type.
_OF_NUMBERS: LiteralString = """
SELECT quote_ident(attname) FROM pg_attribute WHERE attrelid = {oid} AND attnum > 0 AND NOT attisdropped
  AND atttypid IN ('int2'::regtype, 'int4'::regtype, 'int8'::regtype, 'numeric'::regtype)
"""

_FURTHEST_ROW: LiteralString = """
SELECT trunc({furthest}({column})::numeric)::bigint FROM {place} WHERE {column} BETWEEN {least} AND {most}
"""

# Whoever made it start elsewhere, and has not asked it since, means that; a new one that gave nothing says nothing.
_GO_ON: LiteralString = """
SELECT setval({new}::oid::regclass, value, is_called)
FROM (SELECT last_value, is_called FROM {old_place}
      UNION ALL SELECT last_value, is_called FROM {new_place} WHERE is_called
      UNION ALL SELECT {furthest_row}::bigint, true) AS known (value, is_called)
WHERE value IS NOT NULL ORDER BY {sign} * value::numeric DESC, is_called DESC LIMIT 1
"""


@dataclass(frozen=True, slots=True)
class ColumnSequence:
    column: str
    oid: int
    place: str
    type: str
    descends: bool
    least: int
    most: int
    identity: bool


@dataclass(frozen=True, slots=True)
class Succession:
    """Of a sequence to another, or to itself: one that a column of the old table owns is the new one's afterwards."""

    old: int
    new: int
    descends: bool
    furthest_row: int | None


def sequences_of(connection: Connection, oid: int) -> list[ColumnSequence]:
    return [ColumnSequence(*row) for row in connection.execute(about(_OF_COLUMNS, oid)).fetchall()]


def successions(connection: Connection, pair: Pair) -> Iterator[Succession]:
    """Reads the rows, so it is asked before anybody waits."""
    _, place = place_of(connection, pair.new)
    new = {sequence.column: sequence for sequence in sequences_of(connection, pair.new)}
    numbers = lines(connection, _OF_NUMBERS, pair.new)
    for old in sequences_of(connection, pair.old):
        successor = new[old.column] if old.identity else old
        furthest = _furthest_row(connection, old, place) if old.column in numbers else None
        yield Succession(old.oid, successor.oid, old.descends, furthest)


def sequence_names(connection: Connection, pair: Pair) -> Iterator[Rename]:
    schema, _ = place_of(connection, pair.new)
    final = {sequence.column: sequence.place for sequence in sequences_of(connection, pair.old) if sequence.identity}
    for sequence in sequences_of(connection, pair.new):
        yield Rename("SEQUENCE", schema, name_in(sequence.place, schema), name_in(final[sequence.column], schema))


def go_on(connection: Connection, every: Sequence[Succession]) -> None:
    """Of no effect that an end of the transaction would undo, nor need: they only go further."""
    for one in every:
        connection.execute(
            sql.SQL(_GO_ON).format(
                new=sql.Literal(one.new),
                old_place=sql.SQL(place_of(connection, one.old)[1]),
                new_place=sql.SQL(place_of(connection, one.new)[1]),
                furthest_row=sql.Literal(one.furthest_row),
                sign=sql.SQL("-1" if one.descends else "1"),
            )
        )


def _furthest_row(connection: Connection, sequence: ColumnSequence, place: str) -> int | None:
    row = connection.execute(
        sql.SQL(_FURTHEST_ROW).format(
            furthest=sql.SQL("min" if sequence.descends else "max"),
            column=sql.SQL(sequence.column),
            place=sql.SQL(place),
            least=sql.Literal(sequence.least),
            most=sql.Literal(sequence.most),
        )
    ).fetchone()
    assert row is not None
    furthest: int | None = row[0]
    return furthest
