"""Puts a backup back, if nobody is at work on the table."""

from __future__ import annotations

from uuid import uuid4

from hakiri_dagster.destinations.backups_contract import Backup, Restored
from hakiri_dagster.engine.process_identity import ProcessIdentity, is_dead, where_it_ran
from hakiri_dagster.errors import UsageError
from hakiri_dagster.manifest.tables import Table
from hakiri_dagster.pipeline.runtime import Runtime


def restore(runtime: Runtime, table: Table, backup: Backup) -> Restored:
    """The audit DB tells of runs that only read as yet; of loads the destination knows."""
    held = runtime.audit.chunks.held(table.pipeline_id, table.name, is_dead)
    if held:
        raise UsageError(
            f"a run is at work on the table: {where_it_ran(held[0].holder)} holds chunk {held[0].key}",
            where=table.label,
            hint="restore when it has ended",
        )
    return runtime.destination(table).restore(
        table, backup.load_id, holder=str(ProcessIdentity.current()), run_id=f"restore-{uuid4()}"
    )
