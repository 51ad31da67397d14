"""The last steps of a chunk that is prepared: gates, publish, audit DB.

The commit point is the destination's ledger; the audit DB follows. A crash in between is repaired by `look`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from hakiri_dagster.destinations.contract import LedgerEntry, LoadAnswers, PreparedLoad
from hakiri_dagster.errors import HakiriError, RowsRefused
from hakiri_dagster.pipeline.claims import ClaimedSlice
from hakiri_dagster.pipeline.hooks_run import HookRun, owed_by, staged_hooks
from hakiri_dagster.pipeline.outcomes import Outcome, of_rules, of_validators
from hakiri_dagster.pipeline.paced import waited_ms
from hakiri_dagster.pipeline.passes import StagedSlice
from hakiri_dagster.pipeline.retries import retried
from hakiri_dagster.pipeline.row_refusals import refused_by_gates, refused_for_rows
from hakiri_dagster.pipeline.set_aside import SetAside, keep_set_aside
from hakiri_dagster.pipeline.steps import FailedChunk, PublishedChunk
from hakiri_dagster.pipeline.survey import Survey
from hakiri_dagster.pipeline.way import Way


@dataclass(slots=True)
class Prepared:
    """A slice whose rows are where no reader sees them. Another try to publish it changes what is known of it."""

    slice: StagedSlice
    load: PreparedLoad
    hooks: tuple[HookRun, ...]
    set_aside: SetAside
    seconds: float
    outcomes: tuple[Outcome, ...] = ()


def outcomes_of(survey: Survey, slice_: StagedSlice, aside: SetAside, answers: LoadAnswers) -> tuple[Outcome, ...]:
    """Of all rules and validators, not only up to the first that fails."""

    def is_newest() -> bool:
        return slice_.claimed.key in survey.newest_keys

    at_source = slice_.at_source(answers)
    return (
        *of_rules(slice_.load.table, slice_.report),
        *of_validators(slice_, aside, answers, at_source, is_newest=is_newest),
    )


def refusal(prepared: Prepared) -> RowsRefused | None:
    slice_, aside = prepared.slice, prepared.set_aside
    table, key = slice_.load.table, slice_.claimed.key
    return refused_by_gates(table, prepared.outcomes) or refused_for_rows(
        table, key, aside, only_chunk=slice_.only_chunk
    )


def warn(way: Way, claim: ClaimedSlice, outcomes: Sequence[Outcome]) -> None:
    for outcome in outcomes:
        if outcome.warning is not None:
            way.observer.warned(way.table, f"chunk {claim.key}: {outcome.warning}")


def publish(way: Way, survey: Survey, prepared: Prepared) -> PublishedChunk | FailedChunk:
    claim = prepared.slice.claimed
    try:
        entry = _committed(way, survey, prepared)
        retried(way, lambda: claim.done(entry))
    except HakiriError as error:
        return failed(way, claim, error, prepared.outcomes, prepared.set_aside)
    prepared.slice.forget_files()
    way.totals.chunks += 1
    way.totals.rows += entry.rows
    way.totals.bytes += entry.bytes
    way.totals.truncated.update(prepared.set_aside.truncated)
    way.observer.published(way.table, claim.key, rows=entry.rows, quarantined=prepared.set_aside.rows)
    replaces = tuple(prepared.load.replaces)
    return PublishedChunk(claim.key, entry, prepared.set_aside, prepared.outcomes, waited_ms(way, claim.key), replaces)


def _committed(way: Way, survey: Survey, prepared: Prepared) -> LedgerEntry:
    """Another try prepares anew: the transaction that held the rows is gone."""
    slice_ = prepared.slice
    ready = [prepared.load]

    def commit() -> LedgerEntry:
        load = ready.pop() if ready else _prepared_anew(way, survey, prepared)
        cursor = slice_.claimed.committed(slice_.report.cursor_max)
        return load.publish(cursor, slice_.report.bytes, owed_by(way, load), slice_.report.onward)

    return retried(way, commit)


def _prepared_anew(way: Way, survey: Survey, prepared: Prepared) -> PreparedLoad:
    """What was published since may have changed what the gates say, and which rows the destination refuses. Hooks
    run again, for what they did went with the lost transaction; those of the first try were told."""
    slice_ = prepared.slice
    load = way.destination.prepare(slice_.load, slice_.candidate)
    try:
        if load.refused.rows or prepared.load.refused.rows:
            prepared.set_aside = keep_set_aside(way, slice_, load.refused)
        staged_hooks(way, slice_.load, load)
        known = prepared.outcomes
        prepared.load = load
        prepared.outcomes = outcomes_of(survey, slice_, prepared.set_aside, load.answers)
        warn(way, slice_.claimed, [outcome for outcome in prepared.outcomes if outcome not in known])
        refused = refusal(prepared)
        if refused is not None:
            raise refused
    except BaseException:
        load.undo()
        raise
    return load


def failed(
    way: Way,
    claim: ClaimedSlice,
    error: HakiriError,
    outcomes: tuple[Outcome, ...] = (),
    aside: SetAside | None = None,
) -> FailedChunk:
    claim.failed(error)
    way.totals.note_failed(claim.key, error)
    way.observer.failed(way.table, claim.key, error)
    return FailedChunk(claim.key, error, outcomes, aside)
