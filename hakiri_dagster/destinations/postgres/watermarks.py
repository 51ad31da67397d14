"""The high-water mark of a table: how far its loads have come. Written in the transaction that publishes the rows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import LiteralString

from psycopg import sql

from hakiri_dagster.destinations.contract import Load
from hakiri_dagster.destinations.postgres.catalog import stored_name, target_of
from hakiri_dagster.destinations.postgres.connection import Connection
from hakiri_dagster.destinations.postgres.cursor_bounds import position_in
from hakiri_dagster.destinations.postgres.cursor_order import cursor_type
from hakiri_dagster.errors import DestinationUnavailable
from hakiri_dagster.manifest.tables import Table
from hakiri_dagster.planning.chunks import CursorRange, Interval
from hakiri_dagster.planning.lag import width

_FLOOR_OF_TIMES = "0001-01-01"
_FLOOR_OF_NUMBERS = "0"

_READ: LiteralString = """
SELECT watermark_column, value, position, inherited, inherited_value, inherited_position, inherited_top
FROM hakiri.pipeline_watermarks
WHERE tenant = %(tenant)s AND pipeline_id = %(pipeline)s AND target_schema = %(schema)s AND target_table = %(table)s
"""

_COLUMNS = """
SELECT DISTINCT watermark_column FROM hakiri.pipeline_watermarks
WHERE pipeline_id = %(pipeline)s AND target_schema = %(schema)s AND target_table = %(table)s
"""

_WRITE = """
INSERT INTO hakiri.pipeline_watermarks
       (tenant, pipeline_id, target_schema, target_table, watermark_column, value, type, position,
        inherited, inherited_value, inherited_position, inherited_top)
VALUES (%(tenant)s, %(pipeline)s, %(schema)s, %(table)s, %(column)s, %(value)s, %(type)s, %(position)s,
        %(inherited)s, %(inherited_value)s, %(inherited_position)s, %(inherited_top)s)
ON CONFLICT (tenant, pipeline_id, target_schema, target_table) DO UPDATE
SET value = excluded.value, type = excluded.type, position = excluded.position, updated_at = clock_timestamp()
"""

_HIGHEST = """
SELECT CASE WHEN cursor_max IS NOT NULL THEN least(cursor_max, cursor_committed) END
FROM hakiri.ledger WHERE load_id = %s
"""

_HAS_LOADS = """
SELECT EXISTS (SELECT FROM hakiri.ledger
               WHERE pipeline_id = %s AND table_name = %s AND target = %s AND superseded_by IS NULL)
