"""Which files a table owes its source, where every file is a chunk by its content."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from hakiri_dagster.planning.chunks import Chunk, Slice, SourceFile
from hakiri_dagster.planning.states import ChunkState, Due, DueSlice, to_be_stored


def due_files(desired: Sequence[Chunk], states: Iterable[ChunkState]) -> Due:
    """A renamed file is known by its content; a rewritten one supersedes; a missing one keeps its rows."""
    known = {state.key: state for state in states}
    published = {file.content_hash: s for s in known.values() if s.status == "done" and (file := _file(s))}
    newest = max((state.generation for state in known.values()), default=1)
    verdicts = [_judge(chunk, newest, known, published) for chunk in desired]
    superseded = _superseded_keys(desired, known.values())
    slices = [replace(owed, supersedes=superseded.get(owed.key, ())) for _, owed in verdicts if owed is not None]
    planned = {chunk.key for chunk in desired}
    gone = [state for key, state in known.items() if key not in planned]
    changed = [
        *(replace(s, supersedes=superseded.get(s.key, ())) if owed else s for s, owed in verdicts),
        *(replace(s, status="retired") if s.status in ("pending", "failed") else s for s in gone),
    ]
    running = {state.key for state, _ in verdicts if state.status == "running"}
    done = [state for state, owed in verdicts if owed is None]
    return Due(
        slices=tuple(owed for owed in slices if owed.key not in running),
        busy=tuple(owed for owed in slices if owed.key in running),
        done=tuple(state.chunk for state in done),
        states=to_be_stored(changed, known),
        carried_over=tuple(s.key for s in done if s.key not in known or known[s.key].status != "done"),
        overtaken=tuple(state.key for state in gone if state.status == "running"),
    )


def _judge(
    chunk: Chunk, newest: int, known: Mapping[str, ChunkState], published: Mapping[str, ChunkState]
) -> tuple[ChunkState, DueSlice | None]:
    state = known.get(chunk.key, ChunkState(chunk.key, chunk.bounds, generation=newest))
    running = state.status == "running"
    base = state if running else replace(state, bounds=chunk.bounds)
    if base.status == "done":
        return base, None
    twin = published.get(chunk.bounds.content_hash) if isinstance(chunk.bounds, SourceFile) else None
    if twin is not None and not running:
        ids = twin.carried_from if twin.load_id is None else (twin.load_id,)
        return replace(base, status="done", rows=twin.rows, carried_from=ids), None
    owed = DueSlice(Slice(chunk, chunk.bounds), base.attempts)
    return base if running or base.status == "failed" else replace(base, status="pending"), owed


def _superseded_keys(desired: Sequence[Chunk], states: Iterable[ChunkState]) -> dict[str, tuple[str, ...]]:
    """For each chunk, the chunks of what its path held before, unless another path still holds that content.

    One that never came to `done` counts as well: it may have been published just before a crash.
    """
    current = {file.content_hash for chunk in desired if (file := _bounds_file(chunk.bounds))}
    hashes_by_path: dict[str, set[str]] = defaultdict(set)
    keys_by_hash: dict[str, list[str]] = defaultdict(list)
    for state in states:
        file = _file(state)
        if file is None or state.status == "superseded" or file.content_hash in current:
            continue
        if state.attempts > 0 or state.status == "done":
            hashes_by_path[file.path].add(file.content_hash)
            keys_by_hash[file.content_hash].append(state.key)
    return {
        chunk.key: tuple(sorted(key for content in hashes_by_path[file.path] for key in keys_by_hash[content]))
        for chunk in desired
        if (file := _bounds_file(chunk.bounds)) and file.path in hashes_by_path
    }


def _file(state: ChunkState) -> SourceFile | None:
    return _bounds_file(state.bounds)


def _bounds_file(bounds: object) -> SourceFile | None:
    return bounds if isinstance(bounds, SourceFile) else None
