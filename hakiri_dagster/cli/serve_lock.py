"""One `hakiri serve` a project. A second one's daemon would start everything twice, and it would write the first one's
workspace anew, which would have no code server any more once the second had ended."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from hakiri_dagster.errors import UsageError


@contextmanager
def the_only_serve(state_dir: Path, port: int) -> Iterator[None]:
    """The kernel gives the lock free when this process ends, however it ends; the file stays."""
    path = state_dir / "dagster" / "serve.lock"
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a+") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise _taken(file, path) from None
        file.truncate(0)
        file.write(f"{os.getpid()} {port}")
        file.flush()
        yield


def _taken(file: IO[str], path: Path) -> UsageError:
    """Its holder may not have written yet who it is."""
    file.seek(0)
    pid, _, port = file.read().partition(" ")
    who, how = (f"process {pid}", f"or `kill {pid}`") if pid else ("another process", "and try again")
    there = f"its UI is at http://127.0.0.1:{port}; " if port else ""
    return UsageError(
        f"this project is served already, by {who}",
        where=str(path),
        hint=f"{there}end that one first: Ctrl-C where it runs, {how}",
    )