"""


@dataclass(frozen=True, slots=True)
class Inherited:
    """What the target held before our first load. `value` is the highest watermark not dated after that moment, which
    a slip of 2099 must not hide; `top` is the highest position of all. None: no row of it has a watermark."""

    value: str | None
    position: int | None
    top: int | None


@dataclass(frozen=True, slots=True)
class KnownMark:
    """`position` is None while nothing with a watermark is published. Not yet stored is one that the target's own rows
    tell, before our first load."""

    column: str
    value: str | None
    position: int | None
    inherited: Inherited | None
    is_stored: bool = True


def stored(connection: Connection, table: Table, tenant: str, *, lock: bool = False) -> KnownMark | None:
    """None in a destination that knows of no marks yet."""
    if connection.execute("SELECT to_regclass('hakiri.pipeline_watermarks')").fetchone() == (None,):
        return None
    row = connection.execute(_READ + (" FOR UPDATE" if lock else ""), _key(table, tenant)).fetchone()
    if row is None:
        return None
    column, value, position, has_inherited, *inherited = row
    return KnownMark(column, value, position, Inherited(*inherited) if has_inherited else None)


def columns_of(connection: Connection, table: Table) -> tuple[str, ...]:
    """The columns of which any tenant keeps a mark of the table."""
    if connection.execute("SELECT to_regclass('hakiri.pipeline_watermarks')").fetchone() == (None,):
        return ()
    return tuple(column for (column,) in connection.execute(_COLUMNS, _key(table, "")))


def has_loads(connection: Connection, table: Table) -> bool:
    if connection.execute("SELECT to_regclass('hakiri.ledger')").fetchone() == (None,):
        return False
    of = (table.pipeline_id, table.name, target_of(table))
    return connection.execute(_HAS_LOADS, of).fetchone() == (True,)


def advance(connection: Connection, load: Load, tenant: str, seen: KnownMark | None) -> None:
    """`seen` is the mark for which the rows were staged. To be called when the load is in the ledger."""
    now = stored(connection, load.table, tenant, lock=True)
    before = seen if seen is not None and seen.is_stored else None
    if (now and now.position) != (before and before.position):
        raise DestinationUnavailable(
            f"the watermark is at {now.value if now else 'its start'} meanwhile, so this attempt publishes nothing",
            where=load.table.label,
            hint="the load is tried again",
        )
    inherited = seen.inherited if seen else None
    highest = _highest(connection, load)
    position = moved(load, seen.position if seen else None, highest, inherited.position if inherited else None)
    connection.execute(
        _WRITE,
        {
            **_key(load.table, tenant),
            "column": stored_name(load.table.cursor or ""),
            "value": _as_text(connection, load, position, inherited),
            "type": cursor_type(load.target, load.table.cursor or ""),
            "position": position,
            "inherited": inherited is not None,
            "inherited_value": inherited.value if inherited else None,
            "inherited_position": inherited.position if inherited else None,
            "inherited_top": inherited.top if inherited else None,
        },
    )


def _highest(connection: Connection, load: Load) -> int | None:
    """Of the load's rows, but not beyond where the next slice begins: rows of the future must not hide those that come
    until then. Nor do the rows outside the plan move the mark, which all lie in the future."""
    bounds = load.slice.bounds
    if not isinstance(bounds, CursorRange) or bounds.interval.upper is None:
        return None
    row = connection.execute(_HIGHEST, (load.fence.load_id,)).fetchone()
    return None if row is None else row[0]


def moved(load: Load, mark: int | None, highest: int | None, inherited: int | None) -> int | None:
    """A load that replaces the rows at the mark says where it is now; any other only moves it on. So a chunk that is
    loaded again lowers the mark where its highest row is gone, and never below what is published before the chunk. The
    first chunk of several that are rewound, with the mark in the last, takes it back to its own rows."""
    if mark is None:
        return highest
    bounds = load.slice.bounds
    if load.takes_mark_back and isinstance(bounds, CursorRange):
        lowered = _emptied(load, mark, bounds.interval.lower) if highest is None else highest
        now = lowered if lowered is None or highest is not None else min(mark, lowered)
        return max((position for position in (now, inherited) if position is not None), default=None)
    if isinstance(bounds, CursorRange) and bounds.interval.upper is not None and _holds(bounds.interval, mark):
        now = _emptied(load, mark, bounds.interval.lower) if highest is None else highest
        return max((position for position in (now, inherited) if position is not None), default=None)
    return mark if highest is None else max(mark, highest)


def _emptied(load: Load, mark: int, lower: int | None) -> int | None:
    """What comes into the emptied slice from now on is owed, and nothing before it. The lag reaches back from the mark,
    which would otherwise fall by as much with each load of a source that holds no row there any more."""
    if lower is None:
        return None
    lag = load.table.load.lag
    return lower if lag is None else min(mark, lower + width(lag))


def forget(connection: Connection, table: Table) -> None:
    """The target was emptied, or made anew: no mark of anybody says any more what it holds."""
    connection.execute(
        "DELETE FROM hakiri.pipeline_watermarks WHERE target_schema = %s AND target_table = %s",
        (stored_name(table.target_schema), stored_name(table.target_name)),
    )


def _as_text(connection: Connection, load: Load, position: int | None, inherited: Inherited | None) -> str:
    kept = cursor_type(load.target, load.table.cursor or "") or ""
    if position is None:
        return _FLOOR_OF_TIMES if kept.startswith(("date", "time")) else _FLOOR_OF_NUMBERS
    if inherited is not None and position == inherited.position and inherited.value is not None:
        return inherited.value
    value = position_in(load, position)
    shown = sql.SQL("({})::date").format(value) if kept == "date" else value
    row = connection.execute(sql.SQL("SELECT ({})::text").format(shown)).fetchone()
    assert row is not None  # SELECT of one value
    return str(row[0])


def _holds(interval: Interval, position: int) -> bool:
    above = interval.lower is None or position >= interval.lower
    return above and (interval.upper is None or position < interval.upper)


def _key(table: Table, tenant: str) -> dict[str, object]:
    return {
        "tenant": tenant,
        "pipeline": table.pipeline_id,
        "schema": stored_name(table.target_schema),
        "table": stored_name(table.target_name),
    }
