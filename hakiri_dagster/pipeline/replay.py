"""Rows out of the quarantine into the target, if they pass today. The way of one of them:

quarantine → hold its chunk → read → project → rules → stage ─┬→ candidate → prepare ─┬→ validators → gates → publish
                                                              └───────────────────────┴→ stays, for the reason of today

It leaves the quarantine in the transaction that publishes it, and joins the rows that its chunk has published, as a
further slice of it. What the chunk owes, how far it has come and when it was loaded stay as they are.
"""

from __future__ import annotations

import time
from collections.abc import Container, Iterable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

from hakiri_dagster.destinations.contract import BadRow, Destination, LedgerEntry, Load, PreparedLoad, Target
from hakiri_dagster.destinations.quarantine_contract import KeptChoice, Replay
from hakiri_dagster.errors import DestinationError, HakiriError
from hakiri_dagster.manifest.rule_spec import RowRule
from hakiri_dagster.manifest.tables import Table
from hakiri_dagster.pipeline.attempt_folders import new_attempt_folder, remove_attempt
from hakiri_dagster.pipeline.evolution import settle
from hakiri_dagster.pipeline.holding import HeldChunk, held
from hakiri_dagster.pipeline.hooks_run import HookRun, owed_by, post_hooks, pre_hooks
from hakiri_dagster.pipeline.kept_parts import WrittenParts, write_parts
from hakiri_dagster.pipeline.kept_reading import kept_reading
from hakiri_dagster.pipeline.look import look
from hakiri_dagster.pipeline.paced import paced
from hakiri_dagster.pipeline.passes import SLICES_A_PASS, read_rows, stage
from hakiri_dagster.pipeline.planner import refuse_what_cannot_load
from hakiri_dagster.pipeline.refused_changes import tell_of_refused_changes
from hakiri_dagster.pipeline.remembering import remember
from hakiri_dagster.pipeline.replay_gates import asked_of_table, raise_if_a_gate_stops
from hakiri_dagster.pipeline.replay_verdicts import ReplayedChunk, StagedVerdicts
from hakiri_dagster.pipeline.retries import Retries, retried
from hakiri_dagster.pipeline.slices import Splitter
from hakiri_dagster.pipeline.survey import Survey
from hakiri_dagster.pipeline.way import Way
from hakiri_dagster.planning.chunks import Chunk, Slice
from hakiri_dagster.planning.replays import KeptOfLoad, LeftAlone, LiveLoad, ReplayChunk, objection, plan_replay

ReplayStep = ReplayedChunk | LeftAlone | HookRun


@dataclass(frozen=True, slots=True)
class Tries:
    """What a replay would try, as quarantine and ledger tell. `left` is said of all if it would try nothing."""

    kept: tuple[KeptOfLoad, ...]
    left: tuple[LeftAlone, ...]
    any: bool


def tries(destination: Destination, table: Table, choice: KeptChoice) -> Tries:
    """Moves nothing, and asks neither the source nor Spark."""
    kept = tuple(destination.kept_by_load(table, choice))
    chunks, left = plan_replay(table, kept, None)
    wrong = objection(table)
    if chunks and wrong is not None:
        raise DestinationError(f"rows of its quarantine cannot be replayed: {wrong}", where=table.label)
    return Tries(kept, left, bool(chunks))


def replay(way: Way, choice: KeptChoice, kept: Sequence[KeptOfLoad]) -> Iterator[ReplayStep]:
    """Yields each chunk when it is done."""
    table = way.table
    survey = retried(way, lambda: look(table, way.source, way.destination, way.audit, way.spark))
    tell_of_refused_changes(way, survey)
    refuse_what_cannot_load(survey)
    chunks, left = plan_replay(table, kept, survey.shape)
    yield from left
    if survey.target is None:
        rows = sum(chunk.rows for chunk in chunks)
        yield LeftAlone("the target is not there: the next apply makes it, and loads their chunks", rows)
        return
    if chunks:
        remember(way.audit, survey, survey.due)
        yield from _replay_chunks(way, survey, choice, {chunk.key: chunk for chunk in chunks})
    yield from post_hooks(way)


def _replay_chunks(
    way: Way, survey: Survey, choice: KeptChoice, chunks: dict[str, ReplayChunk]
) -> Iterator[ReplayStep]:
    with held(way, list(chunks)) as hold:
        for key, reason in hold.others.items():
            yield LeftAlone(reason, chunks[key].rows)
        if not hold.chunks:
            return
        target = retried(way, lambda: survey.target_in(way.destination))
        settle(way.audit, way.table, survey.followed, run_id=way.run_id)
        obstacle = yield from pre_hooks(way, hold.chunks)
        if obstacle is not None:
            yield from (_failed(way, chunk.key, obstacle) for chunk in hold.chunks)
            return
        work = _Work(way, survey, target, choice, chunks)
        for start in range(0, len(hold.chunks), SLICES_A_PASS):
            yield from work.pass_over(hold.chunks[start : start + SLICES_A_PASS])


