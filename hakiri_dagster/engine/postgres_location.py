"""Finds the folder of a project's embedded server.

It is `.hakiri/postgres`, or `/var/lib/hakiri/cluster-…` where hakiri runs as root and the server's account cannot enter
the project (`/root/my-project`). Such a folder outlives the project's `.hakiri`, so a file in it names the project that
it belongs to, and a project whose `.hakiri` was deleted finds it again.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import asdict, dataclass
from itertools import count
from pathlib import Path
from typing import Literal

from hakiri_dagster.engine import postgres_account, postgres_cluster
from hakiri_dagster.engine.postgres_account import Account, shared_folder
from hakiri_dagster.engine.postgres_holders import Holders
from hakiri_dagster.engine.postgres_home import SERVER, Home, locked, write_private
from hakiri_dagster.engine.state_folder import report_file_errors
from hakiri_dagster.errors import EngineError

_LOCATION = "location"
_OWNER = "owner.json"
_PREFIX = "cluster-"


@dataclass(frozen=True, slots=True)
class Owner:
    """`directory` is the project's `.hakiri/postgres`, `project` the name in its manifest; None where it is unknown."""

    directory: str
    project: str | None

    @property
    def root(self) -> Path:
        return Path(self.directory).parent.parent

    def is_the_same(self, other: Owner) -> bool:
        """Another project that was made at the same path is not."""
        return self.directory == other.directory and (
            self.project is None or other.project is None or self.project == other.project
        )


@dataclass(frozen=True, slots=True)
class OrphanedFolder:
    """The folder of a server outside of any project, whose project does not exist any more."""

    path: Path
    owner: Owner
    size: int
    is_running: bool


def locate(directory: Path, project: str | None = None) -> Home:
    """Returns the folder of the server of `directory`, which is created where there is none."""
    with report_file_errors(directory, SERVER):
        directory.mkdir(parents=True, exist_ok=True)
        directory = directory.resolve()
        owner = Owner(str(directory), project)
        found = _claim_location(directory, owner)
        if found is not None:
            return found
        account = Account.for_directory(directory)
        if account.reaches(directory):
            if (directory / _LOCATION).exists():
                (directory / _LOCATION).unlink()  # the folder that it names was removed
            return Home.open(directory, account)
        _refuse_unreachable_data(directory, account)
        cluster = _create_outside(owner)
        write_private(directory / _LOCATION, f"{cluster}\n")
        return Home.open(cluster, account)


def find(directory: Path) -> Home | None:
    """Returns the folder of the server of `directory`, if there is one. Creates and claims nothing."""
    with report_file_errors(directory, SERVER):
        directory = directory.resolve()
        cluster = _noted_location(directory)
        if cluster is None and not (directory / "data").exists():
            cluster = _find_outside(Owner(str(directory), None))
        if cluster is not None:
            return None if _belongs_to_another(cluster, str(directory)) else Home.open(cluster)
        return Home.open(directory) if (directory / "lock").exists() else None


def _claim_location(directory: Path, owner: Owner) -> Home | None:
    cluster = _noted_location(directory)
    if cluster is None:
        if (directory / "data").exists():
            return None
        cluster = _find_outside(owner)
        if cluster is None:
            return None
        write_private(directory / _LOCATION, f"{cluster}\n")
    home = Home.open(cluster, Account.for_directory(directory))
    with locked(home):
        _claim(cluster, owner)
    return home


def _claim(cluster: Path, owner: Owner) -> None:
    """A project that was moved takes its data along; a copy of a project must not share them unnoticed."""
    if _belongs_to_another(cluster, owner.directory):
        raise EngineError(
            f"the data in {cluster} belong to another project, of which this one is a copy.",
            where=owner.directory,
            hint=f"Give the copy a server of its own: `rm -r {owner.directory}`. The next apply loads every table.",
        )
    known = _read_owner(cluster)
    if known is None or known.directory != owner.directory or (owner.project and known.project != owner.project):
        _write_owner(cluster, owner)


def _belongs_to_another(cluster: Path, directory: str) -> bool:
    """The project that is noted there still exists at its path, so it was not moved to here."""
    known = _read_owner(cluster)
    return known is not None and known.directory != directory and _is_project(known)


