"""append: new rows alongside the old ones, and in the place of this table's own earlier rows of the same slice."""

from __future__ import annotations

from collections.abc import Sequence

from psycopg import sql
from typing_extensions import override

from hakiri_dagster.destinations.contract import LOAD_ID_COLUMN, SOURCE_FILE_HASH_COLUMN, Target
from hakiri_dagster.destinations.postgres.catalog import Found, stored_name
from hakiri_dagster.destinations.postgres.connection import Connection, relation
from hakiri_dagster.destinations.postgres.conversion import kind_of
from hakiri_dagster.destinations.postgres.cursor_order import cursor_type, unplaced
from hakiri_dagster.destinations.postgres.modes.contract import InTransaction, Mode, Work
from hakiri_dagster.destinations.postgres.types import parse_type
from hakiri_dagster.errors import DestinationError
from hakiri_dagster.manifest.tables import Table
from hakiri_dagster.planning.chunks import CursorRange, NullCursor, SourceFile, WholeTable

_MICROSECONDS = 1_000_000


class Append(Mode):
    clears_target = False
    looks_for_load_ids = True
    overwrites = False

    @override
    def objections(
        self, connection: Connection, table: Table, found: Found | None, columns: Sequence[str]
    ) -> Sequence[str]:
        if table.cursor is None or found is None:
            return ()
        kept = cursor_type(found.target, table.cursor)
        if kept is None or _position(kept, 0) is not None:
            return ()
        return (
            f"the cursor {table.cursor} is {kept} in the target; slices can be replaced by a date, a time "
            "or a number only",
        )

    @override
    def primary_key(self, table: Table, of_source: tuple[str, ...]) -> tuple[str, ...]:
        """The source's own key does not hold for rows that are kept beside later ones of the same key."""
        return tuple(map(stored_name, table.primary_key))

    @override
    def stage(self, work: Work) -> InTransaction:
        _delete_replaced(work)
        target = work.load.target
        place = relation(target.schema, target.name)
        return InTransaction(work.blocks.copy_into(work.connection, place, work.load.columns))

    @override
    def parallel(self, target: Target) -> bool:
        return not target.unique_keys


def _delete_replaced(work: Work) -> None:
    """Only rows that the ledger knows as this table's own."""
    target = relation(work.load.target.schema, work.load.target.name)
    statement = sql.SQL("DELETE FROM {} WHERE {} = ANY({})")
    if work.replaced.wholly:
        wholly = sql.Literal(list(work.replaced.wholly))
        work.connection.execute(statement.format(target, sql.Identifier(LOAD_ID_COLUMN), wholly))
    if work.replaced.partly:
        partly = sql.Literal(list(work.replaced.partly))
        rows = statement.format(target, sql.Identifier(LOAD_ID_COLUMN), partly)
        work.connection.execute(sql.SQL(" AND ").join([rows, _within_bounds(work)]))


def _within_bounds(work: Work) -> sql.Composable:
    match work.load.slice.bounds:
        case CursorRange(interval):
            return _within(work, interval.lower, interval.upper)
        case NullCursor():
            return unplaced(_cursor(work), _cursor_type(work))
        case SourceFile(_, content_hash):
            if any(column.name == SOURCE_FILE_HASH_COLUMN for column in work.load.target.columns):
                file_hash = sql.Literal(bytes.fromhex(content_hash))
                return sql.SQL("{} = {}").format(sql.Identifier(SOURCE_FILE_HASH_COLUMN), file_hash)
            return sql.SQL("false")
        case WholeTable():
            return sql.SQL("true")


def _within(work: Work, lower: int | None, upper: int | None) -> sql.Composable:
    cursor = _cursor(work)
    conditions: list[sql.Composable] = [sql.SQL("NOT {}").format(unplaced(cursor, _cursor_type(work)))]
    if lower is not None:
        conditions.append(sql.SQL("{} >= {}").format(cursor, _bound(work, lower)))
    if upper is not None:
        conditions.append(sql.SQL("{} < {}").format(cursor, _bound(work, upper)))
    return sql.SQL(" AND ").join(conditions)


def _cursor(work: Work) -> sql.Identifier:
    if work.load.table.cursor is None:
        raise DestinationError("a slice of a cursor needs the table's cursor", where=work.load.table.label)
    return sql.Identifier(work.load.table.cursor)


def _cursor_type(work: Work) -> str | None:
    return cursor_type(work.load.target, work.load.table.cursor or "")


def _bound(work: Work, position: int) -> sql.Composable:
    kept = _cursor_type(work)
    bound = None if kept is None else _position(kept, position)
    if bound is None:
        raise DestinationError(
            f"the cursor {work.load.table.cursor} is {kept or 'missing'} in the target",
            where=work.load.table.label,
            hint="slices can be replaced by a date, a time or a number only",
        )
    return bound


def _position(column_type: str, position: int) -> sql.Composable | None:
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
