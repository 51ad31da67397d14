"""`did you mean`: the known name that is closest to what somebody wrote."""

from __future__ import annotations

import difflib
from collections.abc import Iterable


def closest(written: str, known: Iterable[str]) -> str | None:
    """Compares without case and separators, so that both spellings and plain slips are found."""
    by_plain = {_plain(name): name for name in known}
    near = difflib.get_close_matches(_plain(written[:200]), by_plain, n=1, cutoff=0.6)
    return by_plain[near[0]] if near else None


def or_rather(written: str, known: Iterable[str]) -> str:
    """To be put behind what is said of a name that is not known."""
    near = closest(written, known)
    return f"; did you mean {near}?" if near else ""


def _plain(name: str) -> str:
    return name.lower().replace("_", "").replace("-", "")
