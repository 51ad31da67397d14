"""The folder of one embedded server, and the lock under which it changes. `postgres_location` finds the folder."""

from __future__ import annotations

import fcntl
import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path

from hakiri_dagster.engine.postgres_account import Account
from hakiri_dagster.engine.state_folder import report_file_errors
from hakiri_dagster.errors import StateFolderDeleted

SERVER = "the embedded PostgreSQL"


@dataclass(frozen=True, slots=True)
class Home:
    """All files of one server are in `cluster`, so that they are there together or gone together."""

    cluster: Path
    account: Account
    identity: tuple[int, int]
    """Device and inode of `cluster`: a folder that was deleted and made again under the same name has another one."""

    @classmethod
    def open(cls, cluster: Path, account: Account | None = None) -> Home:
        """The account is the owner of the data, and `account` only where there are none yet."""
        folder = cluster.stat()
        try:
            owner = (cluster / "data").stat()
        except FileNotFoundError:
            account = account or Account.for_directory(cluster)
        else:
            account = Account(owner.st_uid, owner.st_gid)
        return cls(cluster, account, (folder.st_dev, folder.st_ino))

    @property
    def data(self) -> Path:
        return self.cluster / "data"

    @property
    def log(self) -> Path:
        return self.cluster / "server.log"

    @property
    def password_file(self) -> Path:
        return self.cluster / "password"

    @property
    def server_lock(self) -> Path:
        """Held by the server's own processes, which inherit it: the kernel knows whether any of them lives."""
        return self.cluster / "server.lock"

    @property
    def password(self) -> str:
        with report_file_errors(self.cluster, SERVER):
            self.password_file.chmod(0o600)
            return self.password_file.read_text().strip()

    @property
    def has_password(self) -> bool:
        return self.password_file.exists() and self.password != ""

    @property
    def port(self) -> int:
        with report_file_errors(self.cluster, SERVER):
            return int((self.cluster / "port").read_text())

    @property
    def known_port(self) -> int | None:
        """None where the file is missing or damaged."""
        try:
            return int((self.cluster / "port").read_text())
        except (FileNotFoundError, ValueError):
            return None

    def keep_port(self, port: int) -> None:
        write_private(self.cluster / "port", f"{port}\n")

    def keep_password(self, password: str) -> None:
        write_private(self.password_file, f"{password}\n")

    def follow(self, handle: int) -> Home:
        """The same folder where it is now, found by an open file in it: it may have been moved."""
        path = current_path(handle)
        return self if path is None else replace(self, cluster=path.parent)

    def refuse_deleted(self) -> None:
        try:
            found = self.cluster.stat()
        except (FileNotFoundError, NotADirectoryError):
            found = None
        if found is None or (found.st_dev, found.st_ino) != self.identity:
            raise StateFolderDeleted(
                "the folder of the embedded PostgreSQL was deleted, moved or replaced while this process was using it.",
                where=str(self.cluster),
                hint="Run the command again: it loads what is missing.",
            )


def new_password() -> str:
    return secrets.token_urlsafe(24)


def current_path(handle: int) -> Path | None:
    """Where an open file is by now; None if it was deleted."""
    link = os.readlink(f"/proc/self/fd/{handle}")
    return None if link.endswith(" (deleted)") else Path(link)


@contextmanager
def locked(home: Home) -> Iterator[None]:
    """One process at a time starts, stops, enters or leaves. The kernel frees the lock of a killed one."""
    with report_file_errors(home.cluster, SERVER):
        handle = _take_lock(home)
        try:
            yield
        finally:
            os.close(handle)


def _take_lock(home: Home) -> int:
    """Returns an open file that is locked, and that others who lock the same folder find."""
    path = home.cluster / "lock"
    while True:
        home.refuse_deleted()
        handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(handle, fcntl.LOCK_EX)
            home.refuse_deleted()
            if path.exists() and os.path.samestat(os.fstat(handle), path.stat()):
                return handle
        except BaseException:
            os.close(handle)
            raise
        os.close(handle)  # the file was deleted, and may have been made again, while we waited for it


def write_private(path: Path, text: str) -> None:
    """Whole or not at all, and readable by nobody else at any moment."""
    partial = path.with_name(f"{path.name}.{os.getpid()}.new")
    with suppress(FileNotFoundError):
        partial.unlink()
    handle = os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(handle, "w") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
    partial.replace(path)
