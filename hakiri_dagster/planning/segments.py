"""Segments of a source that can only be walked in order, by tokens that nobody but the source understands.

A segment begins where the token of the one before leads, and its own token is known when it is published. So one is
planned ahead of those that are, and what comes after one that is walked again has to be walked again as well.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import count
from typing import Final

from hakiri_dagster.planning.chunks import Chunk, Segment, Slice
from hakiri_dagster.planning.states import ChunkState, Due, DueSlice, to_be_stored

END: Final = ""
"""In the place of a token: the source has no more. What it has later comes in the same segment."""


_KEY = re.compile(r"segment-([0-9]{6,})")


def segment_key(number: int) -> str:
    return f"segment-{number:06d}"


def is_segment(key: str) -> bool:
    return _KEY.fullmatch(key) is not None


def number_of(key: str) -> int:
    """By which segments are ordered: their keys sort as texts up to the last of six digits only. 0 is before all."""
    found = _KEY.fullmatch(key)
    return 0 if found is None else int(found[1])


def plan_segments(states: Iterable[ChunkState]) -> tuple[Chunk, ...]:
    """Those that are published, one after the other, and the next: or the last again, where the source had no more.

    A table that was cut otherwise in between is walked anew: rows of its segments have given way to what came since.
    """
    known = {state.key: state for state in states}
    others = (s.load_id or 0 for s in known.values() if not isinstance(s.bounds, Segment) and s.has_published)
    since = max(others, default=0)
    chunks: list[Chunk] = []
    after: str | None = None
    for number in count(1):
        chunk = Chunk(segment_key(number), Segment(number, after))
        chunks.append(chunk)
        state = known.get(chunk.key)
        if state is None or state.status != "done" or state.bounds != chunk.bounds or not state.token:
            break
        if (state.load_id or 0) < since:
            break
        after = state.token
    return tuple(chunks)


def due_segments(states: Iterable[ChunkState]) -> Due:
    """The last of the plan. The rows of those that come after it go with its publish."""
    known = {state.key: state for state in states}
    *done, last = plan_segments(known.values())
    newest = max((state.generation for state in known.values()), default=1)
    state = known.get(last.key, ChunkState(last.key, last.bounds, generation=newest))
    owed = DueSlice(Slice(last, last.bounds), state.attempts, supersedes=_later(last, known))
    planned = {chunk.key for chunk in done} | {last.key, *owed.supersedes}
    gone = [state for key, state in known.items() if key not in planned]
    left = to_be_stored((replace(s, status="retired") for s in gone if s.status in ("pending", "failed")), known)
    overtaken = tuple(state.key for state in known.values() if state.key not in planned and state.status == "running")
    if state.status == "running":
        return Due(busy=(owed,), done=tuple(done), states=left, overtaken=overtaken)
    wanted = replace(state, bounds=last.bounds, status="failed" if state.status == "failed" else "pending")
    return Due(slices=(owed,), done=tuple(done), states=(*to_be_stored([wanted], known), *left), overtaken=overtaken)


def _later(chunk: Chunk, known: Mapping[str, ChunkState]) -> tuple[str, ...]:
    assert isinstance(chunk.bounds, Segment)
    number = chunk.bounds.number
    later = (s for s in known.values() if isinstance(s.bounds, Segment) and s.bounds.number > number)
    live = (s.key for s in later if s.load_id is not None and s.status not in ("superseded", "retired"))
    return tuple(sorted(live, key=number_of))


def leads_back(token: str, segment: Segment, chunks: Sequence[Chunk]) -> int | None:
    """The number of the segment that begins with the token already: such a walk would never end."""
    before = (chunk.bounds for chunk in chunks if isinstance(chunk.bounds, Segment))
    starts = {one.after: one.number for one in (*before, segment) if one.number <= segment.number}
    return starts.get(token)
