"""upsert: one row a key, the one with the highest cursor. Nothing is deleted but what the source's rows say is gone."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from psycopg import sql
from typing_extensions import override

from hakiri_dagster.destinations.contract import LOAD_ID_COLUMN, PROVENANCE_COLUMNS, Target
from hakiri_dagster.destinations.postgres import marks
from hakiri_dagster.destinations.postgres.catalog import Found, base_types, stored_name
from hakiri_dagster.destinations.postgres.connection import Connection, names, relation
from hakiri_dagster.destinations.postgres.cursor_order import cursor_type
from hakiri_dagster.destinations.postgres.modes import deletes
from hakiri_dagster.destinations.postgres.modes.candidate_rows import (
    cursor_of,
    in_order,
    keep_one_row_a_key,
    key_of,
    loaded_columns,
    stage_candidate,
)
from hakiri_dagster.destinations.postgres.modes.content import Content, content_of, values_of
from hakiri_dagster.destinations.postgres.modes.contract import InTransaction, Mode, Work
from hakiri_dagster.destinations.postgres.modes.key_objections import (
    column_objections,
    conflict_objections,
    partition_objections,
)
from hakiri_dagster.destinations.postgres.modes.merging import merge_staged
from hakiri_dagster.destinations.postgres.modes.read_again import may_have_moved_back
from hakiri_dagster.manifest.tables import Table


class Upsert(Mode):
    clears_target = False
    looks_for_load_ids = False
    leaves_load_ids = True

    @override
    def objections(
        self, connection: Connection, table: Table, found: Found | None, columns: Sequence[str]
    ) -> Sequence[str]:
        key = self.key(table)
        present = list(map(stored_name, columns))
        return [
            *column_objections(table.mode, key, present, "there is nothing to update; use append or truncate"),
            *conflict_objections(connection, found, key),
            *partition_objections(connection, found, key),
            *deletes.delete_objections(table, found, present),
        ]

    @override
    def key(self, table: Table) -> tuple[str, ...]:
        return key_of(table)

    @override
    def added_columns(self, table: Table) -> Mapping[str, str]:
        return deletes.marker_columns(table)

    @override
    def stage(self, work: Work) -> InTransaction:
        rows = stage_candidate(work)
        self._keep_out(work)
        if rows:
            self._merge(work)
        return InTransaction(work.blocks.rows)

    @override
    def parallel(self, target: Target) -> bool:
        return False

    def _keep_out(self, work: Work) -> None:
        """A load of older rows waits for an open one, whose deletes it would not see."""
        if deletes.deletes_rows(work.load.table) and cursor_of(work) is not None:
            marks.lock(work.connection, work.load.table)

    def _merge(self, work: Work) -> None:
        table = work.load.table
        key = self.key(table)
        keep_one_row_a_key(work, key)
        content = _content(work, _changed(work, key))
        deleting = deletes.deletes_rows(table) and deletes.any_flagged(work)

        def merge(staged: sql.Composable) -> None:
            if deleting:
                deletes.delete_flagged(work, key, self._not_older(work, "staged"), staged)
                self._remember_deleted(work, key, staged)
            work.connection.execute(self._statement(work, key, content, staged))

        merge_staged(work, merge)

    def _remember_deleted(self, work: Work, key: Sequence[str], staged: sql.Composable) -> None:
        """So that an older row, which comes later, does not bring a deleted one back."""
        cursor = cursor_of(work)
        if cursor is not None:
            marks.make(work.connection, work.load.table, work.load.target, key, cursor)
            deletes.mark_flagged(work, key, in_order(work, "staged", cursor), staged)

    def _statement(self, work: Work, key: Sequence[str], content: Content, staged: sql.Composable) -> sql.Composed:
        load, marker = work.load, deletes.marker_of(work.load.table)
        columns = loaded_columns(work)
        differs = [content.differs(values_of("stored"), values_of("excluded"))]
        assignments = [sql.SQL("{0} = excluded.{0}").format(sql.Identifier(name)) for name in _changed(work, key)]
        if marker is not None:
            assignments.append(_marking(marker))
            differs.append(sql.SQL("(stored.{0} IS NULL) <> (excluded.{0} IS NULL)").format(sql.Identifier(marker)))
        return sql.SQL(
            "INSERT INTO {target} AS stored ({columns}) {rows} ON CONFLICT ({key}) DO UPDATE SET {assignments} "
            "WHERE {condition}"
        ).format(
            target=relation(load.target.schema, load.target.name),
            columns=names([*columns, *([marker] if marker else [])]),
            rows=self._rows(work, columns, key, staged),
            key=names(list(key)),
            assignments=sql.SQL(", ").join(assignments),
            condition=sql.SQL(" AND ").join(
                [*self._not_older(work, "excluded"), sql.SQL("({})").format(sql.SQL(" OR ").join(differs))]
            ),
        )

    def _rows(self, work: Work, columns: Sequence[str], key: Sequence[str], staged: sql.Composable) -> sql.Composed:
        table = work.load.table
        flagged = deletes.flagged(work.load.target, table, "staged")
        chosen: list[sql.Composable] = [sql.Identifier("staged", column) for column in columns]
        if deletes.marker_of(table) is not None:
            chosen.append(sql.SQL("CASE WHEN {} THEN {} END").format(flagged, deletes.MOMENT))
        conditions: list[sql.Composable] = []
        if deletes.deletes_rows(table):
            conditions = [sql.SQL("NOT {}").format(flagged), *self._not_deleted_since(work, key)]
        return sql.SQL("SELECT {} FROM {} AS staged{}").format(
            sql.SQL(", ").join(chosen),
            staged,
            sql.SQL(" WHERE {}").format(sql.SQL(" AND ").join(conditions)) if conditions else sql.SQL(""),
        )

    def _not_deleted_since(self, work: Work, key: Sequence[str]) -> list[sql.Composable]:
        cursor = cursor_of(work)
        if cursor is None or not marks.exist(work.connection, work.load.table):
            return []
        return [deletes.not_deleted_after(work, key, in_order(work, "staged", cursor))]

    def _not_older(self, work: Work, new: str) -> list[sql.Composable]:
        """So that chunks may run in any order. A row without a cursor is older than any other."""
        cursor = cursor_of(work)
        if cursor is None:
            return _not_loaded_later(work)
        stored = in_order(work, "stored", cursor)
        newer: list[sql.Composable] = [
            sql.SQL("{stored} IS NULL OR {new} >= {stored}").format(stored=stored, new=in_order(work, new, cursor))
        ]
        moved_back = may_have_moved_back(work, "stored", stored, cursor_type(work.load.target, cursor))
        if moved_back is not None:
            newer.append(moved_back)
        return [sql.SQL("({})").format(sql.SQL(" OR ").join(newer))]


def _not_loaded_later(work: Work) -> list[sql.Composable]:
    """A row out of the quarantine is as old as the load that set it aside. Of the others of its chunk an earlier replay
    may have brought some."""
    replay = work.load.replay
    if replay is None or not replay.of:
        return []
    return [
        sql.SQL("(stored.{load_id} IS NULL OR stored.{load_id} < {first} OR stored.{load_id} = ANY({own}))").format(
            load_id=sql.Identifier(LOAD_ID_COLUMN),
            first=sql.Literal(min(replay.of)),
            own=sql.Literal(sorted(replay.of)),
        )
    ]


def _changed(work: Work, key: Sequence[str]) -> list[str]:
    return [column for column in loaded_columns(work) if column not in key]


def _content(work: Work, changed: Sequence[str]) -> Content:
    types = base_types(work.connection, work.found.oid)
    return content_of((column for column in changed if column not in PROVENANCE_COLUMNS), types)


def _marking(marker: str) -> sql.Composed:
    """A row that is marked already keeps the time at which it was."""
    return sql.SQL("{0} = CASE WHEN excluded.{0} IS NOT NULL THEN coalesce(stored.{0}, excluded.{0}) END").format(
        sql.Identifier(marker)
    )
