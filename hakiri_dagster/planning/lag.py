"""How far before a mark rows are read once more, because they may come late."""

from __future__ import annotations

from hakiri_dagster.errors import PlanError
from hakiri_dagster.planning.chunks import CursorKind
from hakiri_dagster.planning.windows import DAY, FixedWindow, IdWindow, parse_window

_LONGEST_MONTH = 31 * DAY


def width(lag: str | int) -> int:
    """In cursor positions: ids, or microseconds. A month is its longest."""
    window = parse_window(lag, "timestamp" if isinstance(lag, str) else "numeric")
    if isinstance(window, FixedWindow | IdWindow):
        return window.width
    return window.months * _LONGEST_MONTH


def refuse_misfit(lag: str | int | None, kind: CursorKind) -> None:
    if lag is None or isinstance(lag, int) == (kind == "numeric"):
        return
    fits = "a number of ids, like 1000" if kind == "numeric" else "a time, like `1h` or `2d`"
    raise PlanError(f"the watermark is a {kind}, so the lag {lag!r} does not fit it", hint=f"write {fits}")
