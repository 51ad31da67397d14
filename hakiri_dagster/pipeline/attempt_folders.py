"""Where an attempt's candidates lie on disk, and an end to those of dead attempts."""

from __future__ import annotations

import os
import shutil
import socket
import time
import uuid
from contextlib import suppress
from pathlib import Path

from hakiri_dagster.engine.process_identity import is_dead
from hakiri_dagster.errors import EngineError
from hakiri_dagster.manifest.tables import Table

_OWNER = "owner"
_ATTEMPTS = "attempt-*"
_GONE = "gone-"
_OWNERLESS_SECONDS = 3600
"""A folder without an owner is being made right now; or its maker died in that instant."""


def new_attempt_folder(candidates: Path, table: Table, holder: str) -> Path:
    """Under the table's own folder; what dead attempts left there goes first."""
    folder = candidates / table.pipeline_id / table.name.encode().hex()[:120]
    folder.mkdir(parents=True, exist_ok=True)
    _sweep(folder)
    directory = folder / f"attempt-{uuid.uuid4().hex[:16]}"
    made = directory.with_name(f"made-{directory.name}")
    made.mkdir()
    (made / _OWNER).write_text(holder)
    return made.rename(directory)  # never without its owner, who may be killed at any instant


def refuse_unshared(directory: str) -> None:
    """Asked by workers before they write there."""
    if not os.access(directory, os.W_OK | os.X_OK):
        raise EngineError(
            f"the worker on {socket.gethostname()} cannot write to {directory}",
            hint="candidates go to a folder that workers and publisher share, at the same path: HAKIRI_CANDIDATES",
        )


def sweep_dead_attempts(candidates: Path) -> None:
    """Of every table, also those that have nothing to load now: their dead may have published all there was."""
    for folder in candidates.glob("*/*"):
        _sweep(folder)


def _sweep(folder: Path) -> None:
    for directory in (*folder.glob(_ATTEMPTS), *folder.glob(f"made-{_ATTEMPTS}")):
        if _is_dead(directory):
            remove_attempt(directory)
    for directory in folder.glob(f"{_GONE}*"):
        shutil.rmtree(directory, ignore_errors=True)


def remove_attempt(directory: Path) -> None:
    """Under another name first: whoever is killed in the middle, when the owner's name may be gone already, leaves what
    anybody may remove."""
    with suppress(FileNotFoundError):  # somebody else was faster
        gone = directory.rename(directory.with_name(f"{_GONE}{directory.name}"))
        shutil.rmtree(gone, ignore_errors=True)


def _is_dead(directory: Path) -> bool:
    try:
        return is_dead((directory / _OWNER).read_text()) is True
    except (FileNotFoundError, NotADirectoryError, ValueError):
        return _age_seconds(directory) > _OWNERLESS_SECONDS


def _age_seconds(directory: Path) -> float:
    try:
        return time.time() - directory.stat().st_mtime
    except FileNotFoundError:
        return 0.0
