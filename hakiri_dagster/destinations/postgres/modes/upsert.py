"""upsert: one row a key, the one with the highest cursor. Nothing is ever deleted."""

from __future__ import annotations

from collections.abc import Sequence

from psycopg import errors, sql
from typing_extensions import override

from hakiri_dagster.destinations.contract import (
    INGESTED_AT_COLUMN,
    LOAD_ID_COLUMN,
    ROW_HASH_COLUMN,
    SOURCE_FILE_HASH_COLUMN,
    Target,
)
from hakiri_dagster.destinations.postgres.catalog import Found, base_types, stored_name
from hakiri_dagster.destinations.postgres.connection import Connection, names, relation
from hakiri_dagster.destinations.postgres.cursor_order import cursor_type, placed
from hakiri_dagster.destinations.postgres.modes.contract import InTransaction, Mode, Work
from hakiri_dagster.manifest.tables import Table

PROVENANCE = frozenset({LOAD_ID_COLUMN, SOURCE_FILE_HASH_COLUMN, INGESTED_AT_COLUMN, ROW_HASH_COLUMN})
STAGED = sql.Identifier("pg_temp", "hakiri_candidate")


class Upsert(Mode):
    clears_target = False
    looks_for_load_ids = False

    @override
    def objections(
        self, connection: Connection, table: Table, found: Found | None, columns: Sequence[str]
    ) -> Sequence[str]:
        key = self.key(table)
        if not key:
            return (f"mode {table.mode} needs an upsert_key or a primary_key",)
        present = {stored_name(column) for column in columns}
        missing = [column for column in key if column not in present]
        if missing:
            return (f"the upsert_key names columns that the source does not have: {', '.join(missing)}",)
        if not present - set(key) - PROVENANCE:
            return ("the upsert_key names every column, so there is nothing to update; use append or truncate",)
        return ()

    @override
    def key(self, table: Table) -> tuple[str, ...]:
        return tuple(stored_name(column) for column in table.upsert_key or table.primary_key)

    @override
    def stage(self, work: Work) -> InTransaction:
        rows = self._stage_candidate(work)
        if rows:
            self._merge(work)
        return InTransaction(rows)

    @override
    def parallel(self, target: Target) -> bool:
        return False

    def _stage_candidate(self, work: Work) -> int:
        columns, target = work.load.columns, work.load.target
        work.connection.execute(
            sql.SQL("CREATE TEMPORARY TABLE hakiri_candidate ON COMMIT DROP AS SELECT {} FROM {} WITH NO DATA").format(
                names(columns), relation(target.schema, target.name)
            )
        )
        return work.blocks.copy_into(work.connection, STAGED, columns, freeze=True)

    def _merge(self, work: Work) -> None:
        """A slice rarely holds a key twice, and sorting it costs as much as the merge: sort only if it must be."""
        try:
            with work.connection.transaction():
                work.connection.execute(self._statement(work, distinct=False))
        except errors.CardinalityViolation:
            work.connection.execute(self._statement(work, distinct=True))

    def _statement(self, work: Work, *, distinct: bool) -> sql.Composed:
        load = work.load
        key = self.key(load.table)
        changed = [column for column in map(stored_name, load.columns) if column not in key]
        return sql.SQL(
            "INSERT INTO {target} AS stored ({columns}) {rows} ON CONFLICT ({key}) DO UPDATE SET {assignments} "
            "WHERE {condition}"
        ).format(
            target=relation(load.target.schema, load.target.name),
            columns=names(load.columns),
            rows=self._latest_rows(work, key) if distinct else self._all_rows(work),
            key=names(key),
            assignments=sql.SQL(", ").join(
                sql.SQL("{0} = excluded.{0}").format(sql.Identifier(column)) for column in changed
            ),
            condition=sql.SQL(" AND ").join([*self._not_older(work), self._differs(work, changed)]),
        )

    def _all_rows(self, work: Work) -> sql.Composed:
        return sql.SQL("SELECT {} FROM {}").format(names(work.load.columns), STAGED)

    def _latest_rows(self, work: Work, key: tuple[str, ...]) -> sql.Composed:
        """Of rows with one key and one cursor, the one that was read last."""
        order = [*map(sql.Identifier, key)]
        cursor = [sql.SQL("{} DESC NULLS LAST").format(_placed(work, c)) for c in self._cursor(work)]
        return sql.SQL("SELECT DISTINCT ON ({}) {} FROM {} ORDER BY {}").format(
            names(key),
            names(work.load.columns),
            STAGED,
            sql.SQL(", ").join([*order, *cursor, sql.SQL("ctid DESC")]),
        )

    def _cursor(self, work: Work) -> list[str]:
        cursor = work.load.table.cursor
        return [cursor] if cursor is not None and cursor in work.load.columns else []

    def _not_older(self, work: Work) -> list[sql.Composable]:
        """So that chunks may run in any order. A row without a cursor is older than any other."""
        return [
            sql.SQL("({stored} IS NULL OR {new} >= {stored})").format(
                stored=_placed(work, "stored", column),
                new=_placed(work, "excluded", column),
            )
            for column in self._cursor(work)
        ]

    def _differs(self, work: Work, changed: list[str]) -> sql.Composable:
        types = base_types(work.connection, work.found.oid)
        comparisons = [
            sql.SQL("stored.{0}{1} IS DISTINCT FROM excluded.{0}{1}").format(
                sql.Identifier(column), sql.SQL("" if types[column].comparable else "::text")
            )
            for column in changed
            if column not in PROVENANCE
        ]
        return sql.SQL("({})").format(sql.SQL(" OR ").join(comparisons))


def _placed(work: Work, *cursor: str) -> sql.Composable:
    return placed(sql.Identifier(*cursor), cursor_type(work.load.target, cursor[-1]))
