"""The way of one row, in order:

survey → claim → pre-hooks → read → project → rules → stage ─┬→ candidate → prepare → validators → gates → publish
                                                             └→ quarantine           → audit DB → post-hooks

Each step lives in one module behind this file. Nothing here knows Dagster, a driver or a load mode.
"""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Generator, Iterator, Sequence
from contextlib import closing
from datetime import timedelta

from hakiri_dagster.connectors.contract import Discovery
from hakiri_dagster.destinations.contract import Target
from hakiri_dagster.destinations.refusals_contract import EmptySource, TooManyRowsRefused
from hakiri_dagster.engine.process_identity import where_it_ran
from hakiri_dagster.errors import HakiriError, RowsRefused, SourceThrottled
from hakiri_dagster.pipeline.ahead import in_order
from hakiri_dagster.pipeline.alerts import RaisedAlert, with_alerts
from hakiri_dagster.pipeline.claims import Claimed, ClaimedSlice, claimed
from hakiri_dagster.pipeline.cursor_note import note_cursor
from hakiri_dagster.pipeline.evolution import settle
from hakiri_dagster.pipeline.hooks_run import post_hooks, pre_hooks, staged_hooks
from hakiri_dagster.pipeline.long_transactions import report_long_transactions
from hakiri_dagster.pipeline.look import look
from hakiri_dagster.pipeline.misses import misses_told, tell_of_a_miss
from hakiri_dagster.pipeline.onward import astray
from hakiri_dagster.pipeline.outcomes import Outcome, of_rules
from hakiri_dagster.pipeline.ownership import adopt_published
from hakiri_dagster.pipeline.pass_place import place_of_a_pass
from hakiri_dagster.pipeline.passes import StagedSlice, passes, staged
from hakiri_dagster.pipeline.planner import refuse_what_cannot_load, reread_stretch
from hakiri_dagster.pipeline.publishing import Prepared, failed, outcomes_of, publish, refusal, warn
from hakiri_dagster.pipeline.refused_changes import tell_of_refused_changes
from hakiri_dagster.pipeline.retries import Retries, retried
from hakiri_dagster.pipeline.row_counts import tell_of_an_unusual_row_count
from hakiri_dagster.pipeline.row_refusals import nothing_left, too_many_refused
from hakiri_dagster.pipeline.run_record import recorded
from hakiri_dagster.pipeline.set_aside import SetAside, keep_set_aside, set_aside
from hakiri_dagster.pipeline.shapes import parallelism_of
from hakiri_dagster.pipeline.steps import ChunkStep, FailedChunk, PreparedChunk, SkippedChunk
from hakiri_dagster.pipeline.survey import Survey
from hakiri_dagster.pipeline.truncated_timestamps import truncation_warning
from hakiri_dagster.pipeline.unchecked_keys import tell_of_unchecked_keys
from hakiri_dagster.pipeline.unread_parts import chunks_of_unread_parts, tell_of_unread_parts
from hakiri_dagster.pipeline.wanted import Wanted
from hakiri_dagster.pipeline.way import Way
from hakiri_dagster.planning.parts import part_name
from hakiri_dagster.planning.phases import Phase
from hakiri_dagster.planning.segments import number_of

Step = ChunkStep | RaisedAlert


def run_chunks(way: Way, wanted: Wanted) -> Generator[Step]:
    """Yields each chunk as it gets ready. Whoever takes a PreparedChunk publishes it before asking for the next, which
    does not depend on what became of it."""
    with way.trace.run(way, wanted.published_by), recorded(way):
        yield from with_alerts(way, way.trace.steps(_chunks(way, wanted)))


def _chunks(way: Way, wanted: Wanted) -> Generator[ChunkStep]:
    with misses_told(way):
        survey = _look(way)
        if survey.ownership.adopted:
            refuse_what_cannot_load(survey)
            adopt_published(way.table, way.destination, survey.ownership)
            survey = _look(way)
    wanted = survey.goes_on(wanted)
    claims = yield from _claimed_and_loaded(way, survey, wanted, is_first=True)
    while survey.shape == "segments" and claims.slices:
        onward = _look(way, survey.discovery)
        if onward.due_keys == (claims.slices[0].key,):
            break  # the source has no more, or the segment was not published
        survey = onward
        claims = yield from _claimed_and_loaded(way, survey, wanted.of_next(survey.due_keys), is_first=False)
    tell_of_a_miss(way, survey)
    tell_of_an_unusual_row_count(way, survey)
    report_long_transactions(way, survey)
    tell_of_unchecked_keys(way)
    if way.totals.truncated:
        way.observer.warned(way.table, truncation_warning(way.totals.truncated))
    if way.totals.chunks or not (claims.busy or claims.overtaken):  # else they are the affair of who holds them
        yield from post_hooks(way)
    tell_of_unread_parts(way, survey)


