"""scd2: every version of a row is kept, with the time from which and to which it was valid.

A version's time is its cursor, where that is a time; otherwise the time of the load. A load of the whole source also
knows what is current now: a row that differs from the current version becomes one, and what is missing is closed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime

from psycopg import sql
from typing_extensions import override

from hakiri_dagster.destinations.contract import PROVENANCE_COLUMNS, Target
from hakiri_dagster.destinations.postgres.catalog import Found, base_types, stored_name, target_of
from hakiri_dagster.destinations.postgres.connection import Connection
from hakiri_dagster.destinations.postgres.conversion import kind_of
from hakiri_dagster.destinations.postgres.modes import deletes
from hakiri_dagster.destinations.postgres.modes.candidate_rows import (
    STAGED,
    cursor_of,
    keep_last,
    keep_one_row_a_key,
    key_of,
    loaded_columns,
    stage_candidate,
)
from hakiri_dagster.destinations.postgres.modes.content import content_of
from hakiri_dagster.destinations.postgres.modes.contract import InTransaction, Mode, Work
from hakiri_dagster.destinations.postgres.modes.contradicted_versions import remove_contradicted
from hakiri_dagster.destinations.postgres.modes.history import take_in
from hakiri_dagster.destinations.postgres.modes.key_objections import (
    column_objections,
    partition_objections,
)
from hakiri_dagster.destinations.postgres.modes.merging import merge_staged
from hakiri_dagster.destinations.postgres.modes.versions import IS_CURRENT, VALID_FROM, VALID_TO, Versions
from hakiri_dagster.destinations.postgres.types import parse_type, wanted_type
from hakiri_dagster.manifest.tables import Table
from hakiri_dagster.planning.columns import SourceSchema

_OWN: Mapping[str, str] = {VALID_FROM: "timestamptz", VALID_TO: "timestamptz", IS_CURRENT: "boolean"}
_TIMES = frozenset({"timestamptz", "timestamp", "date"})
_LOCK = """
SELECT pg_advisory_xact_lock(pg_catalog.hashtextextended('hakiri history ' || %s::text, 0::bigint)), clock_timestamp()
"""
_KEPT = (
    "nothing was closed, because {count} row(s) of the source were set aside: they may be what would have been closed"
)


class Scd2(Mode):
    clears_target = False
    looks_for_load_ids = False
    leaves_load_ids = True
    what_no_rows_do = "close every row of the target"
    current_flag = IS_CURRENT

    @override
    def schema_objections(self, table: Table, schema: SourceSchema) -> Sequence[str]:
        wrong = [
            f"the source has a column {column.name}, which scd2 fills by itself; rename it at the source"
            for column in schema.columns
            if stored_name(column.name) in _OWN
        ]
        cursor = None if table.cursor is None else schema.column(table.cursor)
        if cursor is None or table.whole_table:
            return wrong
        kept = parse_type(wanted_type(cursor, table.columns.get(cursor.name)))
        if kept is None or kind_of(kept) not in _TIMES:
            wrong.append(_no_time(table.cursor, str(kept or cursor.spark_type)))
        return wrong

    @override
    def objections(
        self, connection: Connection, table: Table, found: Found | None, columns: Sequence[str]
    ) -> Sequence[str]:
        key = self.key(table)
        present = list(map(stored_name, columns))
        wrong = column_objections(table.mode, key, present, "there is nothing whose history could be kept")
        if table.cursor is not None and stored_name(table.cursor) not in present:
            wrong.append(f"the cursor {table.cursor} is not a column of the source")
        wrong += deletes.delete_objections(table, found, present)
        if found is not None:
            wrong += [*_misfits(table, found.target), *_one_row_a_key(found.target, key)]
        return [*wrong, *partition_objections(connection, found, self.unique(table))]

    @override
    def key(self, table: Table) -> tuple[str, ...]:
        return key_of(table)

    @override
    def unique(self, table: Table) -> tuple[str, ...]:
        return (*self.key(table), VALID_FROM)

    @override
    def primary_key(self, table: Table, of_source: tuple[str, ...]) -> tuple[str, ...]:
        return self.unique(table)

    @override
    def required(self, table: Table) -> Mapping[str, str]:
        required = dict(super().required(table))
        if table.cursor is not None and not table.whole_table:
            required[stored_name(table.cursor)] = "it says from when the row is valid"
        return required

    @override
    def added_columns(self, table: Table) -> Mapping[str, str]:
        return _OWN

    @override
    def stage(self, work: Work) -> InTransaction:
        table = work.load.table
        stage_candidate(work)
        versions = _versions(work)
        keep_one_row_a_key(work, (*versions.key, *([versions.cursor] if versions.cursor else [])))
        moment = _begin(work)
        if versions.cursor is not None:
            merge_staged(work, lambda staged: _take_in_at_their_times(versions, staged))
            keep_last(work, versions.key)
        if table.whole_table or versions.cursor is None:
            merge_staged(work, lambda staged: take_in(versions, _as_of_now(versions, moment, staged)))
        told = self._close_missing(versions, moment) if table.whole_table else ()
        return InTransaction(work.blocks.rows, told)

    @override
    def parallel(self, target: Target) -> bool:
        return False

    def _close_missing(self, versions: Versions, moment: datetime) -> tuple[str, ...]:
        set_aside = versions.work.blocks.set_aside
        if set_aside:
            return (_KEPT.format(count=set_aside),)
        take_in(versions, _missing(versions, moment))
        return ()


def _begin(work: Work) -> datetime:
    """One load after the other looks at the history and adds to it, each at a later time."""
    row = work.connection.execute(_LOCK, (target_of(work.load.table),)).fetchone()
    assert row is not None  # a SELECT without FROM
    moment: datetime = row[1]
    return moment


def _versions(work: Work) -> Versions:
    key = key_of(work.load.table)
    columns = loaded_columns(work)
    cursor = cursor_of(work)
    if cursor is not None and deletes.column_kind(work.load.target, cursor) not in _TIMES:
        cursor = None
    left_out = {*key, cursor, deletes.flag_of(work.load.table), *PROVENANCE_COLUMNS}
    types = base_types(work.connection, work.found.oid)
    return Versions(
        work=work,
        key=key,
        columns=columns,
        content=content_of((column for column in columns if column not in left_out), types),
        cursor=cursor,
    )


def _take_in_at_their_times(versions: Versions, staged: sql.Composable) -> None:
    fresh = _at_their_times(versions, staged)
    remove_contradicted(versions, fresh, STAGED)
    take_in(versions, fresh)


def _at_their_times(versions: Versions, staged: sql.Composable) -> sql.Composed:
    """Rows that have a time, less those that are known as they are."""
    assert versions.cursor is not None
    return versions.composed(
        "SELECT {columns}, staged.{cursor}::timestamptz AS {at}, {gone} AS {deleted} FROM {staged} AS staged "
        "WHERE staged.{cursor} IS NOT NULL AND NOT EXISTS (SELECT FROM {target} AS stored WHERE {same_key} "
        "AND stored.{valid_from} = staged.{cursor}::timestamptz AND NOT {gone} AND NOT {differs})",
        **_parts(versions, staged),
        cursor=sql.Identifier(versions.cursor),
    )


def _as_of_now(versions: Versions, moment: datetime, staged: sql.Composable) -> sql.Composed:
    """Rows that are not current as they are."""
    return versions.composed(
        "SELECT {columns}, {now} AS {at}, {gone} AS {deleted} FROM {staged} AS staged "
        "LEFT JOIN {target} AS stored ON {same_key} AND stored.{is_current} "
        "WHERE CASE WHEN stored.{valid_from} IS NULL THEN NOT {gone} ELSE {gone} OR {differs} END",
        **_parts(versions, staged),
        now=_now(versions, moment),
    )


def _missing(versions: Versions, moment: datetime) -> sql.Composed:
    return versions.composed(
        "SELECT {columns}, {now} AS {at}, true AS {deleted} FROM {target} AS stored "
        "WHERE stored.{is_current} AND NOT EXISTS (SELECT FROM {staged} AS staged WHERE {same_key})",
        **_parts(versions, STAGED) | {"columns": versions.listed("stored")},
        now=_now(versions, moment),
    )


def _parts(versions: Versions, staged: sql.Composable) -> dict[str, sql.Composable]:
    load = versions.work.load
    return {
        "columns": versions.listed("staged"),
        "staged": staged,
        "gone": deletes.flagged(load.target, load.table, "staged"),
        "same_key": versions.same_key("stored", "staged"),
        "differs": versions.differs("stored", "staged"),
    }


def _now(versions: Versions, moment: datetime) -> sql.Composed:
    """Never before what it takes the place of, which may lie in the future."""
    return versions.composed(
        "greatest({moment}::timestamptz, stored.{valid_from} + interval '1 microsecond')",
        moment=sql.Literal(moment.isoformat()),
    )


def _misfits(table: Table, target: Target) -> list[str]:
    kept = {column.name: column for column in target.columns}
    lacking = [name for name in _OWN if name not in kept]
    if lacking:
        return [
            f"the target exists and has no {', '.join(lacking)}; give the table another `target`, which scd2 makes; "
            f"or drop it and apply; or add what is missing ({_spelled()}), filled for the rows that are there"
        ]
    fitting = {VALID_FROM: _TIMES - {"date"}, VALID_TO: _TIMES - {"date"}, IS_CURRENT: frozenset({"boolean"})}
    wrong = [
        f"{name} is {kept[name].type} in the target, and scd2 needs {_OWN[name]}"
        for name, kinds in fitting.items()
        if deletes.column_kind(target, name) not in kinds
    ]
    wrong += [f"{name} is generated by the target; scd2 fills it by itself" for name in _OWN if kept[name].generated]
    if kept[VALID_FROM].nullable:
        wrong.append(
            f"{VALID_FROM} may be NULL in the target, and a version begins somewhere; fill it, set it NOT NULL"
        )
    cursor = None if table.cursor is None or table.whole_table else kept.get(stored_name(table.cursor))
    if cursor is not None and deletes.column_kind(target, cursor.name) not in _TIMES:
        wrong.append(_no_time(cursor.name, cursor.type))
    return wrong


def _one_row_a_key(target: Target, key: Sequence[str]) -> list[str]:
    return [
        f"the target's unique index on ({', '.join(kept)}) allows one row a key, and scd2 keeps several; drop it"
        for kept in target.unique_keys
        if set(kept) <= set(key)
    ]


def _no_time(cursor: str | None, kind: str) -> str:
    return (
        f"the cursor {cursor} is {kind}, and scd2 takes from it from when a row is valid; choose a date or a time, "
        "or load the whole table (close_missing = true)"
    )


def _spelled() -> str:
    return ", ".join(f"{name} {kind}" for name, kind in _OWN.items())