@dataclass(frozen=True, slots=True)
class _Work:
    way: Way
    survey: Survey
    target: Target
    choice: KeptChoice
    chunks: dict[str, ReplayChunk]

    def pass_over(self, group: Sequence[HeldChunk]) -> Iterator[ReplayedChunk]:
        """What is transient is tried again from the quarantine on: somebody may have been there meanwhile."""
        left = list(group)
        retries = Retries(self.way)
        while left:
            try:
                for chunk, done in self._tried(tuple(left)):
                    left.remove(chunk)
                    yield done
            except HakiriError as error:
                if not retries.again(error):
                    yield from (_failed(self.way, chunk.key, error) for chunk in left)
                    return

    def _tried(self, group: Sequence[HeldChunk]) -> Iterator[tuple[HeldChunk, ReplayedChunk]]:
        way = self.way
        chunks = [self.chunks[chunk.key] for chunk in group]
        beside = {chunk.key: way.destination.live_loads(way.table, chunk.bounds) for chunk in chunks}
        directory = new_attempt_folder(way.candidates, way.table, way.holder)
        try:
            live = {one.load_id for loads in beside.values() for one in loads}
            written = self._written(chunks, live, directory)
            if not written.parts:
                yield from ((chunk, ReplayedChunk(chunk.key)) for chunk in group)
                return
            reading = kept_reading(way.spark(), self.survey, chunks, beside, written)
            rules = tuple(map(_told_of, way.table.validation.row_level))
            rows = read_rows(way, reading, self.survey.schema, Splitter(single=True), rules)
            fences = [chunk.fence for chunk in group]
            staging = stage(way, self.target, rows, self.survey.schema, fences, directory)
            try:
                for place, chunk in enumerate(group):
                    yield chunk, self._chunk_done(chunk, beside[chunk.key], StagedVerdicts(staging, place, written))
            finally:
                staging.close()
        finally:
            remove_attempt(directory)

    def _written(self, chunks: Sequence[ReplayChunk], live: Container[int], directory: Path) -> WrittenParts:
        """A load may have been replaced since the chunks were planned."""
        loads = [load_id for chunk in chunks for load_id in chunk.loads if load_id in live]
        places = {chunk.key: place for place, chunk in enumerate(chunks)}
        with closing(self.way.destination.kept_lines(self.way.table, self.choice, loads)) as lines:
            return write_parts(lines, places, directory)

    def _chunk_done(self, held: HeldChunk, beside: Sequence[LiveLoad], verdicts: StagedVerdicts) -> ReplayedChunk:
        started = time.monotonic()
        verdicts.raise_if_reading_failed()
        load = self._load(held, beside, verdicts.columns)
        try:
            entry, refused = self._published(load, verdicts)
        except HakiriError as error:
            if error.kind == "transient":
                raise
            return _failed(self.way, held.key, error)
        return verdicts.summed_up(held.key, entry, refused, time.monotonic() - started)

    def _published(self, load: Load, verdicts: StagedVerdicts) -> tuple[LedgerEntry | None, Iterable[BadRow]]:
        """Also the rows that the destination refuses."""
        destination = self.way.destination
        if not verdicts.rows:
            destination.note_verdicts(load, verdicts, ())
            return None, ()
        candidate = paced(self.way, verdicts.candidate, load.slice.chunk.key)
        prepared = destination.prepare_replay(load, candidate, verdicts)
        if prepared.rows:
            return self._committed(load, verdicts, prepared), prepared.refused
        prepared.undo()
        destination.note_verdicts(load, verdicts, prepared.refused)
        return None, prepared.refused

    def _committed(self, load: Load, verdicts: StagedVerdicts, prepared: PreparedLoad) -> LedgerEntry:
        way, key = self.way, load.slice.chunk.key
        try:
            raise_if_a_gate_stops(way, key, prepared)
            for note in (*prepared.notes, *verdicts.discarded(key)):
                way.observer.warned(way.table, note)
        except BaseException:
            prepared.undo()
            raise
        entry = prepared.publish(None, verdicts.candidate.bytes, owed_by(way, prepared))
        way.totals.chunks += 1
        way.totals.rows += entry.rows
        return entry

    def _load(self, held: HeldChunk, beside: Sequence[LiveLoad], columns: tuple[str, ...]) -> Load:
        bounds = self.chunks[held.key].bounds
        attempts = {state.key: state.attempts for state in self.survey.states}
        return Load(
            table=self.way.table,
            slice=Slice(Chunk(held.key, bounds), bounds),
            fence=held.fence,
            run_id=self.way.run_id,
            attempt=attempts.get(held.key, 0),
            target=self.target,
            columns=columns,
            occasion=self.way.occasion,
            asked=asked_of_table(self.way.table),
            replay=Replay(
                beside=frozenset(one.load_id for one in beside),
                of=frozenset(one.load_id for one in beside if one.chunk_key == held.key),
            ),
        )


def _told_of(rule: RowRule) -> RowRule:
    """A row that breaks a rule which stops a load stays where it is, and stops none of the others."""
    return rule.model_copy(update={"on_fail": "skip"}) if rule.on_fail == "abort" else rule


def _failed(way: Way, key: str, error: HakiriError) -> ReplayedChunk:
    way.totals.errors.append(error)
    return ReplayedChunk(key, error=error)
