"""Takes new events into the history of their keys: versions of rows, and deletes, each with its time.

Most events come after all that is known of their key, and are simply its newest version. The history of the other keys
is worked out anew (`rework`).
"""

from __future__ import annotations

from typing import LiteralString

from psycopg import sql

from hakiri_dagster.destinations.postgres import marks
from hakiri_dagster.destinations.postgres.modes.rework import rework
from hakiri_dagster.destinations.postgres.modes.versions import Versions

_MAKE_KEYS = "CREATE TEMPORARY TABLE hakiri_keys ON COMMIT DROP AS SELECT {key}, {at} FROM {fresh} WITH NO DATA"

# More than one event, a delete, an event that comes late, or one that says nothing new.
_FIND_OTHERS: LiteralString = """
INSERT INTO {keys} ({key}, {at})
SELECT {key}, min({at}) FROM {fresh} GROUP BY {key} HAVING count(*) > 1 OR bool_or({deleted})
UNION ALL
SELECT {fresh_key}, fresh.{at} FROM {fresh} AS fresh JOIN {target} AS stored ON {stored_fresh}
WHERE CASE WHEN stored.{valid_to} IS NULL THEN stored.{valid_from} >= fresh.{at} OR NOT {differs}
           ELSE stored.{valid_to} >= fresh.{at} END
"""

_FIND_MARKED: LiteralString = """
UNION ALL
SELECT {fresh_key}, fresh.{at} FROM {fresh} AS fresh JOIN {marks} AS mark ON {mark_fresh} AND mark.{at} >= fresh.{at}
"""

_CLOSE: LiteralString = """
UPDATE {target} AS stored SET {valid_to} = fresh.{at}, {is_current} = false
FROM {fresh} AS fresh WHERE {stored_fresh} AND stored.{is_current} {and_newest}
"""

_ADD: LiteralString = """
INSERT INTO {target} ({all}, {valid_from}, {is_current})
SELECT {all}, {at}, true FROM {fresh} AS fresh WHERE true {and_newest}
"""

_AND_NEWEST: LiteralString = "AND NOT EXISTS (SELECT FROM {keys} AS keys WHERE {keys_fresh})"


def take_in(versions: Versions, fresh: sql.Composed) -> None:
    """`fresh` selects the events: all columns, when it happened, and whether the row is gone."""
    versions.run("CREATE TEMPORARY TABLE hakiri_fresh ON COMMIT DROP AS {fresh_rows}", fresh_rows=fresh)
    if versions.any("SELECT FROM {fresh}"):
        versions.run("ANALYZE {fresh}")
        versions.run(_MAKE_KEYS)
        others = _find_others(versions)
        _add_newest(versions, others=others)
        if others:
            rework(versions)
        versions.run("DROP TABLE {keys}")
    versions.run("DROP TABLE {fresh}")


def _find_others(versions: Versions) -> bool:
    marked = marks.exist(versions.work.connection, versions.work.load.table)
    versions.run(
        _FIND_OTHERS + _FIND_MARKED if marked else _FIND_OTHERS,
        fresh_key=versions.listed("fresh", versions.key),
        stored_fresh=versions.same_key("stored", "fresh"),
        mark_fresh=versions.same_key("mark", "fresh"),
        differs=versions.differs("stored", "fresh"),
    )
    found = versions.any("SELECT FROM {keys}")
    if found:
        versions.run("ANALYZE {keys}")
    return found


def _add_newest(versions: Versions, *, others: bool) -> None:
    and_newest: sql.Composable = sql.SQL("")
    if others:
        and_newest = versions.composed(_AND_NEWEST, keys_fresh=versions.same_key("keys", "fresh"))
    versions.run(_CLOSE, stored_fresh=versions.same_key("stored", "fresh"), and_newest=and_newest)
    versions.run(_ADD, and_newest=and_newest)
