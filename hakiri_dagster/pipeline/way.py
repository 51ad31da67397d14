"""What one run of one table works with. Values and open handles; the order of the work is in `chunk_run`."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from hakiri_dagster.audit.alerts import Alert
from hakiri_dagster.audit.database import AuditDb
from hakiri_dagster.connectors.contract import SourceTable, SparkProvider
from hakiri_dagster.connectors.network import FreePermits, Permits
from hakiri_dagster.destinations.contract import Destination
from hakiri_dagster.errors import HakiriError, SourceThrottled
from hakiri_dagster.manifest.tables import Table
from hakiri_dagster.pipeline.trace import Trace, Untraced
from hakiri_dagster.planning.parts import part_name
from hakiri_dagster.settings import Settings


class Observer(Protocol):
    """Told what happens to chunks while it happens: progress bars and the numbers of `apply --json`."""

    def published(self, table: Table, key: str, *, rows: int, quarantined: int) -> None: ...

    def failed(self, table: Table, key: str, error: HakiriError) -> None: ...

    def skipped(self, table: Table, key: str, reason: str) -> None: ...

    def stopped(self, table: Table, error: HakiriError) -> None:
        """The table as a whole could not go on."""
        ...

    def warned(self, table: Table, warning: str) -> None: ...

    def hook_ran(self, table: Table, name: str) -> None: ...

    def waited_for_engine(self, table: Table, seconds: float) -> None:
        """Spark had to be started; the time is not the table's."""
        ...


class SilentObserver:
    def published(self, table: Table, key: str, *, rows: int, quarantined: int) -> None: ...

    def failed(self, table: Table, key: str, error: HakiriError) -> None: ...

    def skipped(self, table: Table, key: str, reason: str) -> None: ...

    def stopped(self, table: Table, error: HakiriError) -> None: ...

    def warned(self, table: Table, warning: str) -> None: ...

    def hook_ran(self, table: Table, name: str) -> None: ...

    def waited_for_engine(self, table: Table, seconds: float) -> None: ...


@dataclass(slots=True)
class Totals:
    """What a run has done so far, for its record."""

    chunks: int = 0
    rows: int = 0
    bytes: int = 0
    errors: list[HakiriError] = field(default_factory=list)
    failed_parts: set[str] = field(default_factory=set)
    """The names of the parts of which a chunk has failed; "" is a table without parts."""
    rows_read: list[int] = field(default_factory=list)
    """Slice by slice: rows that were set aside count as well."""

    truncated: Counter[str] = field(default_factory=Counter)
    """How many timestamps of published rows have lost digits beyond microseconds, by column."""

    throttled: bool = False
    """The source wants to be left alone."""

    def note_failed(self, key: str, error: HakiriError) -> None:
        self.errors.append(error)
        self.failed_parts.add(part_name(key))
        self.throttled = self.throttled or isinstance(error, SourceThrottled)


@dataclass(frozen=True, slots=True)
class Way:
    table: Table
    source: SourceTable
    destination: Destination
    audit: AuditDb
    spark: SparkProvider
    settings: Settings
    candidates: Path
    run_id: str
    holder: str
    log: Callable[[str], None]
    observer: Observer
    revive: Callable[[], None]
    """Called after a lost connection, before the next try."""

    occasion: str | None = None
    """What the run shares with others that were asked for together."""

    trace: Trace = field(default_factory=Untraced)
    max_parallel_chunks: int | None = None
    """Over all pipelines of the project."""
    requests: Permits = field(default_factory=FreePermits)
    """To the source, by all workers of the pipeline."""
    writes: Permits = field(default_factory=FreePermits)
    """Of blocks to the destination."""

    @property
    def has_budgets(self) -> bool:
        return not (isinstance(self.requests, FreePermits) and isinstance(self.writes, FreePermits))

    @property
    def empty_as_null(self) -> bool:
        said = self.table.load.empty_as_null
        return self.source.text_format if said is None else said

    totals: Totals = field(default_factory=Totals)
    raised: deque[Alert] = field(default_factory=deque)
    """Alerts that the run's steps have not told yet."""