def _noted_location(directory: Path) -> Path | None:
    """Only a folder of ours: `.hakiri` may come from elsewhere, and what it names is written to as root."""
    try:
        cluster = Path((directory / _LOCATION).read_text().strip())
    except (FileNotFoundError, UnicodeDecodeError):
        return None
    ours = cluster.parent == postgres_account.SHARED_STATE and cluster.name.startswith(_PREFIX)
    return cluster if ours and cluster.is_dir() else None


def _find_outside(owner: Owner) -> Path | None:
    return next((cluster for cluster, known in _outside() if known.is_the_same(owner)), None)


def _outside() -> Iterator[tuple[Path, Owner]]:
    """Each folder outside of projects, with its owner. Only root has any, and may read whose they are."""
    if os.geteuid() != 0 or not postgres_account.SHARED_STATE.is_dir():
        return
    for cluster in sorted(postgres_account.SHARED_STATE.glob(f"{_PREFIX}*")):
        owner = _read_owner(cluster)
        if owner is not None:
            yield cluster, owner


def _create_outside(owner: Owner) -> Path:
    """Two processes that start at once choose the same name. One that another project has is passed over."""
    for number in count():
        text = "\0".join((owner.directory, owner.project or "", str(number)))
        cluster = shared_folder() / f"{_PREFIX}{hashlib.sha256(text.encode()).hexdigest()[:16]}"
        cluster.mkdir(exist_ok=True)
        known = _read_owner(cluster)
        if known == owner or (known is None and not (cluster / "data").exists()):
            break
    cluster.chmod(0o711)
    _write_owner(cluster, owner)
    return cluster


def _refuse_unreachable_data(directory: Path, account: Account) -> None:
    """A project with its data inside was moved to where the server's account cannot follow, or was closed to it."""
    if (directory / "data").exists():
        closed = account.first_closed_folder(directory)
        raise EngineError(
            f"PostgreSQL runs as the account `{account.name}`, which cannot enter {closed}; its data are below.",
            where=str(directory),
            hint=f"Let it pass with `chmod o+x {closed}`, or move the project back. To load every table again: "
            f"`rm -r {directory}`.",
        )


def _read_owner(cluster: Path) -> Owner | None:
    try:
        return Owner(**json.loads((cluster / _OWNER).read_text()))
    except (FileNotFoundError, json.JSONDecodeError, UnicodeDecodeError, TypeError):
        return None


def _write_owner(cluster: Path, owner: Owner) -> None:
    write_private(cluster / _OWNER, json.dumps(asdict(owner)))


def _is_project(owner: Owner) -> bool:
    return (owner.root / "manifests").is_dir()


def orphaned_folders() -> tuple[OrphanedFolder, ...]:
    """A project whose `.hakiri` was deleted still exists, and would find its folder again."""
    with report_file_errors(postgres_account.SHARED_STATE, SERVER):
        return tuple(
            OrphanedFolder(cluster, owner, _size(cluster), postgres_cluster.is_occupied(Home.open(cluster)))
            for cluster, owner in _outside()
            if _is_orphaned(cluster, owner)
        )


def remove_orphaned_folder(cluster: Path) -> Literal["removed", "running", "in use"]:
    """The owner's name goes last, so that what a killed removal leaves is found again."""
    with report_file_errors(cluster, SERVER):
        home = Home.open(cluster)
    with locked(home):
        owner = _read_owner(cluster)
        if owner is None or not _is_orphaned(cluster, owner):
            return "in use"
        if Holders(cluster).needed or postgres_cluster.is_occupied(home):
            return "running"
        if home.data.exists():
            shutil.rmtree(home.data)
        shutil.rmtree(cluster)
    return "removed"


def _is_orphaned(cluster: Path, owner: Owner) -> bool:
    if not _is_project(owner):
        return True
    directory = Path(owner.directory)
    noted = _noted_location(directory)
    return noted != cluster if noted is not None else (directory / "data").exists()


def _size(folder: Path) -> int:
    """In bytes on the disk, as `du` counts them. What a running server deletes meanwhile does not count."""
    size = 0
    for path in folder.rglob("*"):
        with suppress(FileNotFoundError):
            size += path.lstat().st_blocks * 512
    return size
