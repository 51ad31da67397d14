"""Rewinding: what is published of a stretch of the cursor is asked for again, by somebody and for a reason.

Nothing is loaded or deleted here. The chunks are pending from now on, and their rows stay until a load replaces them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import assert_never

from hakiri_dagster.audit.claims import BusyChunk
from hakiri_dagster.audit.rewinds import RewindAnswer, RewindRequest
from hakiri_dagster.connectors.contract import SourceTable
from hakiri_dagster.engine.process_identity import ProcessIdentity, is_dead, where_it_ran
from hakiri_dagster.errors import ChunkBusy, UsageError
from hakiri_dagster.manifest.tables import Table
from hakiri_dagster.pipeline.cursor_note import shown_position
from hakiri_dagster.pipeline.remembering import remember
from hakiri_dagster.pipeline.runtime import Runtime
from hakiri_dagster.pipeline.shapes import shape_of
from hakiri_dagster.pipeline.survey import Survey
from hakiri_dagster.planning.chunks import NULL_KEY, OUTSIDE_KEY, CursorKind, CursorRange, Interval
from hakiri_dagster.planning.intervals import high, low
from hakiri_dagster.planning.parts import bare_key
from hakiri_dagster.planning.rewind import Reach, reach
from hakiri_dagster.planning.stretch import parse_stretch

_LONGEST_REASON = 1000
_TRIES = 5


@dataclass(frozen=True, slots=True)
class Wish:
    """What somebody asks for, as it is written. `parts`: of which alone; none: of all there are."""

    lower: str
    upper: str
    reason: str
    asked_by: str
    parts: frozenset[str] = frozenset()

    def __post_init__(self) -> None:
        if not self.reason.strip():
            raise UsageError("--reason is empty", hint="say why: it is kept, and shown with the rows that are loaded")
        if len(self.reason) > _LONGEST_REASON or not self.reason.isprintable():
            raise UsageError(f"--reason is one line of at most {_LONGEST_REASON} characters")


def refuse_without_cursor(table: Table, source: SourceTable) -> None:
    """Asks nobody."""
    again = f"hakiri run {table.pipeline_id} --table {table.name}"
    match shape_of(table, source):
        case "cursor":
            return
        case "full":
            why = f"load mode {table.mode} loads the table whole" if table.cursor else "the table has no cursor"
            raise UsageError(
                f"there is no stretch of it to rewind: {why}",
                where=table.label,
                hint=f"`{again} --chunk full` loads it again",
            )
        case "files":
            raise UsageError(
                "there is no stretch of it to rewind: its chunks are files",
                where=table.label,
                hint=f"`{again} --chunk KEY` loads a file again; `hakiri plan` and the UI show the keys",
            )
        case "segments":
            raise UsageError(
                "there is no stretch of it to rewind: its chunks are segments of pages",
                where=table.label,
                hint=f"`{again} --chunk segment-000001` walks it again from there on, and replaces what comes after",
            )
        case other:
            assert_never(other)


def refuse_unknown_parts(table: Table, source: SourceTable, parts: frozenset[str]) -> None:
    known = [part.value for part in source.hint.parts]
    unknown = sorted(parts.difference(known))
    if unknown:
        raise UsageError(
            f"it has no part {', '.join(unknown)}",
            where=table.label,
            hint=f"its parts are {', '.join(known)}" if known else "it has no partition keys; leave --part out",
        )


def stretch_of(survey: Survey, wish: Wish) -> Interval:
    kind = survey.discovery.cursor_kind
    if kind is None:
        raise UsageError("nothing is planned of it, for its source is empty", where=survey.table.label)
    return parse_stretch(wish.lower, wish.upper, kind, survey.table.label)


def reached(survey: Survey, stretch: Interval, parts: frozenset[str] = frozenset()) -> Reach:
    """As the survey knows the chunks; those that were never planned are among them."""
    after = {state.key: state for state in (*survey.states, *survey.due.states)}
    return reach(tuple(after.values()), stretch, parts)


def rewind(runtime: Runtime, survey: Survey, stretch: Interval, wish: Wish) -> RewindAnswer:
    """All chunks of the stretch or none. A dead attempt may wake up: it is fenced before, and the ledger is asked after
    that what it has published."""
    request = RewindRequest(
        pipeline_id=survey.table.pipeline_id,
        table=survey.table.name,
        stretch=stretch,
        written=(wish.lower, wish.upper),
        reason=wish.reason.strip(),
        asked_by=wish.asked_by,
        planned=planned_keys(survey),
        fenced=frozenset(),
        parts=wish.parts,
    )
    return _rewind(runtime, survey, request)


def rewind_chunks(runtime: Runtime, survey: Survey, keys: Sequence[str], *, reason: str, asked_by: str) -> RewindAnswer:
    """Make the named chunks pending, in one rewind: those of `null`, of a file or of a whole table, too."""
    named = [
        chunk.bounds.interval for chunk in survey.chunks if chunk.key in keys and isinstance(chunk.bounds, CursorRange)
    ]
    ordered = sorted(named, key=low)
    request = RewindRequest(
        pipeline_id=survey.table.pipeline_id,
        table=survey.table.name,
        stretch=Interval(ordered[0].lower, max(ordered, key=high).upper) if ordered else Interval(None, None),
        written=(keys[0], keys[-1]),
        reason=reason,
        asked_by=asked_by,
        planned=planned_keys(survey),
        fenced=frozenset(),
        keys=frozenset(keys),
    )
    return _rewind(runtime, survey, request)


def _rewind(runtime: Runtime, survey: Survey, request: RewindRequest) -> RewindAnswer:
    table, audit = survey.table, runtime.audit
    for _ in range(_TRIES):
        remember(audit, survey, survey.due)
        answer = audit.rewinds.rewind(request, is_dead)
        if answer.busy:
            raise _busy(table, answer.busy)
        if not answer.unfenced:
            return answer
        runtime.destination(table).claim(table, answer.unfenced, str(ProcessIdentity.current()))
        survey = runtime.survey(table)
        request = replace(request, fenced=request.fenced | set(answer.unfenced), planned=planned_keys(survey))
    raise _busy(table, [BusyChunk(key, None) for key in answer.unfenced])


def planned_keys(survey: Survey) -> frozenset[str] | None:
    """None for files: what they hold is all there is, so a window that none of them reaches any more is emptied."""
    return None if survey.from_files else frozenset(chunk.key for chunk in survey.chunks)


def _busy(table: Table, busy: Sequence[BusyChunk]) -> ChunkBusy:
    who = ", ".join(dict.fromkeys(where_it_ran(chunk.holder) for chunk in busy))
    keys = busy[0].key if len(busy) == 1 else f"{busy[0].key} … {busy[-1].key}"
    return ChunkBusy(
        f"{len(busy)} chunk(s) are being loaded ({keys}), by {who}, with rows that may have been read before they "
        "changed; nothing was rewound",
        where=table.label,
        hint="wait until that is done, or stop it, and rewind again",
    )


def nothing_there(survey: Survey, wish: Wish) -> UsageError:
    return UsageError(
        f"no chunk lies between {wish.lower} and {wish.upper}",
        where=survey.table.label,
        hint=_covered(survey),
    )


def _covered(survey: Survey) -> str:
    kind = survey.discovery.cursor_kind
    windows = [
        chunk.bounds.interval
        for chunk in survey.chunks
        if isinstance(chunk.bounds, CursorRange) and bare_key(chunk.key) not in (NULL_KEY, OUTSIDE_KEY)
    ]
    if kind is None or not windows:
        return "the plan has no chunk: the source has no row with a cursor"
    lower, upper = min(windows, key=low).lower, max(windows, key=high).upper
    reach = f"from {_edge(kind, lower, 'its beginning')} up to {_edge(kind, upper, 'its end')}"
    return f"the plan covers {len(windows)} chunk(s), {reach}"


def _edge(kind: CursorKind, position: int | None, unbounded: str) -> str:
    return unbounded if position is None else str(shown_position(kind, position))
