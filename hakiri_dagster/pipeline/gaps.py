"""Gaps: what of a table was published and is not there any more, and what heals it."""

from __future__ import annotations

from collections.abc import Iterator
from shlex import quote

from hakiri_dagster.destinations.contract import Destination
from hakiri_dagster.pipeline.cursor_note import shown_position
from hakiri_dagster.pipeline.retries import retried
from hakiri_dagster.pipeline.survey import Survey
from hakiri_dagster.pipeline.way import Way
from hakiri_dagster.planning.chunks import FIRST_POSITION, LAST_POSITION, CursorKind
from hakiri_dagster.planning.gaps import Gap, Vanished, stretches, to_be_there

_TOLD = 3


def lost_loads(way: Way, survey: Survey) -> tuple[int, ...]:
    """Asked where the ledger has lost what the audit DB remembers, or knows nothing of a target that is there."""
    lost = any(state.gap for state in survey.states) or not survey.ledger
    if survey.target is None or not lost:
        return ()
    return tuple(retried(way, lambda: way.destination.unknown_loads(way.table)))


def gaps_of(survey: Survey, destination: Destination) -> tuple[Gap, ...]:
    """For whoever plans. What the destination is asked costs a fraction of a second, so ticks do not ask it."""
    due = set(survey.due_keys)
    lost = [state for state in survey.states if state.gap and state.key in due]
    loads = [state.load_id for state in lost if state.load_id is not None]
    elsewhere = destination.loads_elsewhere(survey.table, loads) if loads else {}
    owed = [Gap(s.key, s.load_id, owed=True, published_to=elsewhere.get(s.load_id or 0)) for s in lost]
    return (*owed, *_vanished(survey, destination, due))


def _vanished(survey: Survey, destination: Destination, due: set[str]) -> Iterator[Gap]:
    """Rows that `hard_delete` has deleted are meant to be gone."""
    table = survey.table
    if survey.target is None or table.load.hard_delete is not None:
        return
    there = {row.load_id: row.chunk_key for row in to_be_there(survey.ledger) if row.chunk_key not in due}
    gone = set(destination.without_rows(table, there.keys())) if there else set()
    yield from (Gap(key, load_id, owed=False) for load_id, key in there.items() if load_id in gone)


def told_gaps(survey: Survey, gaps: tuple[Gap, ...]) -> Iterator[str]:
    """Of rows that are gone: nothing loads them again by itself, for whoever deleted them may have meant to."""
    keys = {gap.key for gap in gaps if not gap.owed}
    chunks = [state.chunk for state in survey.states if state.key in keys]
    found = stretches(sorted(chunks, key=lambda chunk: chunk.key))
    for vanished in found[:_TOLD]:
        yield f"{_which(vanished)} published, and no row is in the target any more; {_cure(survey, vanished)}"
    if len(found) > _TOLD:
        yield f"so it is with {sum(len(one.keys) for one in found[_TOLD:])} more chunk(s)"


def _which(vanished: Vanished) -> str:
    keys = vanished.keys
    return f"chunk {keys[0]} is" if len(keys) == 1 else f"{len(keys)} chunks, {keys[0]} to {keys[-1]}, are"


def _them(vanished: Vanished) -> str:
    return "it" if len(vanished.keys) == 1 else "them"


def _cure(survey: Survey, vanished: Vanished) -> str:
    table, kind = survey.table, survey.discovery.cursor_kind
    if vanished.stretch is None or kind is None:
        key = quote(vanished.keys[0])
        return f"to load it again: hakiri run {table.pipeline_id} --table {table.name} --chunk {key}"
    lower, upper = vanished.stretch.lower, vanished.stretch.upper
    part = "" if vanished.part is None else f" --part {quote(vanished.part.value)}"
    return (
        f"to load {_them(vanished)} again: hakiri backfill rewind {table.pipeline_id} --table {table.name}{part}"
        f" --from {_edge(kind, lower, FIRST_POSITION)} --to {_edge(kind, upper, LAST_POSITION)} --reason WHY"
    )


def _edge(kind: CursorKind, position: int | None, unbounded: int) -> str | int:
    if position is not None:
        return shown_position(kind, position)
    return unbounded if kind == "numeric" else "0001-01-01" if unbounded == FIRST_POSITION else "9999-12-31"
