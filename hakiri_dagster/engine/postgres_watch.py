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
def watched(cluster: Path) -> Iterator[int]:
    """While inside, this process counts for the watcher. Yields an open file of the folder."""
    handle = _open(cluster / "holders.lock")
    fcntl.flock(handle, fcntl.LOCK_SH)
    try:
        _ensure_watcher(cluster)
        yield handle
    finally:
        # Closing would not do if a forked child had inherited the handle.
        fcntl.flock(handle, fcntl.LOCK_UN)
        os.close(handle)


def _ensure_watcher(cluster: Path) -> None:
    handle = _open(cluster / "watch.lock")
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return
    else:
        subprocess.Popen(
            [sys.executable, "-m", __name__, str(handle), str(cluster)],
            pass_fds=(handle,), env={**os.environ, "PYTHONPATH": str(_PACKAGE_ROOT)}, start_new_session=True,
            cwd="/", stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        )  # fmt: skip
    finally:
        os.close(handle)


def _watch(handle: int, cluster: Path) -> None:
    """`handle` is the lock that keeps other watchers out: an open file of the folder, which may be moved or deleted."""
    lock = os.open(cluster / "holders.lock", os.O_RDWR)
    while True:
        fcntl.flock(lock, fcntl.LOCK_EX)  # when no holder is left
        fcntl.flock(lock, fcntl.LOCK_UN)
        found = os.readlink(f"/proc/self/fd/{handle}")
        is_deleted = found.endswith(" (deleted)")
        cluster = cluster if is_deleted else Path(found).parent
        if not is_deleted and _all_left_in_order(cluster):
            return
        # Only now: until it has something to do, the watcher stays a few megabytes small.
        from hakiri_dagster.engine.embedded_postgres import stop_if_unneeded

        if stop_if_unneeded(cluster) or is_deleted:
            return


def _all_left_in_order(cluster: Path) -> bool:
    """The last one took its name off the list, and then it has stopped the server as well."""
    try:
        return not json.loads((cluster / "holders.json").read_text())
    except FileNotFoundError:
        return False


def _open(path: Path) -> int:
    return os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)


if __name__ == "__main__":
    _watch(int(sys.argv[1]), Path(sys.argv[2]))
