"""delete_missing: upsert of the whole source, and what it no longer holds is deleted. Rows that are the same stay as
they are, which is gentler than truncate where few of them change."""

from __future__ import annotations

from collections.abc import Sequence

from psycopg import sql
from typing_extensions import override

from hakiri_dagster.destinations.postgres.connection import relation
from hakiri_dagster.destinations.postgres.modes import deletes
from hakiri_dagster.destinations.postgres.modes.contract import InTransaction, Work
from hakiri_dagster.destinations.postgres.modes.upsert import Upsert

_KEPT = (
    "nothing was deleted, because {count} row(s) of the source were set aside: they may be what would have been deleted"
)


class DeleteMissing(Upsert):
    clears_target = True

    @override
    def stage(self, work: Work) -> InTransaction:
        staged = super().stage(work)
        set_aside = work.blocks.set_aside
        if set_aside:
            return InTransaction(staged.rows, (_KEPT.format(count=set_aside),))
        deletes.delete_missing(work, self.key(work.load.table))
        return staged

    @override
    def _keep_out(self, work: Work) -> None:
        """Rows that others have written and not committed could not be deleted; readers go on."""
        target = work.load.target
        work.connection.execute(
            sql.SQL("LOCK TABLE {} IN SHARE ROW EXCLUSIVE MODE").format(relation(target.schema, target.name))
        )

    @override
    def _not_older(self, work: Work, new: str) -> list[sql.Composable]:
        """What the source holds now is the truth, whatever cursor it bears."""
        return []

    @override
    def _remember_deleted(self, work: Work, key: Sequence[str], staged: sql.Composable) -> None:
        """Every load has all rows, so there is none that comes late."""

    @override
    def _not_deleted_since(self, work: Work, key: Sequence[str]) -> list[sql.Composable]:
        return []
