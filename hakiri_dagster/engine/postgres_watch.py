"""Stops the server after a holder that could not do it itself, because it was killed and nobody else was in.

Every holder keeps a shared lock, which the kernel takes from whoever dies. This small process waits for the lock
alone, then looks; it ends with the server. Were it killed too, the next to enter and leave would do its work.
"""

from __future__ import annotations

import fcntl
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

_PACKAGE_ROOT = Path(__file__).resolve().parents[2]


@contextmanager
def watched(directory: Path) -> Iterator[None]:
    """While inside, this process counts for the watcher."""
    handle = _open(directory / "holders.lock")
    fcntl.flock(handle, fcntl.LOCK_SH)
    try:
        _ensure_watcher(directory)
        yield
    finally:
        # Closing would not do if a forked child had inherited the handle.
        fcntl.flock(handle, fcntl.LOCK_UN)
        os.close(handle)


def _ensure_watcher(directory: Path) -> None:
    handle = _open(directory / "watch.lock")
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return
    else:
        subprocess.Popen(
            [sys.executable, "-m", __name__, str(directory)],
            pass_fds=(handle,), env={**os.environ, "PYTHONPATH": str(_PACKAGE_ROOT)}, start_new_session=True,
            cwd="/", stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        )  # fmt: skip
    finally:
        os.close(handle)


def _watch(directory: Path) -> None:
    while True:
        try:
            _wait_until_nobody_is_in(directory)
            if _all_left_in_order(directory):
                return
        except FileNotFoundError:
            return
        # Only now: until it has something to do, the watcher stays a few megabytes small.
        from hakiri_dagster.engine.embedded_postgres import stop_if_unneeded

        if stop_if_unneeded(directory):
            return


def _wait_until_nobody_is_in(directory: Path) -> None:
    handle = os.open(directory / "holders.lock", os.O_RDWR)
    fcntl.flock(handle, fcntl.LOCK_EX)
    os.close(handle)


def _all_left_in_order(directory: Path) -> bool:
    """The last one took its name off the list, and then it has stopped the server as well."""
    return not json.loads((directory / "holders.json").read_text())


def _open(path: Path) -> int:
    return os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)


if __name__ == "__main__":
    _watch(Path(sys.argv[1]))
