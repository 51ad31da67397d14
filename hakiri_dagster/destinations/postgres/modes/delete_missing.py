"""delete_missing: upsert of the whole source, and what it no longer holds is deleted. Rows that are the same stay as
they are, which is gentler than truncate where few of them change."""

from __future__ import annotations

from psycopg import sql
from typing_extensions import override

from hakiri_dagster.destinations.postgres.connection import relation
from hakiri_dagster.destinations.postgres.modes.contract import InTransaction, Work
from hakiri_dagster.destinations.postgres.modes.empty_source import refuse_empty_source
from hakiri_dagster.destinations.postgres.modes.upsert import STAGED, Upsert

_KEPT = (
    "nothing was deleted, because {count} row(s) of the source were set aside: they may be what would have been deleted"
)


class DeleteMissing(Upsert):
    clears_target = True

    @override
    def stage(self, work: Work) -> InTransaction:
        refuse_empty_source(work)
        staged = super().stage(work)
        set_aside = work.blocks.set_aside
        if set_aside:
            return InTransaction(staged.rows, (_KEPT.format(count=set_aside),))
        work.connection.execute(self._deletion(work))
        return staged

    def _deletion(self, work: Work) -> sql.Composed:
        target = work.load.target
        same_key = sql.SQL(" AND ").join(
            sql.SQL("kept.{0} = stored.{0}").format(sql.Identifier(column)) for column in self.key(work.load.table)
        )
        return sql.SQL("DELETE FROM {} AS stored WHERE NOT EXISTS (SELECT FROM {} AS kept WHERE {})").format(
            relation(target.schema, target.name), STAGED, same_key
        )

    @override
    def _not_older(self, work: Work) -> list[sql.Composable]:
        """What the source holds now is the truth, whatever cursor it bears."""
        return []
