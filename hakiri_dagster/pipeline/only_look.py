"""One look at a table at a time in a process: ticks that come while one hangs are not to hang with it."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from hakiri_dagster.errors import HeldBack
from hakiri_dagster.manifest.tables import Table

SECONDS: Final = 5.0
"""For most looks take less, and the tick of a schedule that gave up at once would be lost: the next one may be due in a
day."""

_LOOKS: dict[tuple[Path, str], threading.Lock] = {}
_GUARD = threading.Lock()


@contextmanager
def only_look(root: Path, table: Table) -> Iterator[None]:
    """`root`: of the project, as a process may have several open."""
    with _GUARD:
        look = _LOOKS.setdefault((root, table.label), threading.Lock())
    if not look.acquire(timeout=SECONDS):
        raise HeldBack(
            "it is still being looked at by another tick",
            where=table.label,
            hint="its source, or its destination, takes its time to answer; a later tick looks again",
        )
    try:
        yield
    finally:
        look.release()
