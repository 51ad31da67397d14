"""Which loads the rows of a chunk came with until now, for whoever wants to follow one load to the next."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from hakiri_dagster.destinations.contract import LedgerEntry
from hakiri_dagster.pipeline.survey import Survey
from hakiri_dagster.planning.chunks import Bounds, CursorRange
from hakiri_dagster.planning.intervals import high, low
from hakiri_dagster.planning.states import ChunkState, DueSlice


@dataclass(frozen=True, slots=True)
class EarlierLoads:
    _states: Mapping[str, ChunkState]
    _ledger: Mapping[int, LedgerEntry]

    @classmethod
    def of(cls, survey: Survey) -> EarlierLoads:
        return cls({state.key: state for state in survey.states}, {entry.load_id: entry for entry in survey.ledger})

    def replaced_by(self, due: DueSlice, told: Sequence[int] = ()) -> tuple[LedgerEntry, ...]:
        """As audit DB and ledger tell before the load, and those that the destination has `told`. A slice that goes on
        from a mark replaces none of them."""
        states = (self._states.get(key) for key in (due.key, *due.supersedes))
        ids = dict.fromkeys(load_id for state in states if state is not None for load_id in _load_ids(state))
        entries = (self._ledger[load_id] for load_id in dict.fromkeys((*ids, *told)) if load_id in self._ledger)
        return tuple(e for e in entries if e.load_id in told or _covers(due.slice.bounds, e.bounds))


def _load_ids(state: ChunkState) -> tuple[int, ...]:
    return state.carried_from or (() if state.load_id is None else (state.load_id,))


def _covers(bounds: Bounds, earlier: Bounds) -> bool:
    if not (isinstance(bounds, CursorRange) and isinstance(earlier, CursorRange)):
        return True
    if bounds.part != earlier.part:
        return False
    whole, part = bounds.interval, earlier.interval
    return low(whole) <= low(part) and high(part) <= high(whole)
