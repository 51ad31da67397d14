"""The history of keys of which something comes late, more than once, or says nothing new.

All that is known of a key is a set of events in the order of time: versions of its row, and deletes. From the target
those are read that lie at or after the first new one; from the marks those that left no row: deletes of what was not
there, and versions equal to the one before. New events take the place of known ones at the same time. Then an event
that changes nothing is a mark, any other live one a version, valid until the next that changes something. So the same
events make the same history, in whatever order and however often they come.
"""

from __future__ import annotations

from psycopg import sql

from hakiri_dagster.destinations.postgres import marks
from hakiri_dagster.destinations.postgres.modes.versions import VALID_FROM, Versions

# By what an event is known. Of several at one time the highest counts.
_BY_CLOSING, _BY_MARK, _BY_ROW, _BY_LOAD = (sql.Literal(place) for place in range(4))

_COLLECT = """
CREATE TEMPORARY TABLE hakiri_events ON COMMIT DROP AS
WITH keys AS (
    SELECT {key}, min({at}) AS {at} FROM {keys} GROUP BY {key}),
stored AS (
    SELECT stored.* FROM {target} AS stored JOIN keys ON {stored_keys}
    WHERE stored.{valid_to} IS NULL OR stored.{valid_to} >= keys.{at})
SELECT {fresh_all}, fresh.{at}, fresh.{deleted}, {by_load} AS {known_by}, NULL::timestamptz AS {until}
FROM {fresh} AS fresh JOIN keys ON {fresh_keys}
UNION ALL
SELECT {all}, {valid_from}, false, {by_row}, {valid_to} FROM stored
UNION ALL
SELECT {key}, {nothing}, {valid_to}, true, {by_closing}, NULL FROM stored WHERE {valid_to} IS NOT NULL
"""

# A version equal to the one before has the content of the row that covers it, unless somebody has taken that away.
_COLLECT_MARKS = """
INSERT INTO {events} ({all}, {at}, {deleted}, {known_by})
SELECT {mark_columns}, mark.{at}, mark.{deleted}, {by_mark}
FROM {marks} AS mark
JOIN (SELECT {key}, min({at}) AS {at} FROM {keys} GROUP BY {key}) AS keys ON {mark_keys} AND mark.{at} >= keys.{at}
LEFT JOIN {events} AS covering ON {covering_mark} AND covering.{known_by} = {by_row}
     AND covering.{at} <= mark.{at} AND (covering.{until} IS NULL OR covering.{until} > mark.{at})
WHERE mark.{deleted} OR covering.{known_by} IS NOT NULL
"""

_FIND_CHANGES = """
CREATE TEMPORARY TABLE hakiri_changes ON COMMIT DROP AS
WITH known AS (
    SELECT *, max({until}) OVER at_once AS {had_until},
           bool_or({known_by} = {by_row}) OVER at_once AS {had_row},
           bool_or({known_by} = {by_mark}) OVER at_once AS {had_mark}
    FROM {events} WINDOW at_once AS (PARTITION BY {key}, {at})),
chosen AS (
    SELECT DISTINCT ON ({key}, {at}) * FROM known ORDER BY {key}, {at}, {known_by} DESC),
judged AS (
    SELECT *, CASE WHEN {deleted} THEN NOT pg_catalog.lag({deleted}, 1, true) OVER in_time
                   ELSE pg_catalog.lag({deleted}, 1, true) OVER in_time OR {differs} END AS {matters}
    FROM chosen WINDOW in_time AS (PARTITION BY {key} ORDER BY {at})),
placed AS (
    SELECT *, {matters} AND NOT {deleted} AS {is_row}, NOT {matters} AS {is_mark}, {known_by} = {by_load} AS {is_new},
           pg_catalog.lead({at}) OVER (PARTITION BY {key}, {matters} ORDER BY {at}) AS {next}
    FROM judged)
SELECT {all}, {at}, {deleted}, {next}, {had_row}, {had_mark}, {is_row}, {is_mark}, {is_new}
FROM placed
WHERE {is_row} <> {had_row} OR {is_mark} <> {had_mark}
   OR {is_mark} AND {is_new}
   OR {is_row} AND ({is_new} OR {next} IS DISTINCT FROM {had_until})
"""

