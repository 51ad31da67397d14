"""Dagster's instance of a project: one storage, shared by the command line, `serve` and plain `dagster dev`."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.resources import files
from pathlib import Path

import dagster as dg

URL_VARIABLE = "HAKIRI_DAGSTER_URL"
PROJECT_VARIABLE = "HAKIRI_PROJECT"


def write_home(root: Path) -> Path:
    """`.hakiri/dagster` with the project's own dagster.yaml, or the package's where the project has none."""
    home = root / ".hakiri" / "dagster"
    home.mkdir(parents=True, exist_ok=True)
    own = root / "dagster.yaml"
    text = own.read_text() if own.is_file() else packaged_text("dagster.yaml")
    target = home / "dagster.yaml"
    if not target.is_file() or target.read_text() != text:
        target.write_text(text)
    return home


def prepare_home(root: Path, storage_url: str) -> Path:
    """For Dagster in this process and those that it starts."""
    home = write_home(root)
    os.environ["DAGSTER_HOME"] = str(home)
    os.environ[URL_VARIABLE] = storage_url
    os.environ[PROJECT_VARIABLE] = str(root)
    return home


@contextmanager
def opened_instance(root: Path, storage_url: str) -> Iterator[dg.DagsterInstance]:
    prepare_home(root, storage_url)
    with dg.DagsterInstance.get() as instance:
        yield instance


def packaged_text(name: str) -> str:
    return (files("hakiri_dagster") / "scaffold" / name).read_text()


def psycopg2_url(url: str) -> str:
    """SQLAlchemy 2.1 maps `postgresql://` to psycopg 3, with which dagster-postgres fails at NOTIFY."""
    return url.replace("postgresql://", "postgresql+psycopg2://", 1)
