"""The loads that a new one may replace rows of, as the ledger's indexes find them. `replacement` decides; this only
spares it the others, of which a table of files may have a hundred thousand."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import LiteralString, assert_never

from hakiri_dagster.destinations.contract import Load
from hakiri_dagster.destinations.postgres.catalog import target_of
from hakiri_dagster.destinations.postgres.connection import Connection
from hakiri_dagster.destinations.postgres.modes.registry import MODES, mode_of
from hakiri_dagster.destinations.postgres.replacement import Earlier, Replacement, bounds_from_json, replacement
from hakiri_dagster.manifest.tables import Table
from hakiri_dagster.planning.chunks import Bounds, CursorRange, NullCursor, Segment, SourceFile, WholeTable
from hakiri_dagster.planning.replays import LiveLoad

_EARLIER: LiteralString = """
SELECT load_id, chunk_key, bounds, cursor_max, is_replay
FROM hakiri.ledger
WHERE pipeline_id = %(pipeline)s AND table_name = %(table)s AND target = %(target)s AND superseded_by IS NULL
  AND load_id <> %(load_id)s
"""

_HAS_LEAVING: LiteralString = """
SELECT EXISTS (SELECT FROM hakiri.ledger
               WHERE pipeline_id = %(pipeline)s AND table_name = %(table)s AND target = %(target)s
                 AND mode = ANY(%(leaving)s))
"""

# Superseded by a load of another mode, before the table's mode was changed, that left their rows as they were.
_LEFT_BEHIND: LiteralString = """
SELECT load_id, chunk_key, bounds, cursor_max, is_replay
FROM hakiri.ledger AS kept
WHERE pipeline_id = %(pipeline)s AND table_name = %(table)s AND target = %(target)s AND superseded_by > 0
  AND load_id <> %(load_id)s
  AND EXISTS (SELECT FROM hakiri.ledger AS later
              WHERE later.load_id = kept.superseded_by AND later.mode = ANY(%(leaving)s))
"""

_OF_FILE: LiteralString = """
  AND (bounds ->> 'kind' = 'file' AND bounds ->> 'hash' = %(hash)s
       OR chunk_key = ANY(%(supersedes)s)
       OR bounds ->> 'kind' IN ('range', 'null', 'full', 'segment'))
"""

# The slices of an open chunk all end at the same bound: what their highest cursor does not reach is left out.
_OF_RANGE: LiteralString = """
  AND (bounds ->> 'kind' = 'range'
       AND numrange((bounds ->> 'lower')::numeric, (bounds ->> 'upper')::numeric)
           && numrange(%(lower)s::numeric, %(upper)s::numeric)
       OR bounds ->> 'kind' IN ('file', 'full', 'segment'))
  AND (cursor_max IS NULL OR %(lower)s::numeric IS NULL OR cursor_max >= %(lower)s::numeric
       OR (bounds ->> 'lower')::numeric >= %(lower)s::numeric)
"""

_OF_NULLS: LiteralString = """
  AND bounds ->> 'kind' IN ('null', 'file', 'full', 'segment')
"""

# The first one begins a walk anew, whatever the table's chunks were before.
_OF_SEGMENT: LiteralString = """
  AND (bounds ->> 'kind' = 'segment' AND (bounds ->> 'number')::integer = %(number)s
       OR chunk_key = ANY(%(supersedes)s)
       OR %(number)s = 1 AND bounds ->> 'kind' <> 'segment')
"""

# Of a table in parts: what is of no part was loaded before it had them, or as a whole.
_OF_PART: LiteralString = """
  AND coalesce(bounds -> 'part' ->> 'value' = %(part)s, true)
"""


def replaced_by(connection: Connection, load: Load) -> Replacement:
    bounds, table = load.slice.bounds, load.table
    if load.replay is not None:
        return Replacement((), (), ())
    asked = {
        **_named(table),
        "load_id": load.fence.load_id,
        "supersedes": list(load.supersedes),
        "leaving": [name for name, mode in MODES.items() if mode.leaves_load_ids],
        **_values(bounds),
    }
    found = connection.execute(_EARLIER + _possible(bounds), asked).fetchall()
    if mode_of(table).looks_for_load_ids and connection.execute(_HAS_LEAVING, asked).fetchone() == (True,):
        found += connection.execute(_LEFT_BEHIND + _possible(bounds), asked).fetchall()
    earlier = [Earlier(load_id, key, bounds_from_json(its), highest) for load_id, key, its, highest, _ in found]
    known = replacement(bounds, earlier, load.supersedes)
    return replace(known, partly=tuple(sorted({*known.partly, *load.unknown})))


def beside(connection: Connection, table: Table, bounds: Bounds, load_id: int = 0) -> Sequence[LiveLoad]:
    """The loads, but that one, with rows within the bounds."""
    asked = {**_named(table), "load_id": load_id, "supersedes": [], **_values(bounds)}
    found = connection.execute(_EARLIER + _possible(bounds), asked).fetchall()
    earlier = [Earlier(load_id, key, bounds_from_json(its), highest) for load_id, key, its, highest, _ in found]
    touched = replacement(bounds, earlier)
    ids = {*touched.load_ids, *touched.superseded}
    return [LiveLoad(i, key, bounds_from_json(its), replay) for i, key, its, _, replay in found if i in ids]


def is_overtaken(connection: Connection, load: Load, replaced: Replacement) -> bool:
    """A slice that overlaps was published since the ledger was looked at. To be asked when no other can be."""
    if load.replay is not None:
        now = beside(connection, load.table, load.slice.bounds, load.fence.load_id)
        return {one.load_id for one in now} != load.replay.beside
    return not set(replaced_by(connection, load).load_ids) <= set(replaced.load_ids)


def _named(table: Table) -> dict[str, object]:
    return {"pipeline": table.pipeline_id, "table": table.name, "target": target_of(table)}


def _possible(bounds: Bounds) -> LiteralString:
    match bounds:
        case SourceFile():
            return _OF_FILE
        case CursorRange(_, part):
            return _OF_RANGE if part is None else _OF_RANGE + _OF_PART
        case NullCursor(part):
            return _OF_NULLS if part is None else _OF_NULLS + _OF_PART
        case Segment():
            return _OF_SEGMENT
        case WholeTable():
            return ""
        case _:
            assert_never(bounds)


def _values(bounds: Bounds) -> dict[str, object]:
    match bounds:
        case SourceFile(_, content_hash):
            return {"hash": content_hash}
        case CursorRange(interval, part):
            return {"lower": interval.lower, "upper": interval.upper, "part": None if part is None else part.value}
        case NullCursor(part):
            return {"part": None if part is None else part.value}
        case Segment(number):
            return {"number": number}
        case WholeTable():
            return {}
        case _:
            assert_never(bounds)
