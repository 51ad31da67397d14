"""Hooks around the load of a table: once a run, in the order of the manifest.

pre_hooks → the rows move → staged_hooks (where the mode loads a relation of its own) → publish → post_hooks

What a publish owes is remembered with it, so that a crash before the post-hooks costs nothing but time.
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Collection, Generator, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from typing import Protocol

from hakiri_dagster.audit.alerts import Alert
from hakiri_dagster.destinations.contract import Fence, Load, PreparedLoad
from hakiri_dagster.destinations.hooks_contract import Attempt, Relation
from hakiri_dagster.errors import HakiriError, HookFailed, HooksBusy, HookUnavailable
from hakiri_dagster.hooks.context import HookContext, Phase
from hakiri_dagster.hooks.kinds import run
from hakiri_dagster.hooks.surroundings import Surroundings
from hakiri_dagster.manifest.tables import Table
from hakiri_dagster.pipeline.alerts import raise_alert
from hakiri_dagster.pipeline.phase_session import PhaseSession
from hakiri_dagster.pipeline.retries import retried
from hakiri_dagster.pipeline.way import Way
from hakiri_dagster.planning.hooks import HookName, NamedHook, OwedHook, named, to_run


@dataclass(frozen=True, slots=True)
class HookRun:
    """What became of one hook. An error that `warns` stops nothing."""

    phase: Phase
    name: str
    seconds: float
    lines: tuple[str, ...] = ()
    error: HakiriError | None = None
    warns: bool = False


class Fenced(Protocol):
    """A chunk that this worker alone may publish into."""

    @property
    def key(self) -> str: ...

    @property
    def fence(self) -> Fence: ...


def pre_hooks(way: Way, slices: Sequence[Fenced]) -> Generator[HookRun, None, HakiriError | None]:
    """Answers why nothing may be loaded, if so."""
    hooks = named(way.table.load.pre_hook)
    context = _context(way.table, "pre_hook", way.run_id, [slice_.key for slice_ in slices])
    with PhaseSession(way, Attempt(slices[0].key, slices[0].fence.token)) as session:
        for hook in hooks:
            ran = _run(way, hook, context, session, _target(way.table), way.run_id, consequence=_NOTHING_LOADED)
            yield ran
            if ran.error is not None and not ran.warns:
                return ran.error
    return None


def staged_hooks(way: Way, load: Load, prepared: PreparedLoad) -> tuple[HookRun, ...]:
    """The SQL that names the table, on the relation that is about to take its place. Raises what stops the publish."""
    if prepared.place is None:
        return ()
    hooks = named(way.table.load.post_hook)
    context = _context(way.table, "post_hook", way.run_id, [load.slice.chunk.key], prepared.rows, load.fence.load_id)
    runs = []
    with PhaseSession(way, Attempt(load.slice.chunk.key, load.fence.token)) as session:
        for hook in to_run(hooks, [hook.name.key for hook in hooks if hook.names_the_table]):
            load_id = str(load.fence.load_id)
            ran = _run(way, hook, context, session, prepared.place, load_id, consequence=_NOTHING_LOADED)
            if ran.error is not None and not ran.warns:
                raise ran.error
            runs.append(ran)
    return tuple(runs)


def owed_by(way: Way, prepared: PreparedLoad) -> tuple[HookName, ...]:
    hooks = named(way.table.load.post_hook)
    return tuple(hook.name for hook in hooks if prepared.place is None or not hook.names_the_table)


def post_hooks(way: Way) -> Iterator[HookRun]:
    """What published loads owe, this run's and those of runs that came to no good end. A failed chunk keeps it owed."""
    hooks = named(way.table.load.post_hook)
    if not (owed := _owed(way, hooks)):
        return
    if way.totals.errors:
        why = "a chunk failed, so the post-hooks of what is published stay owed until all of a run's chunks are"
        raise_alert(way, _of_owed(owed, why, "failed chunk"))
        return
    with PhaseSession(way, attempt=None) as session:
        try:
            session.open()
        except HooksBusy as busy:
            raise_alert(way, _of_owed(owed, f"post-hooks stay owed: {busy.what}", "busy"))
            return
        yield from _settled(way, hooks, session)


