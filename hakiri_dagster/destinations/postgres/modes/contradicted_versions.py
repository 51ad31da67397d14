"""scd2: versions that an earlier load found in a stretch which is read again, and that the source takes back.

A row that was seen at one time may turn up at an earlier one: of two transactions that change it, the one that began
first may be the one that commits last. The version with the later time would then stay the current one for ever.
"""

from __future__ import annotations

from psycopg import sql

from hakiri_dagster.destinations.postgres import marks
from hakiri_dagster.destinations.postgres.modes.read_again import is_read_again, may_have_moved_back
from hakiri_dagster.destinations.postgres.modes.versions import VALID_FROM, Versions

_FIND = """
CREATE TEMPORARY TABLE hakiri_contradicted ON COMMIT DROP AS
SELECT {stored_key}, stored.{valid_from}
FROM {target} AS stored
JOIN (SELECT {key}, min({at}) AS {at} FROM ({fresh_rows}) AS event GROUP BY {key}) AS fresh ON {stored_fresh}
WHERE stored.{valid_from} > fresh.{at} AND {may_have_moved_back}
  AND NOT EXISTS (SELECT FROM {staged} AS staged
                  WHERE {stored_staged} AND staged.{cursor}::timestamptz = stored.{valid_from})
"""

_FORGET_MARKS = """
DELETE FROM {marks} AS mark
USING (SELECT {key}, min({at}) AS {at} FROM ({fresh_rows}) AS event GROUP BY {key}) AS fresh
WHERE {mark_fresh} AND mark.{at} > fresh.{at} AND {is_read_again}
  AND NOT EXISTS (SELECT FROM {staged} AS staged
                  WHERE {mark_staged} AND staged.{cursor}::timestamptz = mark.{at})
"""

_NEWEST = """
CREATE TEMPORARY TABLE hakiri_newest ON COMMIT DROP AS
SELECT DISTINCT ON ({key}) {key}, {valid_from} FROM {contradicted} ORDER BY {key}, {valid_from} DESC
"""

# What closed a version with the one that is taken back goes on until what closed that one.
_REOPEN = """
UPDATE {target} AS stored SET {valid_to} = later.{valid_to}, {is_current} = later.{is_current}
FROM {target} AS later JOIN {newest} AS newest ON {later_newest} AND later.{valid_from} = newest.{valid_from}
WHERE {stored_later} AND stored.{valid_to} = later.{valid_from}
"""

_DELETE = """
DELETE FROM {place} AS stored USING {newest} AS newest
WHERE {stored_newest} AND stored.{valid_from} = newest.{valid_from}
"""

_CONTRADICTED, _NEWEST_OF_KEY = (sql.Identifier("pg_temp", f"hakiri_{name}") for name in ("contradicted", "newest"))


def remove_contradicted(versions: Versions, fresh: sql.Composed, staged: sql.Composable) -> None:
    """Remove the versions that are later than a new one of their key, and that the source no longer has.

    `fresh` selects the new events, `staged` holds all rows that were read.
    """
    work = versions.work
    stored_at = sql.SQL("stored.{}").format(sql.Identifier(VALID_FROM))
    moved_back = may_have_moved_back(work, "stored", stored_at, "timestamptz")
    if moved_back is None or versions.cursor is None:
        return
    parts: dict[str, sql.Composable] = {
        "fresh_rows": fresh,
        "staged": staged,
        "cursor": sql.Identifier(versions.cursor),
        "contradicted": _CONTRADICTED,
        "newest": _NEWEST_OF_KEY,
    }
    versions.run(
        _FIND,
        **parts,
        stored_key=versions.listed("stored", versions.key),
        stored_fresh=versions.same_key("stored", "fresh"),
        stored_staged=versions.same_key("stored", "staged"),
        may_have_moved_back=moved_back,
    )
    target = versions.composed("{target}")
    while versions.any("SELECT FROM {contradicted}", **parts):
        versions.run(_NEWEST, **parts)
        versions.run(
            _REOPEN,
            **parts,
            later_newest=versions.same_key("later", "newest"),
            stored_later=versions.same_key("stored", "later"),
        )
        for place in (target, _CONTRADICTED):
            versions.run(_DELETE, **parts, place=place, stored_newest=versions.same_key("stored", "newest"))
        versions.run("DROP TABLE {newest}", **parts)
    versions.run("DROP TABLE {contradicted}", **parts)
    if marks.exist(work.connection, work.load.table):
        mark_at = sql.SQL("mark.{}").format(marks.AT)
        versions.run(
            _FORGET_MARKS,
            **parts,
            mark_fresh=versions.same_key("mark", "fresh"),
            mark_staged=versions.same_key("mark", "staged"),
            is_read_again=is_read_again(work, mark_at, "timestamptz") or sql.SQL("false"),
        )
