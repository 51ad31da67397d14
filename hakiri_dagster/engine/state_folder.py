"""`.hakiri` while a command uses it: what the operating system refuses in it is an error that says what helps."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from hakiri_dagster.errors import EngineError, StateFolderDeleted

_WRITABLE = "Make that folder writable, or run hakiri as the user who created it."
_IN_THE_WAY = "Put a folder in its place, or remove it."
_HINTS = {
    errno.ENOSPC: "Make room on that disk and run the command again.",
    errno.EDQUOT: "Raise this user's disk quota and run the command again.",
    errno.EROFS: _WRITABLE,
    errno.EACCES: _WRITABLE,
    errno.EPERM: _WRITABLE,
    errno.EEXIST: _IN_THE_WAY,
    errno.ENOTDIR: _IN_THE_WAY,
    errno.ELOOP: _IN_THE_WAY,
    errno.ENOENT: "It was deleted while it was in use. Run the command again.",
}

_OF_A_DISK = (errno.ENOSPC, errno.EDQUOT, errno.EROFS)
"""What a write to an open file may meet, which names no file."""


@dataclass(frozen=True, slots=True)
class StateFolder:
    path: Path
    handle: int

    def is_there(self) -> bool:
        """False once it was deleted, moved or replaced."""
        try:
            return os.path.samestat(os.fstat(self.handle), self.path.stat())
        except OSError:
            return False

    def refuse_deleted(self) -> None:
        if not self.is_there():
            raise StateFolderDeleted(
                "the state folder was deleted, moved or replaced while this command used it.",
                where=str(self.path),
                hint="Run the command again: it loads what is missing.",
            )


@contextmanager
def open_state_folder(path: Path) -> Iterator[StateFolder]:
    """Creates it. Errors of the operating system that are about its files end as errors with a hint."""
    with report_file_errors(path):
        path.mkdir(parents=True, exist_ok=True)
        handle = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    folder = StateFolder(path, handle)
    try:
        yield folder
    except OSError as error:
        is_inside = str(error.filename).startswith(f"{path}/")
        is_about_a_disk = error.filename is None and error.errno in _OF_A_DISK
        if not (is_inside or is_about_a_disk):
            raise
        folder.refuse_deleted()
        raise file_error(error, path) from error
    finally:
        os.close(handle)


@contextmanager
def report_file_errors(folder: Path, user: str = "hakiri") -> Iterator[None]:
    """`user` is what cannot work without the file."""
    try:
        yield
    except OSError as error:
        raise file_error(error, folder, user) from error


def file_error(error: OSError, folder: Path, user: str = "hakiri") -> EngineError:
    kind = StateFolderDeleted if error.errno == errno.ENOENT else EngineError
    return kind(
        f"{user} cannot use {error.filename or folder}: {error.strerror or error}.",
        where=str(folder),
        hint=_HINTS.get(error.errno or 0, "`hakiri doctor` checks memory, disk and permissions."),
    )
