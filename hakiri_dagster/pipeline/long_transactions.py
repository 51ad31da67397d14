"""Transactions that are open at a source for long: while they are, each load reads again what came since they began."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import timedelta

from hakiri_dagster.audit.alerts import Alert
from hakiri_dagster.connectors.contract import Discovery
from hakiri_dagster.manifest.durations import parse_duration
from hakiri_dagster.manifest.tables import Table
from hakiri_dagster.pipeline.alerts import raise_alert
from hakiri_dagster.pipeline.cursor_note import shown_position
from hakiri_dagster.pipeline.shapes import lag_of
from hakiri_dagster.pipeline.survey import Survey
from hakiri_dagster.pipeline.way import Way
from hakiri_dagster.planning.chunks import CursorKind, CursorRange
from hakiri_dagster.planning.horizon import DEFAULT_LOOKBACK_IDS, Horizon, OpenTransaction
from hakiri_dagster.planning.states import Due, DueSlice


@dataclass(frozen=True, slots=True)
class LongTransaction:
    """A transaction that is open for longer than `load.max_lag`, and holds a table's cursor back to `reread_from`."""

    transaction: OpenTransaction
    age: timedelta
    reread_from: str
    max_lag: str
    waits: bool

    @property
    def message(self) -> str:
        effect = f"each load reads again from {self.reread_from} on"
        if self.waits:
            effect = f"loads of what came since {self.reread_from} wait for its end"
        return (
            f"{self.transaction.description} has been in a transaction at the source for {self.age} "
            f"({self.transaction.state or 'prepared'}; max_lag is {self.max_lag}): {effect}"
        )

    @property
    def alert(self) -> Alert:
        """One a transaction, however many loads it concerns."""
        one = self.transaction
        details = {
            "pid": one.pid,
            "prepared": one.prepared,
            "application": one.application,
            "user": one.user,
            "state": one.state,
            "open_for_seconds": round(self.age.total_seconds()),
            "reread_from": self.reread_from,
        }
        return Alert("long_transaction", self.message, details=details, subject=one.key)


def find_long_transactions(table: Table, discovery: Discovery) -> tuple[LongTransaction, ...]:
    """Return the transactions that hold the table's cursor back for longer than `load.max_lag`, the oldest first."""
    horizon, extent, kind = discovery.horizon, discovery.extent, discovery.cursor_kind
    if horizon is None or extent is None or kind is None:
        return ()
    reread = horizon.reread(extent.newest, lag_of(table))
    if reread is None:
        return ()
    begins = "its beginning" if reread.lower is None else str(shown_position(kind, reread.lower))
    found = []
    for one in sorted(reread.because_of, key=lambda one: one.began_at or 0):
        age = timedelta(microseconds=0 if one.began_at is None else horizon.transactions.clock - one.began_at)
        if age > parse_duration(table.load.max_lag):
            age = timedelta(seconds=round(age.total_seconds()))
            waits = table.load.on_max_lag == "wait"
            found.append(LongTransaction(one, age, begins, table.load.max_lag, waits))
    return tuple(found)


def leave_out_open_windows(due: Due) -> Due:
    """Windows that a transaction may still add rows to stay pending, the others are loaded."""
    waiting = tuple(one.key for one in due.slices if _is_open_window(one))
    return replace(due, slices=tuple(one for one in due.slices if not _is_open_window(one)), waiting=waiting)


def _is_open_window(due: DueSlice) -> bool:
    bounds = due.slice.bounds
    return isinstance(bounds, CursorRange) and bounds.interval.upper is not None and not due.settles


def warn_of_unknown_horizon(table: Table, discovery: Discovery) -> Iterator[str]:
    """A declared lag is the operator's answer."""
    if discovery.horizon is None or table.load.lag is not None:
        return
    unknown = discovery.horizon.unknown
    if unknown is not None:
        yield (
            f"{unknown.reason}, so that each load reads {lookback_of(discovery.horizon, discovery.cursor_kind)} again, "
            f"and misses rows of transactions that are open for longer; {unknown.hint}"
        )


def lookback_of(horizon: Horizon, kind: CursorKind | None) -> str:
    """What is read again where it is not known which transactions are open, or since when."""
    if horizon.transactions.unknown is None:
        return "what came since an hour before that"
    if kind == "numeric":
        return f"what came in the last 5 minutes, and at first the last {DEFAULT_LOOKBACK_IDS:,} ids,"
    return "the last 5 minutes"


def report_long_transactions(way: Way, survey: Survey) -> None:
    for one in find_long_transactions(survey.table, survey.discovery):
        raise_alert(way, one.alert)
