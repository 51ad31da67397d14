"""What dead attempts leave is put right without waiting for somebody who claims their chunks: their sessions in the
destination are ended, with the locks that these hold, their Spark jobs too, their files are removed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Final

from hakiri_dagster.audit.leases import StaleLease
from hakiri_dagster.engine.process_identity import ProcessIdentity, is_dead, where_it_ran
from hakiri_dagster.engine.spark import interrupt_attempt, is_remote
from hakiri_dagster.errors import HakiriError
from hakiri_dagster.manifest.tables import Table
from hakiri_dagster.pipeline.claims import kept_alive, spark_tag
from hakiri_dagster.pipeline.runtime import Runtime

_SECONDS: Final = 120
"""So long nobody else can claim the chunks, lest his fence is raised as well; and longer while the destination takes
its time."""


@dataclass(frozen=True, slots=True)
class Swept:
    leases: tuple[StaleLease, ...] = ()
    runs: tuple[str, ...] = ()
    failures: tuple[HakiriError, ...] = ()

    @property
    def summary(self) -> str:
        told = [f"{lease.pipeline_id}/{lease.table}, chunk {lease.key}: {_why(lease)}" for lease in self.leases]
        told += [f"run {run_id}: its process died" for run_id in self.runs]
        told += [f"the next tick tries again: {error}" for error in self.failures]
        return "; ".join(told) or "no lease without a living holder"


def sweep_leases(runtime: Runtime) -> Swept:
    """Asks nothing but the audit DB where every holder lives."""
    leases = runtime.audit.leases
    runs = leases.close_runs(is_dead)
    swept: list[StaleLease] = []
    failures: list[HakiriError] = []
    tables = {(table.pipeline_id, table.name): table for table in runtime.project.tables}
    for of_table, group in groupby(leases.stale(is_dead), key=lambda lease: (lease.pipeline_id, lease.table)):
        try:
            swept += _of_table(runtime, tables.get(of_table), list(group))
        except HakiriError as error:  # its lease ends by itself, and other tables need not wait for it
            failures.append(error)
    if swept or runs:
        runtime.sweep()
    return Swept(tuple(swept), runs, tuple(failures))


def _of_table(runtime: Runtime, table: Table | None, stale: Sequence[StaleLease]) -> tuple[StaleLease, ...]:
    """A table that is not in the manifest any more has no destination that could be asked."""
    leases, me = runtime.audit.leases, str(ProcessIdentity.current())
    taken = leases.take_over(stale, holder=me, ttl_seconds=_SECONDS, holder_is_dead=is_dead)
    if table is not None and taken:
        with kept_alive(lambda: leases.keep(taken, holder=me, ttl_seconds=_SECONDS), _SECONDS):
            runtime.destination(table).claim(table, [lease.key for lease in taken], me)
            _interrupt(runtime, taken)
    for why, group in groupby(sorted(taken, key=_why), key=_why):
        leases.close(list(group), holder=me, message=f"{why}; the next load takes the chunk up again")
    return taken


def _interrupt(runtime: Runtime, taken: Sequence[StaleLease]) -> None:
    """Over Connect a killed client's tasks go on."""
    if is_remote(runtime.settings):
        session = runtime.open_spark()
        for holder in {lease.holder for lease in taken}:
            interrupt_attempt(session, spark_tag(holder))


def _why(lease: StaleLease) -> str:
    if is_dead(lease.holder) is True:
        return f"the process that worked on it was killed ({where_it_ran(lease.holder)})"
    return f"its lease ended, and its holder said nothing any more ({where_it_ran(lease.holder)})"
