"""Claiming: a lease in the audit DB, a fence in the destination, and an end to what dead attempts left at work."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from typing import Final

from hakiri_dagster.audit.chunks import ChunkStore
from hakiri_dagster.audit.claims import BusyChunk, Claim, Claims, Failure, Outcome
from hakiri_dagster.audit.engine import since_boot
from hakiri_dagster.destinations.contract import Fence, LedgerEntry
from hakiri_dagster.engine.process_identity import is_dead
from hakiri_dagster.engine.spark import interrupt_attempt, is_remote
from hakiri_dagster.errors import HakiriError, LeaseLost, OutOfOrder
from hakiri_dagster.pipeline.remembering import remember
from hakiri_dagster.pipeline.retries import retried
from hakiri_dagster.pipeline.survey import Survey
from hakiri_dagster.pipeline.wanted import Wanted
from hakiri_dagster.pipeline.way import Way
from hakiri_dagster.planning.chunks import Slice
from hakiri_dagster.planning.publishers import ProjectClaim
from hakiri_dagster.planning.segments import number_of
from hakiri_dagster.planning.states import Due, DueSlice, committed_cursor
from hakiri_dagster.planning.turns import Turns, turns

_LOOKS_SECONDS: Final = 1.0


@dataclass(slots=True, eq=False)
class ClaimedSlice:
    """A slice that this worker alone may publish."""

    claim: Claim
    fence: Fence
    _store: ChunkStore
    settled: bool = field(default=False)

    @property
    def key(self) -> str:
        return self.claim.key

    @property
    def slice(self) -> Slice:
        return self.claim.due.slice

    @property
    def attempt(self) -> int:
        return self.claim.attempt

    def committed(self, cursor_max: int | None) -> int | None:
        return committed_cursor(self.claim.due, cursor_max)

    def done(self, entry: LedgerEntry) -> None:
        self.settled = True
        self._store.done(
            self.claim, Outcome(entry.rows, entry.bytes, entry.cursor_committed, entry.load_id, entry.token)
        )

    def failed(self, error: HakiriError) -> None:
        if self.settled:
            return  # published, and the audit DB could not be told: it believes the ledger, at the next look
        self.settled = True
        if not isinstance(error, LeaseLost):
            with suppress(LeaseLost):  # whoever has it now says how it goes on
                self._store.failed(self.claim, Failure(error.kind, str(error)))


@dataclass(frozen=True, slots=True)
class Claimed:
    """`waiting`: chunks of a table in order, by the chunk that each waits for."""

    slices: tuple[ClaimedSlice, ...]
    busy: tuple[BusyChunk, ...]
    overtaken: tuple[str, ...]
    waiting: Mapping[str, str]


@contextmanager
def claimed(way: Way, survey: Survey, wanted: Wanted) -> Iterator[Claimed]:
    """What is neither published nor failed at the end is given back."""
    owed = survey.owed(wanted)
    remember(way.audit, survey, owed)
    turn = _turn(survey, wanted, owed)
    waiting = dict(turn.on)
    if not turn.ready:
        yield Claimed((), (), (), waiting)
        return
    store = way.audit.chunks
    claims = _leased(way, turn.ready, [due.key for due in owed.busy])
    if survey.in_order:
        claims, behind = _first_in_turn(store, turn, claims)
        waiting |= behind
    ttl = way.settings.lease_ttl_seconds
    with kept_alive(lambda: store.heartbeat(claims.claimed, ttl), ttl):
        taken: tuple[ClaimedSlice, ...] = ()
        try:
            taken = _fenced(way, claims.claimed, owed.overtaken, survey.ownership.claim)
            yield Claimed(taken, claims.busy, claims.overtaken, waiting)
        finally:
            settled = {slice_.key for slice_ in taken if slice_.settled}
            _give_back(store, [claim for claim in claims.claimed if claim.key not in settled])


def _turn(survey: Survey, wanted: Wanted, owed: Due) -> Turns:
    slices = survey.meant(wanted, owed)
    if survey.shape == "segments":
        _refuse_later_segment(survey, wanted, owed, slices)
    if not survey.in_order:
        return Turns(tuple(slices))
    turn = turns((*owed.slices, *owed.busy), {due.key for due in slices})
    if turn.waiting and not wanted.due_only:
        first = turn.waiting[0].key
        raise OutOfOrder(
            f"chunk {first} comes after {turn.on[first]}, which is owed and not loaded yet: {_why_in_order(survey)}",
            where=survey.table.label,
            hint=f"load {turn.on[first]} first, or all that is due with `hakiri apply {survey.table.pipeline_id}`",
        )
    return turn


def _why_in_order(survey: Survey) -> str:
    if survey.table.in_order:
        return f"load mode {survey.table.mode} publishes in order"
    return f"a cursor of the kind {survey.source.hint.kind} is loaded in order within each stream"


def _refuse_later_segment(survey: Survey, wanted: Wanted, owed: Due, slices: Sequence[DueSlice]) -> None:
    """Where it begins is known when the one before it is published."""
    first = next((due.key for due in (*owed.slices, *owed.busy)), None)
    later = [key for key in wanted.keys if first is not None and number_of(key) > number_of(first)]
    if slices or wanted.due_only or not later or first is None:
        return
    raise OutOfOrder(
        f"{later[0]} comes after {first}, which is owed and not loaded yet: tokens can only be walked in order",
        where=survey.table.label,
        hint=f"load {first} first, or all that is due with `hakiri apply {survey.table.pipeline_id}`",
    )


def _first_in_turn(store: ChunkStore, turn: Turns, claims: Claims) -> tuple[Claims, dict[str, str]]:
    """Up to the first chunk that another run holds or has just worked on."""
    missed = {*(busy.key for busy in claims.busy), *claims.overtaken}
    ready = turns(turn.ready, {due.key for due in turn.ready} - missed)
    behind = {due.key for due in ready.waiting}
    _give_back(store, [claim for claim in claims.claimed if claim.key in behind])
    kept = {claim.key: claim for claim in claims.claimed if claim.key not in behind}
    ordered = tuple(kept[due.key] for due in ready.ready if due.key in kept)
    return replace(claims, claimed=ordered), dict(ready.on)


def _leased(way: Way, slices: Sequence[DueSlice], seen_held: Sequence[str]) -> Claims:
    return way.audit.chunks.claim(
        way.table.pipeline_id,
        way.table.name,
        slices,
        holder=way.holder,
        run_id=way.run_id,
        ttl_seconds=way.settings.lease_ttl_seconds,
        holder_is_dead=is_dead,
        seen_held=seen_held,
    )


def _fenced(
    way: Way, claims: Sequence[Claim], gone: Sequence[str], project: ProjectClaim | None
) -> tuple[ClaimedSlice, ...]:
    """Chunks that left the plan while somebody works on them are fenced as well: they may not publish any more."""
    if not claims:
        return ()
    if any(claim.dead for claim in claims) and is_remote(way.settings):
        _interrupt_dead(way, claims)
    keys = [key for claim in claims for key in (claim.key, *claim.due.supersedes)]
    fenced = list(dict.fromkeys([*keys, *gone]))
    fences = retried(way, lambda: way.destination.claim(way.table, fenced, way.holder, project))
    return tuple(ClaimedSlice(claim, fences[claim.key], way.audit.chunks) for claim in claims)


def _interrupt_dead(way: Way, claims: Sequence[Claim]) -> None:
    """Over Connect a killed client's tasks go on."""
    session = way.spark()
    for holder in {claim.dead.holder for claim in claims if claim.dead}:
        interrupt_attempt(session, spark_tag(holder))


def spark_tag(holder: str) -> str:
    """Tags may hold no comma."""
    return f"hakiri {holder}".replace(",", ";")


def _give_back(store: ChunkStore, claims: Sequence[Claim]) -> None:
    if claims:
        store.release(claims)


@contextmanager
def kept_alive(heartbeat: Callable[[], object], ttl_seconds: int) -> Iterator[None]:
    """Renews the leases until the block ends. A lease that was lost shows at publish, by the fence."""
    stop = threading.Event()
    every = ttl_seconds / 3

    def renew() -> None:
        beaten = since_boot()
        while not stop.wait(min(every, _LOOKS_SECONDS)):
            if since_boot() - beaten < every:  # it goes on while the machine sleeps, unlike what is waited for
                continue
            beaten = since_boot()
            with suppress(HakiriError):  # an audit DB that is away for a while: the next beat may reach it
                heartbeat()

    thread = threading.Thread(target=renew, name="lease-heartbeat", daemon=True)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join()