def _settled(way: Way, hooks: Sequence[NamedHook], session: PhaseSession) -> Iterator[HookRun]:
    owed = _owed(way, hooks)
    for hook in to_run(hooks, owed):
        debt = owed.get(hook.name.key)
        context = _context_of(way, debt.load_ids if debt is not None else ())
        occasion = occasion_of(context.load_ids)
        ran = _run(way, hook, context, session, _target(way.table), occasion, consequence=_STAYS_OWED)
        if ran.error is not None and not ran.warns:
            way.totals.errors.append(ran.error)
            way.observer.stopped(way.table, ran.error)
            yield ran
            return
        if debt is not None:
            retried(way, partial(way.destination.settle_hook, way.table, debt))
        yield ran


def occasion_of(load_ids: Collection[int]) -> str:
    """Which loads a hook is told of: another key for others, of whatever number, so that no receiver drops them."""
    ids = ",".join(map(str, sorted(load_ids)))
    return ids if len(load_ids) < 2 else hashlib.sha256(ids.encode()).hexdigest()[:16]


def _of_owed(owed: Mapping[str, OwedHook], why: str, subject: str) -> Alert:
    details = {"hooks": [hook.name.text for hook in owed.values()]}
    return Alert("hooks_owed", why, subject=subject, details=details)


def _owed(way: Way, hooks: Collection[NamedHook]) -> dict[str, OwedHook]:
    """By key. One that the manifest has no more is owed no more, also if it comes back."""
    known = {hook.name.key for hook in hooks}
    owed = {hook.name.key: hook for hook in retried(way, lambda: way.destination.owed_hooks(way.table))}
    for key in owed.keys() - known:
        retried(way, partial(way.destination.settle_hook, way.table, owed.pop(key)))
    return owed


def _run(
    way: Way,
    hook: NamedHook,
    context: HookContext,
    session: PhaseSession,
    relation: Relation,
    occasion: str,
    *,
    consequence: str,
) -> HookRun:
    """`consequence`: of a failure."""
    table = way.table
    key = f"{table.pipeline_id}/{table.name}/{context.target}/{context.phase}/{hook.name.key[:12]}/{occasion}"
    around = Surroundings(context, relation, session.execute, way.settings, key)
    started = time.monotonic()
    lines: Sequence[str] = ()
    error: HakiriError | None = None
    try:
        lines = retried(way, lambda: run(hook.hook, around))
    except HakiriError as cause:
        error = _failure(table, context.phase, hook, cause, consequence)
    ran = HookRun(
        context.phase,
        hook.name.text,
        time.monotonic() - started,
        tuple(lines),
        error,
        warns=hook.hook.on_error == "warn",
    )
    if error is None:
        way.observer.hook_ran(table, ran.name)
    elif ran.warns:
        raise_alert(way, Alert("hook_warning", error.what, subject=ran.name, details={"phase": ran.phase}))
    return ran


_NOTHING_LOADED = "nothing was loaded"
_STAYS_OWED = "the hook is owed until it succeeds"


def _failure(table: Table, phase: Phase, hook: NamedHook, cause: HakiriError, consequence: str) -> HookFailed:
    kind = HookUnavailable if cause.kind == "transient" else HookFailed
    consequence = "" if hook.hook.on_error == "warn" else f"; {consequence}"
    where = f" ({cause.where})" if cause.where and cause.where != table.label else ""
    return kind(
        f"{phase} `{hook.name.text}` failed{consequence}: {cause.what}{where}", where=table.label, hint=cause.hint
    )


def _target(table: Table) -> Relation:
    return table.target_schema, table.target_name


def _context(
    table: Table, phase: Phase, run_id: str, chunks: Sequence[str], rows: int | None = None, *load_ids: int
) -> HookContext:
    return HookContext(
        pipeline=table.pipeline_id,
        table=table.name,
        target=".".join(_target(table)),
        phase=phase,
        run_id=run_id,
        rows=rows,
        chunks=tuple(chunks),
        load_ids=load_ids,
        at=datetime.now(UTC),
    )


def _context_of(way: Way, load_ids: Sequence[int]) -> HookContext:
    """As the ledger knows the loads, so that it is told alike however often it is told."""
    entries = retried(way, lambda: way.destination.ledger(way.table, load_ids))
    loads = sorted((e for e in entries if e.load_id in load_ids), key=lambda entry: entry.load_id)
    return HookContext(
        pipeline=way.table.pipeline_id,
        table=way.table.name,
        target=".".join(_target(way.table)),
        phase="post_hook",
        run_id=loads[-1].run_id if loads else way.run_id,
        rows=sum(entry.rows for entry in loads),
        chunks=tuple(dict.fromkeys(entry.chunk_key for entry in loads)),
        load_ids=tuple(load_ids),
        at=loads[-1].published_at if loads else datetime.now(UTC),
    )
