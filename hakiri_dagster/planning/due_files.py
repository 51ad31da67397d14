"""Which files a table owes its source, where every file is a chunk by its content."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from hakiri_dagster.planning.chunks import Bounds, Chunk, Slice, SourceFile
from hakiri_dagster.planning.states import ChunkState, Due, DueSlice, to_be_stored


def due_files(desired: Sequence[Chunk], states: Iterable[ChunkState], files: Iterable[SourceFile] = ()) -> Due:
    """A renamed file is known by its content; a rewritten one supersedes; a missing one keeps its rows.

    `files` are all of the source's, those that repeat another's content included.
    """
    known = {state.key: state for state in states}
    newest = max((state.generation for state in known.values()), default=1)
    followed = _followed(known.values(), desired)
    earlier = _Earlier.of([*(_file(chunk.bounds) for chunk in desired), *files], followed)
    verdicts = [_judge(chunk, known, earlier, newest) for chunk in desired]
    planned = {chunk.key for chunk in desired}
    gone = [state for state in followed if state.key not in planned]
    done = [state for state, owed in verdicts if owed is None]
    changed = [
        *(state for state, _ in verdicts),
        *(replace(s, status="retired") if s.status in ("pending", "failed") else s for s in gone),
    ]
    return Due(
        slices=tuple(owed for state, owed in verdicts if owed is not None and state.status != "running"),
        busy=tuple(owed for state, owed in verdicts if owed is not None and state.status == "running"),
        done=tuple(state.chunk for state in done),
        states=to_be_stored(changed, known),
        carried_over=tuple(s.key for s in done if s.key not in known or known[s.key].status != "done"),
        overtaken=tuple(state.key for state in gone if state.status == "running"),
    )


def _followed(states: Iterable[ChunkState], desired: Sequence[Chunk]) -> list[ChunkState]:
    """A content that moved goes with the path that holds it now: what becomes of its old path no longer matters."""
    now = {_file(chunk.bounds).content_hash: _file(chunk.bounds) for chunk in desired}
    return [
        replace(state, bounds=now.get(state.bounds.content_hash, state.bounds))
        if isinstance(state.bounds, SourceFile) and state.status != "superseded"
        else state
        for state in states
    ]


@dataclass(frozen=True, slots=True)
class _Earlier:
    """Chunks whose rows may be in the target: what came to `done`, and what was tried, as it may have been published
    just before a crash. `replaced` is, by content, what the paths that hold it now held before and no path holds now.
    """

    by_content: Mapping[str, Sequence[ChunkState]]
    replaced: Mapping[str, set[str]]

    @classmethod
    def of(cls, files: Sequence[SourceFile], states: Iterable[ChunkState]) -> _Earlier:
        by_content: dict[str, list[ChunkState]] = defaultdict(list)
        contents_by_path: dict[str, set[str]] = defaultdict(set)
        for state in states:
            if not isinstance(state.bounds, SourceFile) or state.status == "superseded":
                continue
            if state.status == "done" or state.attempts > 0:
                by_content[state.bounds.content_hash].append(state)
                contents_by_path[state.bounds.path].add(state.bounds.content_hash)
        current = {file.content_hash for file in files}
        replaced: dict[str, set[str]] = defaultdict(set)
        for file in files:
            for content in contents_by_path.get(file.path, set()) - current:
                replaced[file.content_hash].update(state.key for state in by_content[content])
        return cls(by_content, replaced)


def _judge(
    chunk: Chunk, known: Mapping[str, ChunkState], earlier: _Earlier, newest: int
) -> tuple[ChunkState, DueSlice | None]:
    """A load is what replaces rows, so a content that is there already is loaded again if its path must lose others."""
    file = _file(chunk.bounds)
    state = known.get(chunk.key, ChunkState(chunk.key, chunk.bounds, generation=newest))
    running = state.status == "running"
    base = state if running else replace(state, bounds=file)
    replaced = earlier.replaced.get(file.content_hash, set())
    twins = [twin for twin in earlier.by_content.get(file.content_hash, ()) if twin.key != chunk.key]
    if not replaced and base.status == "done":
        return base, None
    published = next((twin for twin in twins if twin.status == "done"), None)
    if not replaced and published is not None and not running:
        ids = published.carried_from if published.load_id is None else (published.load_id,)
        return replace(base, status="done", rows=published.rows, carried_from=ids), None
    supersedes = tuple(sorted({*replaced, *(twin.key for twin in twins)}))
    owed = DueSlice(Slice(chunk, file), base.attempts, supersedes=supersedes)
    if running:
        return base, owed
    return replace(base, status="failed" if base.status == "failed" else "pending", supersedes=supersedes), owed


def _file(bounds: Bounds) -> SourceFile:
    if not isinstance(bounds, SourceFile):
        raise AssertionError(f"{bounds} is no file")
    return bounds
