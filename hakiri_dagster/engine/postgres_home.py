"""The files of one embedded server, and the lock under which they change.

`directory` is the project's; `cluster` holds what the server's account must reach: the same folder, or one under
`/var/lib/hakiri` when we are root and the way to the project is closed to others (`/root/my-project`).
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from hakiri_dagster.engine.postgres_account import Account, shared_folder
from hakiri_dagster.errors import EngineError


@dataclass(frozen=True, slots=True)
class Home:
    directory: Path
    cluster: Path
    account: Account

    @classmethod
    def open(cls, directory: Path) -> Home:
        """To be called under `locked(directory)`, because it may decide where the data will be for ever."""
        account = Account.for_directory(directory)
        location = directory / "location"
        if location.exists():
            cluster = Path(location.read_text().strip())
            _check_belongs(cluster, directory)
        elif account.reaches(directory):
            cluster = directory
        else:
            cluster = _closed_project_cluster(directory, location)
        data = cluster / "data"
        if data.exists():
            owner = data.stat()
            account = Account(owner.st_uid, owner.st_gid)
        return cls(directory, cluster, account)

    @property
    def data(self) -> Path:
        return self.cluster / "data"

    @property
    def log(self) -> Path:
        return self.cluster / "server.log"

    @property
    def password_file(self) -> Path:
        return self.directory / "password"

    @property
    def server_lock(self) -> Path:
        """Held by the server's own processes, which inherit it: the kernel knows whether any of them lives."""
        return self.directory / "server.lock"

    @property
    def password(self) -> str:
        self.password_file.chmod(0o600)
        return self.password_file.read_text().strip()

    @property
    def port(self) -> int:
        return int((self.directory / "port").read_text())

    def keep_port(self, port: int) -> None:
        write_private(self.directory / "port", f"{port}\n")

    def new_password(self) -> str:
        write_private(self.password_file, f"{secrets.token_urlsafe(24)}\n")
        return self.password


@contextmanager
def locked(directory: Path) -> Iterator[None]:
    """One process at a time starts, stops, enters or leaves. The kernel frees the lock of a killed one."""
    try:
        directory.mkdir(parents=True, exist_ok=True)
        handle = os.open(directory / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    except PermissionError as error:
        raise EngineError(
            f"the embedded PostgreSQL belongs to another user: {error}",
            where=str(directory),
            hint="Run hakiri as the user who created it, or set a destination `url` of your own.",
        ) from error
    try:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield
    finally:
        os.close(handle)


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


def _closed_project_cluster(directory: Path, location: Path) -> Path:
    resolved = directory.resolve()
    digest = hashlib.sha256(str(resolved).encode()).hexdigest()[:16]
    cluster = shared_folder() / f"cluster-{digest}"
    cluster.mkdir(mode=0o711, exist_ok=True)
    write_private(cluster / "belongs-to", f"{resolved}\n")
    write_private(location, f"{cluster}\n")
    return cluster


def _check_belongs(cluster: Path, directory: Path) -> None:
    """A project that was moved takes its data along; a copy of a project must not share them unawares."""
    note = cluster / "belongs-to"
    owner = Path(note.read_text().strip()) if note.exists() else directory.resolve()
    if owner == directory.resolve():
        return
    if (owner / "location").exists():
        raise EngineError(
            f"the embedded PostgreSQL's data in {cluster} belong to {owner}, of which this is a copy.",
            where=str(directory),
            hint=f"Delete the folder {directory} to begin with an empty server.",
        )
    write_private(note, f"{directory.resolve()}\n")
