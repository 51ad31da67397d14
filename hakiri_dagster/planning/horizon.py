"""The horizon of a source: below which cursor position no row can still appear.

Rows become visible in the order in which their transactions commit, not in the order of their cursors. A load that
trusts the highest cursor it saw loses the rows of every transaction that was open while it read. So each survey notes
the highest cursor together with the transactions that are open then. The position of such an observation is safe as
soon as all of them have ended: what began later stamps its rows with higher values, and what ended earlier is visible.

Transactions are told apart by their identity, never by comparing clocks, which may jump. Positions are integers as in
`chunks`; clocks are microseconds since 1970 by the source's own clock. Pure.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from hakiri_dagster.planning.chunks import CursorKind
from hakiri_dagster.planning.local_time import LONGEST_STEP, longest_step_back
from hakiri_dagster.planning.windows import DAY, HOUR, MINUTE

DEFAULT_LOOKBACK: Final = 5 * MINUTE
"""How long a transaction is assumed to last at most where the open ones cannot be listed."""
DEFAULT_LOOKBACK_IDS: Final = 10_000
"""The same for a number, before any observation is that old."""
EARLIEST_STAMP: Final = HOUR
"""How long before its transaction began a row may be stamped, where no observation tells how far the cursor was."""
FARTHEST_ZONE: Final = 14 * HOUR
"""How far a time without a zone may be from UTC, as which it is read."""
LAST_ZONE: Final = 12 * HOUR
"""A day ends last so long after it has ended in UTC."""
MARGIN: Final = 1_000_000
"""A transaction takes its time a moment before the server lists it."""
_CLOCK_DRIFT: Final = 5_000
"""Two clocks that nobody sets differ after a while by one part of so many."""
_MOST_OBSERVATIONS: Final = 24


@dataclass(frozen=True, slots=True)
class OpenTransaction:
    """A transaction that may still write. `key` identifies it for as long as its server runs.

    `began_at` is None where the source does not tell. A prepared transaction has no process; `began_at` is then when it
    was prepared, which may be long after it began.
    """

    key: str
    began_at: int | None = None
    pid: int | None = None
    application: str = ""
    user: str = ""
    state: str = ""
    prepared: str | None = None

    @property
    def description(self) -> str:
        if self.prepared is not None:
            return f"prepared transaction {self.prepared!r} of {self.user}"
        application = f" ({self.application})" if self.application else ""
        return f"pid {self.pid}{application} of {self.user}"


@dataclass(frozen=True, slots=True)
class UnknownHorizon:
    """Why the source cannot tell which of its transactions are open, and which grant or setting helps."""

    reason: str
    hint: str


@dataclass(frozen=True, slots=True)
class SourceTransactions:
    """The transactions that are open at a source right after its extent was read.

    `clock` is the source's; that of a replica is how far it has come with what its primary did. `place` identifies the
    database. `wal` is how far its log has come: a replica that has replayed less must not be read for what this one has
    shown.
    """

    clock: int
    place: str
    open: tuple[OpenTransaction, ...] = ()
    unknown: UnknownHorizon | None = None
    wal: str | None = None
    is_replica: bool = False


@dataclass(frozen=True, slots=True)
class CursorObservation:
    """The highest cursor that a survey saw. `pending` are the transactions that were open then and still are.

    An observation is `exact` if all open transactions could be listed.
    """

    position: int
    clock: int
    pending: frozenset[str] = frozenset()
    exact: bool = True


@dataclass(frozen=True, slots=True)
class CursorHistory:
    """What earlier surveys of a table observed, oldest first.

    `prepared` are the prepared transactions of the newest survey. `reread` is the stretch that the next load reads
    again: its rows are fingerprinted, so that late ones show. `clock` and `saved_at` are the source's and our clock
    then, in microseconds. `went_back_to` is where the source's clock began again, until the chunk states say that what
    follows is to be read again. `wal` and `wal_clock` tell how far the server had come that was surveyed last.
    """

    place: str = ""
    observations: tuple[CursorObservation, ...] = ()
    prepared: frozenset[str] = frozenset()
    reread: Reread | None = None
    kind: CursorKind | None = None
    clock: int | None = None
    saved_at: int | None = None
    went_back_to: int | None = None
    wal: str | None = None
    wal_clock: int | None = None


@dataclass(frozen=True, slots=True)
class Reread:
    """The stretch of the cursor that the next load reads again, `[lower, …)`; None: from the beginning."""

    lower: int | None
    because_of: tuple[OpenTransaction, ...] = ()


@dataclass(frozen=True, slots=True)
class Lookback:
    """What a survey of a table with a cursor has to know, so that rows that come late show.

    `lag` is what the operator has declared, in positions. `patience`: for how long (in microseconds) open transactions
    are awaited, where the table has no safe position yet. A survey that does not judge the horizon only fingerprints
    the stretch that is to be read again.
    """

    history: CursorHistory = field(default_factory=CursorHistory)
    lag: int | None = None
    patience: int = 0
    judges: bool = True


@dataclass(frozen=True, slots=True)
class Horizon:
    """How far a table's cursor is complete. `safe` is None where no position is; `history` is to be saved.

    `unknown`: why it is not known which transactions are open, or since when.
    """

    transactions: SourceTransactions
    history: CursorHistory
    safe: int | None
    unknown: UnknownHorizon | None = None

    @property
    def clock_went_back_to(self) -> int | None:
        return self.history.went_back_to

    def reread(self, newest: int | None, lag: int | None) -> Reread | None:
        """The stretch that the load after this one reads again; None if there is none."""
        if newest is None:
            return None
        if self.safe is None:
            return Reread(None, self.transactions.open)
        lower = min(self.safe, newest) - (lag or 0)
        if lower >= newest:
            return None
        return Reread(lower, self.transactions.open if self.safe < newest else ())


def judge_horizon(
    history: CursorHistory,
    transactions: SourceTransactions,
    upper: int | None,
    kind: CursorKind,
    *,
    observes: bool = True,
    trusts_lag: bool = False,
    zoned: bool = True,
    saved_now: int | None = None,
) -> Horizon:
    """Return up to where the cursor is complete in any snapshot taken from now on.

    `upper` is the highest cursor of the extent that was read before `transactions` were listed, if it was; without
    `observes` it is of an earlier observation. `trusts_lag`: the operator has said how late rows come, which takes the
    place of the default lookback. `zoned`: a timestamp is a moment, and not what some session's clock shows.
    """
    if history.place != transactions.place:
        history = CursorHistory(transactions.place)
    went_back_to = _clock_before_jump(history, transactions, saved_now)
    if went_back_to is not None:
        history = _after_jump(history, transactions, went_back_to, kind)
    known = _without_ended(history, transactions)
    own = (_observe(upper, transactions, kind, zoned=zoned),) if observes and upper is not None else ()
    usable = [
        _position(one, transactions, kind, zoned=zoned)
        for one in (*known.observations, *own)
        if _is_usable(one, transactions)
    ]
    safe = max(usable) if usable else _assumed_position(transactions, upper, kind, zoned=zoned)
    unknown = transactions.unknown or (None if usable else _unknown_by_prepared(transactions, kind))
    if transactions.unknown is not None and trusts_lag:
        safe = upper
    if safe is not None and kind == "timestamp":
        safe = min(safe, transactions.clock - MARGIN)
    if safe is not None and kind == "date":
        safe = min(safe, transactions.clock - MARGIN - LAST_ZONE) // DAY * DAY
    observations = _thin_out(_without_outdated((*known.observations, *own), transactions))
    saved = replace(
        known,
        observations=observations,
        kind=kind,
        clock=history.clock if transactions.is_replica else transactions.clock,
        saved_at=history.saved_at if transactions.is_replica else saved_now,
        wal=history.wal if transactions.wal is None else transactions.wal,
        wal_clock=history.wal_clock if transactions.wal is None else transactions.clock,
    )
    return Horizon(transactions, saved, safe, unknown)


def may_be_awaited(horizon: Horizon, patience: int) -> bool:
    """Tell whether no position is known to be safe, and the transactions in the way are likely to end soon."""
    transactions = horizon.transactions
    if transactions.unknown is not None or not transactions.open:
        return False
    if any(not one.pending for one in horizon.history.observations if one.exact):
        return False
    return all(
        one.prepared is None and one.began_at is not None and transactions.clock - one.began_at < patience
        for one in transactions.open
    )


def _after_jump(
    history: CursorHistory, transactions: SourceTransactions, went_back_to: int, kind: CursorKind
) -> CursorHistory:
    """What was observed of times may be stamped a second time. Numbers go on as if nothing had happened."""
    if kind == "numeric":
        clock = transactions.clock
        return replace(
            history, observations=tuple(replace(one, clock=min(one.clock, clock)) for one in history.observations)
        )
    earliest = went_back_to if history.went_back_to is None else min(went_back_to, history.went_back_to)
    return CursorHistory(history.place, prepared=history.prepared, reread=history.reread, went_back_to=earliest)


def _observe(upper: int, transactions: SourceTransactions, kind: CursorKind, *, zoned: bool) -> CursorObservation:
    """A time is observed with a margin: a transaction has taken its time a moment before it is listed."""
    position = upper
    if kind == "timestamp":
        position = min(upper, transactions.clock - MARGIN) if zoned else min(upper, transactions.clock) - MARGIN
    pending = frozenset(one.key for one in transactions.open)
    return CursorObservation(position, transactions.clock, pending, transactions.unknown is None)


def _position(
    observation: CursorObservation, transactions: SourceTransactions, kind: CursorKind, *, zoned: bool
) -> int:
    """Below this nothing is stamped that was not visible when it was observed."""
    if kind != "timestamp" or zoned:
        return observation.position
    return observation.position - longest_step_back(observation.clock - LONGEST_STEP, transactions.clock)


def _is_usable(observation: CursorObservation, transactions: SourceTransactions) -> bool:
    """What is open has to have begun later. Its identity tells, and so does its beginning: one that is chained to
    another (`COMMIT AND CHAIN`) may begin, as it says itself, while the other still commits."""
    if any(one.began_at is not None and one.began_at <= observation.clock for one in transactions.open):
        return False
    if observation.exact and transactions.unknown is None:
        return not observation.pending
    return observation.clock < transactions.clock - DEFAULT_LOOKBACK


def _unknown_by_prepared(transactions: SourceTransactions, kind: CursorKind) -> UnknownHorizon | None:
    """When a transaction began is forgotten as soon as it is prepared. Surveys that saw it begin know better, and of a
    number all is read again."""
    waiting = [one for one in transactions.open if one.prepared is not None]
    if not waiting or kind == "numeric":
        return None
    return UnknownHorizon(
        f"{waiting[0].description} was prepared before the first survey, and the source does not tell when it began",
        "commit it or roll it back, or set `load.lag` to more than the time that it took until it was prepared",
    )


def _without_ended(history: CursorHistory, transactions: SourceTransactions) -> CursorHistory:
    """A backend that is gone may have prepared its transaction: what was prepared meanwhile takes its place."""
    still_open = {one.key for one in transactions.open}
    prepared = {one.key for one in transactions.open if one.prepared is not None}
    if transactions.unknown is not None:
        return history
    fresh = prepared - history.prepared

    def pending(before: frozenset[str]) -> frozenset[str]:
        left = before & still_open
        return left | fresh if before - left - history.prepared else left

    observations = tuple(replace(one, pending=pending(one.pending)) for one in history.observations)
    return replace(history, observations=observations, prepared=frozenset(prepared))


def _without_outdated(
    observations: Sequence[CursorObservation], transactions: SourceTransactions
) -> tuple[CursorObservation, ...]:
    """What was usable once stays so: before the newest usable one none is needed."""
    usable = [index for index, one in enumerate(observations) if _is_usable(one, transactions)]
    return tuple(observations[usable[-1] if usable else 0 :])


def _thin_out(observations: Sequence[CursorObservation]) -> tuple[CursorObservation, ...]:
    """While one transaction stays open for hours, the oldest and the newest observations matter most."""
    if len(observations) <= _MOST_OBSERVATIONS:
        return tuple(observations)
    middle = observations[1:-2]
    return (observations[0], *middle[::2], *observations[-2:])


def _assumed_position(
    transactions: SourceTransactions, upper: int | None, kind: CursorKind, *, zoned: bool
) -> int | None:
    """Where no observation helps: times are stamped by clocks, and of a number nothing is known."""
    if upper is None:
        return None
    if transactions.unknown is not None:
        if kind == "numeric":
            return upper - DEFAULT_LOOKBACK_IDS
        return min(upper, transactions.clock - DEFAULT_LOOKBACK)
    if kind == "numeric":
        return None
    began = [_began_at(one, transactions.clock) for one in transactions.open]
    earliest = EARLIEST_STAMP + (0 if zoned else FARTHEST_ZONE)
    return min(upper, min(began, default=transactions.clock) - earliest)


def _began_at(transaction: OpenTransaction, clock: int) -> int:
    began = clock if transaction.began_at is None else transaction.began_at
    return began if transaction.prepared is None else began - DEFAULT_LOOKBACK


def _clock_before_jump(history: CursorHistory, transactions: SourceTransactions, saved_now: int | None) -> int | None:
    """Where the source's clock may have begun again, if it has come less far than ours since the last survey.

    Replicas are behind each other all the time.
    """
    if transactions.is_replica or history.clock is None:
        return None
    elapsed = 0 if saved_now is None or history.saved_at is None else max(0, saved_now - history.saved_at)
    if transactions.clock >= history.clock + elapsed - elapsed // _CLOCK_DRIFT - MARGIN:
        return None
    return transactions.clock - elapsed - MINUTE
