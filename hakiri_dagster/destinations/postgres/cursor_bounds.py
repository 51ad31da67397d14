"""The bounds of a slice as a condition on the target's rows, and a cursor's positions in its column's own terms."""

from __future__ import annotations

from collections.abc import Sequence

from psycopg import sql

from hakiri_dagster.destinations.contract import SOURCE_FILE_HASH_COLUMN, Load
from hakiri_dagster.destinations.postgres.catalog import stored_name
from hakiri_dagster.destinations.postgres.conversion import kind_of
from hakiri_dagster.destinations.postgres.cursor_order import cursor_type, unplaced
from hakiri_dagster.destinations.postgres.types import parse_type
from hakiri_dagster.errors import DestinationError
from hakiri_dagster.planning.chunks import CursorRange, Interval, NullCursor, Part, Segment, SourceFile, WholeTable

_MICROSECONDS = 1_000_000


def within_bounds(load: Load) -> sql.Composable:
    match load.slice.bounds:
        case CursorRange(interval, part):
            return _of_part(part, _within(load, interval.lower, interval.upper))
        case NullCursor(part):
            return _of_part(part, unplaced(cursor_column(load), _cursor_type(load)))
        case SourceFile(_, content_hash):
            if any(column.name == SOURCE_FILE_HASH_COLUMN for column in load.target.columns):
                file_hash = sql.Literal(bytes.fromhex(content_hash))
                return sql.SQL("{} = {}").format(sql.Identifier(SOURCE_FILE_HASH_COLUMN), file_hash)
            return sql.SQL("false")
        case WholeTable():
            return sql.SQL("true")
        case Segment():
            return sql.SQL("true")  # of loads that the ledger has lost: what comes after the segment is walked again


def within_intervals(column: sql.Composable, column_type: str, intervals: Sequence[Interval]) -> sql.Composable:
    """The values of a column that lie in one of the intervals; none if the column knows no positions."""
    parts: list[sql.Composable] = []
    for interval in intervals:
        bounds = [
            sql.SQL("{} {} {}").format(column, sql.SQL(operator), bound)
            for operator, position in ((">=", interval.lower), ("<", interval.upper))
            if position is not None and (bound := literal_of(column_type, position)) is not None
        ]
        parts.append(sql.SQL("({})").format(sql.SQL(" AND ").join(bounds)) if bounds else sql.SQL("false"))
    return sql.SQL("({})").format(sql.SQL(" OR ").join(parts)) if parts else sql.SQL("false")


def _within(load: Load, lower: int | None, upper: int | None) -> sql.Composable:
    cursor = cursor_column(load)
    conditions: list[sql.Composable] = [sql.SQL("NOT {}").format(unplaced(cursor, _cursor_type(load)))]
    if lower is not None:
        conditions.append(sql.SQL("{} >= {}").format(cursor, position_in(load, lower)))
    if upper is not None:
        conditions.append(sql.SQL("{} < {}").format(cursor, position_in(load, upper)))
    return sql.SQL(" AND ").join(conditions)


def _of_part(part: Part | None, rows: sql.Composable) -> sql.Composable:
    """A load that the ledger has lost may hold rows of other parts."""
    if part is None:
        return rows
    column, value = sql.Identifier(stored_name(part.column)), sql.Literal(part.value)
    return sql.SQL("({} AND {}::text = {})").format(rows, column, value)


def cursor_column(load: Load) -> sql.Identifier:
    if load.table.cursor is None:
        raise DestinationError("a slice of a cursor needs the table's cursor", where=load.table.label)
    return sql.Identifier(load.table.cursor)


def _cursor_type(load: Load) -> str | None:
    return cursor_type(load.target, load.table.cursor or "")


def position_in(load: Load, position: int) -> sql.Composable:
    kept = _cursor_type(load)
    bound = None if kept is None else literal_of(kept, position)
    if bound is None:
        raise DestinationError(
            f"the cursor {load.table.cursor} is {kept or 'missing'} in the target",
            where=load.table.label,
            hint="slices can be replaced by a date, a time or a number only",
        )
    return bound


def literal_of(column_type: str, position: int) -> sql.Composable | None:
    """A cursor position (`planning/chunks.py`) in the column's own terms, exact to the microsecond."""
    kept = parse_type(column_type)
    match kind_of(kept) if kept is not None else "other":
        case "integer" | "numeric" | "float":
            return sql.SQL("{}::numeric").format(sql.Literal(str(position)))
        case "timestamptz":
            return _moment(sql.SQL("'epoch'::timestamptz"), position)
        case "timestamp" | "date":
            return _moment(sql.SQL("'epoch'::timestamp"), position)
        case _:
            return None


def _moment(epoch: sql.SQL, position: int) -> sql.Composed:
    # in two factors, because one interval multiplication is in double precision
    seconds, rest = divmod(position, _MICROSECONDS)
    return sql.SQL("({} + interval '1 second' * {} + interval '1 microsecond' * {})").format(
        epoch, sql.Literal(seconds), sql.Literal(rest)
    )