def _look(way: Way, found: Discovery | None = None) -> Survey:
    patience = timedelta(seconds=way.settings.transaction_wait_seconds)
    return retried(
        way,
        lambda: look(way.table, way.source, way.destination, way.audit, way.spark, found, patience=patience),
    )


def _claimed_and_loaded(
    way: Way, survey: Survey, wanted: Wanted, *, is_first: bool
) -> Generator[ChunkStep, None, Claimed]:
    tell_of_refused_changes(way, survey)
    refuse_what_cannot_load(survey)
    with claimed(way, survey, wanted) as claims:
        way.trace.claimed(survey, claims)
        yield from _not_loaded(way, survey, wanted, claims)
        if claims.slices:
            yield from _load(way, survey, claims.slices, with_hooks=is_first)
            note_cursor(way, survey)
    return claims


def _not_loaded(way: Way, survey: Survey, wanted: Wanted, claims: Claimed) -> Iterator[ChunkStep]:
    unread = tuple(chunks_of_unread_parts(way, survey, wanted))
    yield from unread
    held = {busy.key: f"another run holds it ({where_it_ran(busy.holder)})" for busy in claims.busy}
    held |= dict.fromkeys(claims.overtaken, "another run has just worked on it")
    for key, reason in held.items():
        way.observer.skipped(way.table, key, reason)
        yield SkippedChunk(key, reason, published=False, held=True)
    for key, on in claims.waiting.items():
        yield SkippedChunk(key, _waits(on), published=False, held=on in held)
    told = {*(s.key for s in claims.slices), *(step.key for step in unread), *held, *claims.waiting}
    walked = claims.slices[0].key if survey.shape == "segments" and claims.slices else None
    for key in wanted.keys:
        # those after the one that is walked are walked anew, one by one
        if key not in told and (walked is None or number_of(key) < number_of(walked)):
            yield SkippedChunk(key, "nothing is new: its rows are published, or the source has none", published=True)


def _waits(on: str) -> str:
    return f"it waits for chunk {on}, which comes before it"


def _stopped(way: Way, survey: Survey, claim: ClaimedSlice) -> bool:
    """Chunks that go in order stop at the first of their part that fails, be it at its publish, of which `totals`
    tell; all stop where the source wants to be left alone."""
    return way.totals.throttled or (survey.in_order and part_name(claim.key) in way.totals.failed_parts)


def _load(way: Way, survey: Survey, slices: Sequence[ClaimedSlice], *, with_hooks: bool) -> Iterator[ChunkStep]:
    broken = [(claim, error) for claim in slices if (error := survey.broken(claim.slice)) is not None]
    yield from (failed(way, claim, error) for claim, error in broken)
    readable = [claim for claim in slices if not claim.settled]
    if not readable:
        return
    target = retried(way, lambda: survey.target_in(way.destination))
    if not target.retyped:
        _settle(way, survey)
    obstacle = (yield from pre_hooks(way, readable)) if with_hooks else None
    if obstacle is not None:
        yield from (failed(way, claim, obstacle) for claim in readable)
        return
    for group in passes(readable, way.source.slices_a_pass):
        going = [claim for claim in group if not _stopped(way, survey, claim)]
        if going:
            with place_of_a_pass(way):
                yield from _load_pass(way, survey, target, going, Retries(way))
    if target.retyped and way.totals.chunks:
        _settle(way, survey)
    why = "the source wants to be left alone" if way.totals.throttled else "a chunk before it failed"
    left = (claim.key for claim in readable if not claim.settled and _stopped(way, survey, claim))
    yield from (SkippedChunk(key, f"{why}, so it stays pending", published=False) for key in left)


def _settle(way: Way, survey: Survey) -> None:
    """From here on the source's columns are those that the target has followed."""
    retried(way, lambda: settle(way.audit, way.table, survey.followed, run_id=way.run_id))


def _load_pass(
    way: Way, survey: Survey, target: Target, group: Sequence[ClaimedSlice], retries: Retries
) -> Iterator[ChunkStep]:
    """One pass over the source, committed chunk by chunk. A lost engine costs what is not prepared yet. What is read
    once more by itself has been tried again with the others: `retries` are of all of them."""
    left = list(group)
    while left:
        try:
            with closing(_steps(way, survey, target, tuple(left))) as steps:
                for claim, step in steps:
                    left.remove(claim)
                    yield step
                    if any(_stopped(way, survey, other) for other in left):
                        break  # what was read of its part is not published; the others are read once more
            left = [claim for claim in left if not _stopped(way, survey, claim)]
        except HakiriError as error:
            if retries.again(error):
                continue
            if survey.in_order:
                first = {part_name(claim.key): claim for claim in reversed(left)}
                yield from (failed(way, claim, error) for claim in first.values())
            elif isinstance(error, SourceThrottled) or len(apart := _apart(way, survey, left)) == 1:
                yield from (failed(way, claim, error) for claim in left)
            else:  # the others need not wait for one that cannot be read
                for claims in apart:
                    yield from _load_pass(way, survey, target, claims, retries)
            return


