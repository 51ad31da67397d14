"""The cursor column in SQL: its extent as integer positions, and positions as conditions on it."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import assert_never

from psycopg import Connection, sql
from psycopg.rows import TupleRow

from hakiri_dagster.connectors.postgres.catalog import Relation, did_you_mean
from hakiri_dagster.errors import SourceError
from hakiri_dagster.planning.chunks import (
    FIRST_POSITION,
    LAST_POSITION,
    Bounds,
    CursorKind,
    CursorRange,
    Extent,
    Interval,
    NullCursor,
    Segment,
    SourceFile,
    WholeTable,
)

_MICROSECONDS_A_SECOND = 1_000_000
_MICROSECONDS_A_DAY = 86_400 * _MICROSECONDS_A_SECOND

_CLOCKS_APART = _MICROSECONDS_A_DAY
"""A source whose newest row is older than this by our clock is not asked for its own."""

_FARTHEST = 10**100
"""Of a number that may have a position. NaN and infinity lie beyond, told apart so that an index answers, and in
versions of PostgreSQL too that know no infinite number."""

_INDEXED_EXTENT = sql.SQL(
    "SELECT {lower}, {upper}, nulls.number, nulls.told, (SELECT count(*) FROM {table} WHERE {cursor} = edge.upper)"
    " FROM (SELECT count(*) AS number, {told} AS told FROM {table} AS of_row WHERE {unplaced}) AS nulls,"
    " (SELECT (SELECT min({cursor}) FROM {table} WHERE {placed}) AS lower,"
    " (SELECT max({cursor}) FROM {table} WHERE {placed}) AS upper) AS edge"
)
_SCANNED_EXTENT = sql.SQL(
    "WITH edge AS MATERIALIZED"
    " (SELECT min({cursor}) FILTER (WHERE {placed}) AS lower, max({cursor}) FILTER (WHERE {placed}) AS upper,"
    " count(*) FILTER (WHERE {unplaced}) AS nulls, {told} FILTER (WHERE {unplaced}) AS told FROM {table} AS of_row)"
    " SELECT {lower}, {upper}, nulls, told, (SELECT count(*) FROM {table} WHERE {cursor} = (SELECT upper FROM edge))"
    " FROM edge"
)
_TOLD_OF_ROWS = sql.SQL("sum(pg_catalog.hashtextextended((of_row.*)::text, 0::bigint))")
"""What rows hold, in whatever order. Those without a place in the order have nothing else by which a new one shows."""

_PAST = sql.SQL(
    "SELECT {upper}, (SELECT count(*) FROM {table} WHERE {cursor} = edge.upper)"
    " FROM (SELECT max({cursor}) AS upper FROM {table} WHERE {past}) AS edge"
)
_FINGERPRINT = sql.SQL("SELECT count(*), coalesce(sum({hash}), 0) FROM {table} WHERE {rows}")
_CLOCK = "SELECT extract(epoch FROM clock_timestamp()) * 1000000"
_TIME_POSITION = sql.SQL("extract(epoch FROM {}) * 1000000")
_EPOCH = {
    "timestamp": sql.SQL("timestamp '1970-01-01'"),
    "timestamptz": sql.SQL("timestamptz '1970-01-01 00:00:00+00'"),
}
_NUMERIC_POSITION = sql.SQL("floor({})")
_INTEGER = sql.SQL("{}::int8")


@dataclass(frozen=True, slots=True)
class Cursor:
    """`type` is the column's base type in PostgreSQL (`timestamptz`). `as_text`: a number that no decimal of Spark's
    holds travels as text, NaN and infinity too. Of other types, Spark could not hold such values either."""

    name: str
    type: str
    kind: CursorKind
    as_text: bool = False

    @property
    def identifier(self) -> sql.Identifier:
        return sql.Identifier(self.name)

    @property
    def _compared(self) -> sql.Composable:
        """An oid is compared with no number that is not an oid too."""
        return _INTEGER.format(self.identifier) if self.type == "oid" else self.identifier

    @property
    def placed(self) -> sql.Composable:
        """The rows whose cursor has a position, as far as the type can tell."""
        if not self.as_text:
            return sql.SQL("{} IS NOT NULL").format(self.identifier)
        return sql.SQL("({0} BETWEEN {1} AND {2})").format(self.identifier, -_FARTHEST, _FARTHEST)

    @property
    def unplaced(self) -> sql.Composable:
        if not self.as_text:
            return sql.SQL("{} IS NULL").format(self.identifier)
        beyond = sql.SQL("({0} IS NULL OR {0} < {1} OR {0} > {2})")
        return beyond.format(self.identifier, -_FARTHEST, _FARTHEST)

    def literal(self, position: int) -> sql.Composable:
        """The first value of the column's type at or after the position."""
        match self.kind:
            case "numeric":
                return sql.Literal(position)
            case "date":
                return sql.SQL("(date '1970-01-01' + {})").format(sql.Literal(-(-position // _MICROSECONDS_A_DAY)))
            case "timestamp":
                days, microseconds = divmod(position, _MICROSECONDS_A_DAY)
                seconds = Decimal(microseconds) / _MICROSECONDS_A_SECOND
                since = sql.Literal(f"{days} days {seconds:f} seconds")
                return sql.SQL("({} + interval {})").format(_EPOCH[self.type], since)
            case never:
                assert_never(never)

    def within(self, interval: Interval) -> sql.Composable:
        sides: list[sql.Composable] = []
        if interval.lower is not None:
            sides.append(sql.SQL("{} >= {}").format(self._compared, self.literal(interval.lower)))
        if interval.upper is not None:
            sides.append(sql.SQL("{} < {}").format(self._compared, self.literal(interval.upper)))
        if len(sides) < 2:
            sides.append(self.placed)
        return sql.SQL("({})").format(sql.SQL(" AND ").join(sides))

    def condition(self, bounds: Sequence[Bounds]) -> sql.Composable | None:
        """The rows of all the bounds together; None for every row of the table."""
        if any(isinstance(bound, WholeTable) for bound in bounds):
            return None
        parts = [self.within(interval) for interval in merged(list(_intervals(bounds)))]
        if any(isinstance(bound, NullCursor) for bound in bounds):
            parts.append(self.unplaced)
        return sql.SQL("({})").format(sql.SQL(" OR ").join(parts))

    @property
    def hashed(self) -> sql.Composable:
        """A hash of the column's value, by functions that every version of PostgreSQL since 11 has."""
        match self.type:
            case "timestamp":
                return sql.SQL("pg_catalog.timestamp_hash_extended({}, 0)").format(self.identifier)
            case "timestamptz":
                return sql.SQL("pg_catalog.timestamp_hash_extended({} AT TIME ZONE 'UTC', 0)").format(self.identifier)
            case "date":
                days = sql.SQL("pg_catalog.hashint4extended({} - date '1970-01-01', 0)")
                return days.format(self.identifier)
            case "numeric":
                return sql.SQL("pg_catalog.hash_numeric_extended({}, 0)").format(self.identifier)
            case _:
                return sql.SQL("pg_catalog.hashint8extended({}, 0)").format(_INTEGER.format(self.identifier))

    def position(self, value: sql.Composable) -> sql.Composable:
        if self.kind != "numeric":
            return _TIME_POSITION.format(value)
        whole = _NUMERIC_POSITION if self.type == "numeric" else _INTEGER
        return whole.format(value) + sql.SQL("::numeric")


def cursor_of(relation: Relation, name: str, text_columns: frozenset[str], where: str) -> Cursor:
    column = relation.column(name)
    if column is None:
        near = did_you_mean(name, [c.name for c in relation.columns])
        raise SourceError(
            f"the cursor column {name!r} does not exist",
            where=where,
            hint=near or "check `incremental`, or `load.watermark_column`, in the manifest",
        )
    if column.cursor_kind is None or name in text_columns:
        kind = "text" if name in text_columns else column.native
        raise SourceError(
            f"the column {name!r} of type {kind} cannot be a cursor",
            where=where,
            hint="a cursor is a timestamp, a date, an integer or a numeric column that is not in `text_columns`",
        )
    as_text = column.as_column(as_text=False).spark_type == "string"
    return Cursor(name, column.type, column.cursor_kind, as_text)


def extent(
    connection: Connection[TupleRow], table: sql.Identifier, cursor: Cursor, relation: Relation, where: str
) -> Extent:
    """Which rows lie in the future is for the source's own clock to say."""
    statement = _INDEXED_EXTENT if cursor.name in relation.indexed else _SCANNED_EXTENT
    names = {
        "table": table,
        "cursor": cursor.identifier,
        "placed": cursor.placed,
        "unplaced": cursor.unplaced,
        "lower": cursor.position(sql.SQL("edge.lower")),
        "upper": cursor.position(sql.SQL("edge.upper")),
        "told": _TOLD_OF_ROWS,
    }
    first, last, nulls, told, at_last = _one(connection, statement.format(**names))
    lower, upper = _whole(first, cursor, where), _whole(last, cursor, where)
    past_upper = past_at_upper = beyond_now = None
    if cursor.kind != "numeric" and upper is not None and upper > time.time_ns() // 1000 - _CLOCKS_APART:
        (now,) = _one(connection, sql.Composed([sql.SQL(_CLOCK)]))
        now = int(now)
        if upper > now:
            past, past_at_upper = _one(connection, _PAST.format(**names, past=cursor.within(Interval(None, now + 1))))
            past_upper = _whole(past, cursor, where)
            beyond_now = fingerprint(connection, table, cursor, now + 1)
    nulls_fingerprint = None if told is None else str(told)
    return Extent(
        lower,
        upper,
        nulls,
        rows_at_upper=at_last,
        rows_estimate=relation.rows_estimate,
        upper_by_now=past_upper,
        rows_at_upper_by_now=past_at_upper,
        nulls_fingerprint=nulls_fingerprint,
        beyond_now=beyond_now,
    )


def fingerprint(connection: Connection[TupleRow], table: sql.Identifier, cursor: Cursor, lower: int | None) -> str:
    """Sum up the cursors at or after a position: it changes when a row comes there, goes, or moves."""
    rows = cursor.within(Interval(lower, None))
    count, summed = _one(connection, _FINGERPRINT.format(hash=cursor.hashed, table=table, rows=rows))
    return f"{count}/{summed}"


def edges(
    connection: Connection[TupleRow], table: sql.Identifier, cursor: Cursor, condition: sql.Composable
) -> tuple[int, int] | None:
    """The lowest and highest position among the rows; to be asked only where an index answers."""
    lowest, highest = (
        cursor.position(sql.SQL("{}({})").format(sql.SQL(edge), cursor.identifier)) for edge in ("min", "max")
    )
    row = _one(connection, sql.SQL("SELECT {}, {} FROM {} WHERE {}").format(lowest, highest, table, condition))
    if any(value is None or not Decimal(value).is_finite() for value in row):
        return None
    return int(row[0]), int(row[1])


def merged(intervals: list[Interval]) -> list[Interval]:
    """Neighbours and overlaps as one, so that a run of chunks is one condition."""
    result: list[Interval] = []
    for one in sorted(intervals, key=lambda i: (i.lower is not None, i.lower or 0)):
        last = result[-1] if result else None
        if last and (last.upper is None or (one.lower is None or one.lower <= last.upper)):
            upper = None if last.upper is None or one.upper is None else max(last.upper, one.upper)
            result[-1] = Interval(last.lower, upper)
        else:
            result.append(one)
    return result


def _intervals(bounds: Sequence[Bounds]) -> Iterator[Interval]:
    for bound in bounds:
        match bound:
            case CursorRange(interval):
                yield interval
            case NullCursor() | WholeTable():
                pass
            case SourceFile() | Segment():
                raise ValueError(f"{bound} is no slice of a table in a database")
            case _:
                assert_never(bound)


def _one(connection: Connection[TupleRow], statement: sql.Composed) -> TupleRow:
    row = connection.execute(statement).fetchone()
    assert row is not None, "an aggregate always answers one row"
    return row


def _whole(value: Decimal | None, cursor: Cursor, where: str) -> int | None:
    if value is None:
        return None
    if not value.is_finite() or not FIRST_POSITION <= value <= LAST_POSITION:
        raise SourceError(
            f"the cursor {cursor.name!r} holds {value} in some rows, which is no position",
            where=where,
            hint="set it to NULL in those rows, or choose another cursor",
        )
    return int(value)
