"""Dagster's instance of a project: one storage, shared by the command line, `serve` and plain `dagster dev`."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.resources import files
from pathlib import Path

import dagster as dg

from hakiri_dagster.orchestration.storage import STORAGE_ERRORS, storage_lost, write_out

URL_VARIABLE = "HAKIRI_DAGSTER_URL"
PROJECT_VARIABLE = "HAKIRI_PROJECT"

_SECONDS_KEPT = 1

IN_PROCESS = "command-line.yaml"
"""The same instance, for runs in the command line's own process."""

_TERMINAL_IS_LOG = """
# stdout and stderr are the user's: Dagster would turn them to files and start four processes a run to copy them back.
compute_logs:
  module: dagster._core.storage.noop_compute_log_manager
  class: NoOpComputeLogManager
"""


_MAX_RUNS = re.compile(r"^(\s*max_concurrent_runs:\s*)([0-9]+)", re.MULTILINE)


def write_home(root: Path, most_passes: int | None = None) -> Path:
    """`.hakiri/dagster` with the project's own dagster.yaml, or the package's where the project has none. No more runs
    are taken from the queue than passes may be at work: they would wait with all that a run takes."""
    home = root / ".hakiri" / "dagster"
    home.mkdir(parents=True, exist_ok=True)
    own = root / "dagster.yaml"
    text = _capped(own.read_text() if own.is_file() else packaged_text("dagster.yaml"), most_passes)
    _put(home / "dagster.yaml", text)
    _put(home / IN_PROCESS, text if re.search(r"^compute_logs:", text, re.MULTILINE) else text + _TERMINAL_IS_LOG)
    return home


def _capped(text: str, most: int | None) -> str:
    return text if most is None else _MAX_RUNS.sub(lambda found: f"{found[1]}{min(int(found[2]), most)}", text)


def _put(path: Path, text: str) -> None:
    if not path.is_file() or path.read_text() != text:
        path.write_text(text)


def prepare_home(root: Path, storage_url: str, most_passes: int | None = None) -> Path:
    """For Dagster in this process and those that it starts."""
    home = write_home(root, most_passes)
    os.environ["DAGSTER_HOME"] = str(home)
    os.environ[URL_VARIABLE] = storage_url
    os.environ[PROJECT_VARIABLE] = str(root)
    return home


@contextmanager
def opened_instance(root: Path, storage_url: str, most_passes: int | None = None) -> Iterator[dg.DagsterInstance]:
    home = prepare_home(root, storage_url, most_passes)
    with _instance(home, storage_url) as instance:
        yield instance


def _instance(home: Path, storage_url: str) -> dg.DagsterInstance:
    try:
        instance = dg.DagsterInstance.from_config(str(home), IN_PROCESS)
        _keep_connections(instance)
        if "synchronous_commit" in storage_url:
            write_out(storage_url)
    except STORAGE_ERRORS as error:
        raise storage_lost(error, str(home / IN_PROCESS)) from error
    return instance


def _keep_connections(instance: dg.DagsterInstance) -> None:
    """Dagster would open one for each event, and each check of each chunk is an event. Only for a moment: a server that
    was started again meanwhile is asked anew."""
    instance.optimize_for_webserver(statement_timeout=0, pool_recycle=_SECONDS_KEPT, max_overflow=-1)


def packaged_text(name: str) -> str:
    return (files("hakiri_dagster") / "scaffold" / name).read_text()


def psycopg2_url(url: str) -> str:
    """SQLAlchemy 2.1 maps `postgresql://` to psycopg 3, with which dagster-postgres fails at NOTIFY."""
    return url.replace("postgresql://", "postgresql+psycopg2://", 1)
