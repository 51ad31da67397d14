"""The audit DB, opened. `AuditView` is for whoever only reads: `plan`, `status`, the UI."""

from __future__ import annotations

from pathlib import Path
from types import TracebackType
from typing import Final, Self

from hakiri_dagster.audit.address import AuditAddress
from hakiri_dagster.audit.alerts import AlertReader, AlertStore
from hakiri_dagster.audit.chunks import ChunkReader, ChunkStore
from hakiri_dagster.audit.cursor_history import CursorHistoryReader, CursorHistoryStore
from hakiri_dagster.audit.cursors import CursorReader, CursorStore
from hakiri_dagster.audit.deliveries import DeliveryReader, DeliveryStore
from hakiri_dagster.audit.engine import Transactions, postgres_transactions, sqlite_transactions
from hakiri_dagster.audit.files import FileReader, FileStore
from hakiri_dagster.audit.holds import HoldStore
from hakiri_dagster.audit.leases import LeaseStore
from hakiri_dagster.audit.looks import LookStore
from hakiri_dagster.audit.migrations import migrate
from hakiri_dagster.audit.pass_places import PassPlaceStore
from hakiri_dagster.audit.progress import ProgressReader
from hakiri_dagster.audit.rate_budgets import RateBudgetReader, RateBudgetStore
from hakiri_dagster.audit.renames import RenameStore
from hakiri_dagster.audit.rewinds import RewindReader, RewindStore
from hakiri_dagster.audit.runs import RunReader, RunStore
from hakiri_dagster.audit.schema_log import SchemaReader, SchemaStore
from hakiri_dagster.audit.silent_parts import SilentPartStore
from hakiri_dagster.audit.status import StatusReader
from hakiri_dagster.audit.tables import TableReader, TableStore
from hakiri_dagster.errors import AuditError

SQLITE_FILE: Final = "audit.sqlite"


class AuditView:
    def __init__(self, transactions: Transactions) -> None:
        self._transactions = transactions
        self.chunks: ChunkReader = ChunkReader(transactions)
        self.cursors: CursorReader = CursorReader(transactions)
        self.cursor_history: CursorHistoryReader = CursorHistoryReader(transactions)
        self.runs: RunReader = RunReader(transactions)
        self.files: FileReader = FileReader(transactions)
        self.tables: TableReader = TableReader(transactions)
        self.alerts: AlertReader = AlertReader(transactions)
        self.schemas: SchemaReader = SchemaReader(transactions)
        self.rewinds: RewindReader = RewindReader(transactions)
        self.rate_budgets: RateBudgetReader = RateBudgetReader(transactions)
        self.deliveries: DeliveryReader = DeliveryReader(transactions)
        self.status = StatusReader(transactions)
        self.progress = ProgressReader(transactions)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, _kind: type[BaseException] | None, _error: BaseException | None, _trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        self._transactions.close()


class AuditDb(AuditView):
    chunks: ChunkStore
    cursors: CursorStore
    cursor_history: CursorHistoryStore
    runs: RunStore
    files: FileStore
    tables: TableStore
    alerts: AlertStore
    schemas: SchemaStore
    rewinds: RewindStore
    rate_budgets: RateBudgetStore
    deliveries: DeliveryStore

    def __init__(self, transactions: Transactions) -> None:
        super().__init__(transactions)
        self.chunks = ChunkStore(transactions)
        self.cursors = CursorStore(transactions)
        self.cursor_history = CursorHistoryStore(transactions)
        self.runs = RunStore(transactions)
        self.files = FileStore(transactions)
        self.tables = TableStore(transactions)
        self.alerts = AlertStore(transactions)
        self.schemas = SchemaStore(transactions)
        self.rewinds = RewindStore(transactions)
        self.holds = HoldStore(transactions)
        self.looks = LookStore(transactions)
        self.silent_parts = SilentPartStore(transactions)
        self.leases = LeaseStore(transactions)
        self.rate_budgets = RateBudgetStore(transactions)
        self.pass_places = PassPlaceStore(transactions)
        self.deliveries = DeliveryStore(transactions)
        self.renames = RenameStore(transactions)


def open_audit(url: str | None, state_dir: Path, *, patience: float | None = None) -> AuditDb:
    """PostgreSQL when a URL is given, else SQLite in `state_dir`. Brings the tables to this version. `patience`: how
    many seconds somebody else's lock is waited for."""
    if url is not None:
        return AuditDb(_migrated(postgres_transactions(url, patience)))
    return AuditDb(_migrated(sqlite_transactions(_writable(state_dir) / SQLITE_FILE, patience)))


def open_audit_view(url: str | None, state_dir: Path) -> AuditView:
    """A project that has no audit DB yet gets none: it looks empty."""
    if url is not None:
        return AuditView(_migrated(postgres_transactions(url)))
    path = state_dir / SQLITE_FILE
    return AuditView(_migrated(sqlite_transactions(path if path.exists() else None)))


def audit_address(url: str | None, state_dir: Path) -> AuditAddress:
    """Of an audit DB that was opened once, for other processes."""
    return AuditAddress(url, None if url is not None else str(state_dir.absolute() / SQLITE_FILE))


def _migrated(transactions: Transactions) -> Transactions:
    try:
        migrate(transactions)
    except BaseException:
        transactions.close()
        raise
    return transactions


def _writable(state_dir: Path) -> Path:
    try:
        state_dir.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise AuditError(
            f"the state folder cannot be made: {error.strerror}",
            where=str(state_dir),
            hint="check the folder's permissions, or give [audit] url",
        ) from error
    return state_dir