def _apart(way: Way, survey: Survey, claims: Sequence[ClaimedSlice]) -> list[list[ClaimedSlice]]:
    """By what may fail to be read by itself: a file, a window that the source is asked for by itself, or a part of the
    table."""
    asked_apart = survey.shape == "files" or way.source.slices_a_pass is not None
    by_source: dict[str, list[ClaimedSlice]] = defaultdict(list)
    for claim in claims:
        by_source[claim.key if asked_apart else part_name(claim.key)].append(claim)
    return list(by_source.values())


def _steps(
    way: Way, survey: Survey, target: Target, group: Sequence[ClaimedSlice]
) -> Generator[tuple[ClaimedSlice, ChunkStep]]:
    phase = survey.phase
    ahead = parallelism_of(way.table, way.source.hint) if way.destination.parallel_prepare(way.table, target) else 1
    with way.trace.reading(len(group)) as read, staged(way, survey, target, group) as stage:
        stage.when_read(read)
        stage.tally_source(way.destination)  # before a load locks its target
        prepared = in_order(
            stage.slices,
            lambda slice_: _prepare(way, slice_),
            ahead=ahead,
            abandon=lambda prepared: prepared.load.undo(),
            hurry=stage.stop_reading,
        )
        for slice_, outcome in prepared:
            if isinstance(outcome, Prepared) or slice_.was_read():
                way.totals.rows_read.append(slice_.report.rows + slice_.report.bad_rows)
            if isinstance(outcome, EmptySource):
                yield slice_.claimed, _nothing_to_load(way, survey, slice_, outcome)
            elif isinstance(outcome, HakiriError):
                stage.raise_if_reading_failed()
                yield slice_.claimed, failed(way, slice_.claimed, outcome, *_known_by_then(way, slice_, outcome))
            else:
                yield slice_.claimed, _ready(way, survey, target, outcome, phase)


def _prepare(way: Way, slice_: StagedSlice) -> Prepared:
    """Copies the candidate where no reader sees it; keeps what could not be stored, whatever becomes of the rest."""
    way.trace.began(slice_.claimed.key)
    started = time.monotonic()
    try:
        load = retried(
            way, lambda: way.destination.prepare(slice_.load, slice_.candidate), unless=slice_.reading_failed
        )
    except TooManyRowsRefused as error:
        keep_set_aside(way, slice_, error.refused)
        raise too_many_refused(way.table, error) from error
    for note in load.notes:
        way.observer.warned(way.table, note)
    try:
        found = keep_set_aside(way, slice_, load.refused)
        hooks = staged_hooks(way, slice_.load, load)
    except BaseException:
        load.undo()
        raise
    return Prepared(slice_, load, hooks, found, time.monotonic() - started)


def _known_by_then(way: Way, slice_: StagedSlice, error: HakiriError) -> tuple[tuple[Outcome, ...], SetAside | None]:
    if not isinstance(error, RowsRefused):
        return (), None
    outcomes = of_rules(slice_.load.table, slice_.report)
    warn(way, slice_.claimed, outcomes)
    return outcomes, set_aside(slice_)


def _nothing_to_load(way: Way, survey: Survey, slice_: StagedSlice, empty: EmptySource) -> FailedChunk:
    """The source has no row, or none is left of those that it has."""
    aside = keep_set_aside(way, slice_) if slice_.report.bad_rows else set_aside(slice_)
    outcomes = outcomes_of(survey, slice_, aside, empty.answers)
    warn(way, slice_.claimed, outcomes)
    return failed(way, slice_.claimed, nothing_left(way.table, aside) if aside.rows else empty, outcomes, aside)


def _ready(way: Way, survey: Survey, target: Target, prepared: Prepared, phase: Phase) -> ChunkStep:
    claim = prepared.slice.claimed
    try:
        prepared.outcomes = outcomes_of(survey, prepared.slice, prepared.set_aside, prepared.load.answers)
    except BaseException:
        prepared.load.undo()
        raise
    warn(way, claim, prepared.outcomes)
    refused = astray(survey, prepared.slice) or refusal(prepared)
    if refused is not None:
        prepared.load.undo()
        return failed(way, claim, refused, prepared.outcomes, prepared.set_aside)
    return PreparedChunk(
        table=way.table,
        key=claim.key,
        target=target,
        rows=prepared.load.rows,
        seconds=prepared.seconds,
        hooks=prepared.hooks,
        profile=prepared.slice.profile,
        rewound=survey.rewound.get(claim.key),
        phase=phase,
        reread=reread_stretch(survey),
        publish=lambda: publish(way, survey, prepared),
    )