_DELETE_ROWS = """
DELETE FROM {target} AS stored USING {changes} AS change
WHERE {stored_change} AND stored.{valid_from} = change.{at} AND change.{had_row} AND NOT change.{is_row}
"""

_MOVE_ENDS = """
UPDATE {target} AS stored SET {valid_to} = change.{next}, {is_current} = change.{next} IS NULL
FROM {changes} AS change
WHERE {stored_change} AND stored.{valid_from} = change.{at}
  AND change.{had_row} AND change.{is_row} AND NOT change.{is_new}
"""

# The source says something else now of a time of which it told before.
_REPLACE_CONTENTS = """
UPDATE {target} AS stored SET {assignments}, {valid_to} = change.{next}, {is_current} = change.{next} IS NULL
FROM {changes} AS change
WHERE {stored_change} AND stored.{valid_from} = change.{at} AND change.{had_row} AND change.{is_row} AND change.{is_new}
"""

_ADD_ROWS = """
INSERT INTO {target} ({all}, {valid_from}, {valid_to}, {is_current})
SELECT {all}, {at}, {next}, {next} IS NULL FROM {changes} WHERE {is_row} AND NOT {had_row}
"""

_DELETE_MARKS = """
DELETE FROM {marks} AS mark USING {changes} AS change
WHERE {mark_change} AND mark.{at} = change.{at} AND change.{had_mark} AND (change.{is_new} OR NOT change.{is_mark})
"""

_ADD_MARKS = """
INSERT INTO {marks} SELECT {key}, {at}, {deleted} FROM {changes} WHERE {is_mark} AND ({is_new} OR NOT {had_mark})
"""


def rework(versions: Versions) -> None:
    _collect_events(versions)
    versions.run("ANALYZE {events}")
    versions.run(
        _FIND_CHANGES,
        differs=versions.differs_from_last("in_time"),
        by_row=_BY_ROW,
        by_mark=_BY_MARK,
        by_load=_BY_LOAD,
    )
    versions.run("ANALYZE {changes}")
    _write_rows(versions)
    if versions.any("SELECT FROM {changes} WHERE {is_mark} OR {had_mark}"):
        _write_marks(versions)
    versions.run("DROP TABLE {events}, {changes}")


def _collect_events(versions: Versions) -> None:
    versions.run(
        _COLLECT,
        stored_keys=versions.same_key("stored", "keys"),
        fresh_keys=versions.same_key("fresh", "keys"),
        fresh_all=versions.listed("fresh"),
        nothing=sql.SQL(", ").join(sql.SQL("NULL") for _ in versions.others),
        by_load=_BY_LOAD,
        by_row=_BY_ROW,
        by_closing=_BY_CLOSING,
    )
    if marks.exist(versions.work.connection, versions.work.load.table):
        versions.run(
            _COLLECT_MARKS,
            mark_columns=_columns_of_mark(versions),
            mark_keys=versions.same_key("mark", "keys"),
            covering_mark=versions.same_key("covering", "mark"),
            by_row=_BY_ROW,
            by_mark=_BY_MARK,
        )


def _columns_of_mark(versions: Versions) -> sql.Composed:
    others = [
        sql.SQL("mark.{}").format(marks.AT) if column == versions.cursor else sql.Identifier("covering", column)
        for column in versions.others
    ]
    return sql.SQL(", ").join([versions.listed("mark", versions.key), *others])


def _write_rows(versions: Versions) -> None:
    stored_change = versions.same_key("stored", "change")
    if versions.any("SELECT FROM {changes} WHERE {had_row} AND NOT {is_row}"):
        versions.run(_DELETE_ROWS, stored_change=stored_change)
    versions.run(_MOVE_ENDS, stored_change=stored_change)
    if versions.any("SELECT FROM {changes} WHERE {had_row} AND {is_row} AND {is_new}"):
        assignments = sql.SQL(", ").join(
            sql.SQL("{0} = change.{0}").format(sql.Identifier(column)) for column in versions.others
        )
        versions.run(_REPLACE_CONTENTS, stored_change=stored_change, assignments=assignments)
    versions.run(_ADD_ROWS)


def _write_marks(versions: Versions) -> None:
    load = versions.work.load
    marks.make(versions.work.connection, load.table, load.target, versions.key, VALID_FROM)
    versions.run(_DELETE_MARKS, mark_change=versions.same_key("mark", "change"))
    versions.run(_ADD_MARKS)
