"""Chunks that somebody wants loaded again, although nothing about them is new."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from hakiri_dagster.planning.chunks import Chunk
from hakiri_dagster.planning.rewind import stretches_of, uncovered_by_part
from hakiri_dagster.planning.states import ChunkState


def loaded_again(states: Iterable[ChunkState], chunks: Sequence[Chunk]) -> tuple[ChunkState, ...]:
    """What these chunks published no longer counts, so that they are owed whole. Their rows stay until replaced."""
    keys = {chunk.key for chunk in chunks}
    taken = stretches_of(chunk.bounds for chunk in chunks)
    return tuple(
        replace(state, status="pending", seen=None, cursor_committed=None)
        if state.key in keys and state.status == "done"
        else state
        for state in uncovered_by_part(states, taken)
    )
