"""How the chunks of a table follow from what its source holds. Pure: (cursor kind, extent, settings, now) → chunks."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import PurePosixPath
from typing import Final

from hakiri_dagster.errors import PlanError
from hakiri_dagster.planning.chunks import (
    FULL_KEY,
    NULL_KEY,
    OUTSIDE_KEY,
    Chunk,
    CursorKind,
    CursorRange,
    Extent,
    Interval,
    NullCursor,
    SourceFile,
    WholeTable,
)
from hakiri_dagster.planning.windows import (
    DAY,
    HOUR,
    MINUTE,
    FixedWindow,
    IdWindow,
    MonthWindow,
    Window,
    parse_position,
    parse_window,
    to_position,
)

MOST_CHUNKS: Final = 100_000
FIRST_WINDOW: Final = to_position(datetime(1970, 1, 1, tzinfo=UTC))
"""Rows dated earlier belong to the first window: they are slips (0001-01-01), or too few to be worth windows."""

_LARGER: Final[tuple[tuple[str, Window], ...]] = (
    ("15m", FixedWindow(15 * MINUTE)), ("1h", FixedWindow(HOUR)), ("6h", FixedWindow(6 * HOUR)),
    ("1d", FixedWindow(DAY)), ("1mo", MonthWindow(1)), ("1q", MonthWindow(3)), ("1y", MonthWindow(12)),
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class WindowSettings:
    """What the manifest says about the cutting of one table. `start_from` is a cursor position."""

    window: Window
    start_from: int | None = None

    @classmethod
    def parse(cls, kind: CursorKind, window: str | int | None, start_from: str | int | None) -> WindowSettings:
        return cls(
            window=parse_window(window, kind),
            start_from=None if start_from is None else parse_position(start_from, kind),
        )

    def beginning_at(self, position: int) -> WindowSettings:
        """What lies before the position is not planned either."""
        return replace(self, start_from=position if self.start_from is None else max(position, self.start_from))


def plan_chunks(kind: CursorKind, extent: Extent, settings: WindowSettings, now: datetime) -> tuple[Chunk, ...]:
    """Windows in order, then `null` and `outside`. They cover what the source holds from `start_from` on, once."""
    horizon = extent.upper if kind == "numeric" else to_position(now)
    return (
        *_window_chunks(extent, settings, horizon),
        *([Chunk(NULL_KEY, NullCursor())] if extent.nulls > 0 else []),
        *_outside(extent, settings, horizon),
    )


def _window_chunks(extent: Extent, settings: WindowSettings, horizon: int | None) -> Iterator[Chunk]:
    if extent.lower is None or extent.upper is None or horizon is None:
        return
    window = settings.window
    lowest = _lowest(extent.lower, settings)
    first = window.index(_on_calendar(lowest, window))
    last = window.index(_on_calendar(min(extent.upper, horizon), window))
    if extent.upper < lowest or last < first:
        return
    _refuse_too_many(last - first + 1, lowest, min(extent.upper, horizon), settings)
    lower: int | None = window.start(first)
    if (settings.start_from is not None and settings.start_from > window.start(first)) or lowest < window.start(first):
        lower = settings.start_from
    for index in range(first, last + 1):
        upper = window.start(index + 1)
        yield Chunk(window.key(index), CursorRange(Interval(lower, upper)))
        lower = upper


def _outside(extent: Extent, settings: WindowSettings, horizon: int | None) -> Iterator[Chunk]:
    """Rows dated after the window in which now lies: no window is planned for a date that may be a slip."""
    if extent.upper is None or horizon is None:
        return
    window = settings.window
    end = window.start(window.index(horizon) + 1)
    if settings.start_from is not None:
        end = max(end, settings.start_from)
    if extent.upper >= end:
        yield Chunk(OUTSIDE_KEY, CursorRange(Interval(end, None)))


def _lowest(lower: int, settings: WindowSettings) -> int:
    return lower if settings.start_from is None else max(lower, settings.start_from)


def _on_calendar(position: int, window: Window) -> int:
    return position if isinstance(window, IdWindow) else max(position, FIRST_WINDOW)


def _refuse_too_many(count: int, lowest: int, highest: int, settings: WindowSettings) -> None:
    if count <= MOST_CHUNKS:
        return
    fits = next((name for name, window in _candidates(settings.window) if _fits(window, lowest, highest)), "1y")
    raise PlanError(
        f"the window cuts the source into {count:,} chunks, more than {MOST_CHUNKS:,}",
        hint=f"set backfill.window to {fits} or larger, or backfill.start_from to leave out stray early rows",
    )


def _candidates(window: Window) -> Iterable[tuple[str, Window]]:
    if isinstance(window, IdWindow):
        return ((str(10**power), IdWindow(10**power)) for power in range(1, 40) if 10**power > window.width)
    return ((f'"{name}"', larger) for name, larger in _LARGER)


def _fits(window: Window, lowest: int, highest: int) -> bool:
    first = window.index(_on_calendar(lowest, window))
    return window.index(_on_calendar(highest, window)) - first < MOST_CHUNKS


def plan_file_chunks(files: Iterable[SourceFile]) -> tuple[tuple[Chunk, ...], tuple[str, ...]]:
    """One chunk a file, by its content, sorted by path; and warnings of files that repeat another's content."""
    chunks: dict[str, Chunk] = {}
    first_path: dict[str, str] = {}
    warnings = []
    for file in sorted(files, key=lambda f: f.path):
        if file.content_hash in first_path:
            warnings.append(
                f"{file.path} has the same content as {first_path[file.content_hash]}: its rows are loaded once"
            )
            continue
        first_path[file.content_hash] = file.path
        key = file_key(file)
        chunks[key] = Chunk(key, file)
    return tuple(chunks.values()), tuple(warnings)


def file_key(file: SourceFile) -> str:
    name = re.sub(r"[^A-Za-z0-9._-]+", "_", PurePosixPath(file.path).name)[:80]
    return f"{name or 'file'}-{file.content_hash[:12]}"


def plan_full() -> tuple[Chunk, ...]:
    return (Chunk(FULL_KEY, WholeTable()),)
