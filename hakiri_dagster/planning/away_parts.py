"""Parts that the source refuses for now, such as one repository of many that is private now, or that it does not
answer for: what is known of them stays as it is until they can be read again, and the others go on."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from hakiri_dagster.planning.chunks import Chunk, Part
from hakiri_dagster.planning.parts import part_of
from hakiri_dagster.planning.states import ChunkState


def kept_chunks(states: Sequence[ChunkState], away: Collection[Part]) -> tuple[Chunk, ...]:
    """Theirs of the newest plan: no look at the source tells more."""
    newest = max((state.generation for state in states), default=0)
    kept = (s for s in states if s.generation == newest and s.status not in ("retired", "superseded"))
    return tuple(state.chunk for state in kept if part_of(state.bounds) in away)
