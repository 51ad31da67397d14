"""What the engine needs, what is there, and how to cure what is not. One function a question."""

from __future__ import annotations

import os
import shutil
import subprocess
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import psutil

from hakiri_dagster.engine.java import OLDEST_JAVA, java_home, java_version
from hakiri_dagster.engine.postgres_account import Account, clean_environment, reachable_binaries
from hakiri_dagster.engine.postgres_location import orphaned_folders
from hakiri_dagster.errors import EngineError

_GIB = 1 << 30
_LEAST_MEMORY = 2 * _GIB
_LEAST_DISK = 5 * _GIB


@dataclass(frozen=True, slots=True)
class Check:
    """`cure` is empty when nothing is wrong."""

    name: str
    ok: bool
    found: str
    cure: str = ""


def engine_checks(state_dir: Path) -> tuple[Check, ...]:
    return (
        check_java(),
        check_spark(),
        check_postgres(state_dir),
        check_data_folders(),
        check_memory(),
        check_disk(state_dir),
        check_writable(state_dir),
    )


def check_java() -> Check:
    cure = f"Install Java {OLDEST_JAVA} or newer and set JAVA_HOME, or install hakiri-dagster anew."
    try:
        home = java_home()
    except EngineError as error:
        return Check("java", False, error.what, cure)
    asked = subprocess.run([str(home / "bin" / "java"), "-version"], capture_output=True, text=True, check=False)
    if asked.returncode != 0:
        return Check("java", False, f"{home}: {asked.stderr.strip()}", cure)
    return Check("java", True, f"{java_version(home)} in {home}")


def check_spark() -> Check:
    try:
        found = version("pyspark")
    except PackageNotFoundError:
        return Check("spark", False, "the package `pyspark` is missing", "Install hakiri-dagster anew.")
    if found.startswith("4."):
        return Check("spark", True, found)
    return Check("spark", False, found, "hakiri-dagster is made for Spark 4; install its locked requirements.")


def check_postgres(state_dir: Path) -> Check:
    """As the account that would run it, from the place that it would be run from."""
    cure = "Install hakiri-dagster anew, or give every destination a `url` of its own."
    try:
        account = Account.for_directory(existing_part(state_dir))
        command = [str(reachable_binaries(account) / "postgres"), "--version"]
        asked = subprocess.run(
            command, capture_output=True, text=True, check=False, cwd="/",
            env=clean_environment(), **account.run_as,
        )  # fmt: skip
    except (EngineError, OSError) as error:
        return Check("postgresql", False, str(error), cure)
    if asked.returncode != 0:
        return Check("postgresql", False, asked.stderr.strip(), cure)
    return Check("postgresql", True, asked.stdout.strip())


def check_data_folders() -> Check:
    """What projects that do not exist any more have left outside of their folders. Nothing is wrong with that."""
    try:
        orphaned = orphaned_folders()
    except EngineError as error:
        return Check("data folders", False, error.what, error.hint or "")
    if not orphaned:
        found = "each one belongs to a project" if os.geteuid() == 0 else "only projects of root's have any"
        return Check("data folders", True, found)
    found = ", ".join(f"{folder.path} ({folder.size / _GIB:.1f} GiB, {folder.owner.root})" for folder in orphaned)
    return Check("data folders", True, f"without a project: {found}", "`hakiri postgres prune` removes them.")


def check_memory() -> Check:
    memory = psutil.virtual_memory()
    found = f"{memory.available / _GIB:.1f} of {memory.total / _GIB:.1f} GiB are free"
    if memory.available >= _LEAST_MEMORY:
        return Check("memory", True, found)
    return Check(
        "memory", False, found,
        "Spark and PostgreSQL take 2 to 3 GiB together; lower HAKIRI_SPARK_MEMORY or end other programs.",
    )  # fmt: skip


def check_disk(state_dir: Path) -> Check:
    free = shutil.disk_usage(existing_part(state_dir)).free
    found = f"{free / _GIB:.1f} GiB are free under {state_dir}"
    if free >= _LEAST_DISK:
        return Check("disk", True, found)
    return Check("disk", False, found, "Candidates need as much room as the rows of a run; make some.")


def check_writable(state_dir: Path) -> Check:
    if os.path.lexists(state_dir) and not state_dir.is_dir():
        return Check("state folder", False, f"{state_dir} is not a folder", f"Remove it: `rm {state_dir}`.")
    nearest = existing_part(state_dir)
    if nearest.is_dir() and os.access(nearest, os.W_OK | os.X_OK):
        return Check("state folder", True, f"{state_dir} can be written")
    return Check(
        "state folder", False, f"{nearest} cannot be written",
        "Give this user write permission, or run hakiri as the owner of the project.",
    )  # fmt: skip


def existing_part(path: Path) -> Path:
    path = path.absolute()
    return next(folder for folder in (path, *path.parents) if folder.exists())
