"""Spark sessions: starting one, and telling the work of one attempt from that of another."""

from __future__ import annotations

import os
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from pyspark.sql import SparkSession

from hakiri_dagster.engine.java import ensure_java
from hakiri_dagster.engine.spark_config import is_local, is_remote, spark_config
from hakiri_dagster.settings import Settings

__all__ = ["interrupt_attempt", "is_remote", "open_session", "prepare_process", "spark_config", "tag_attempt"]

_PACKAGE_ROOT = Path(__file__).resolve().parents[2]


def open_session(settings: Settings, state_dir: Path) -> SparkSession:
    """The session that dagster-pyspark's resource opens too, for those who run without Dagster."""
    prepare_process(settings, state_dir)
    builder = SparkSession.builder
    for key, value in spark_config(settings, state_dir).items():
        builder = builder.config(key, value)
    return builder.getOrCreate()


def prepare_process(settings: Settings, state_dir: Path) -> None:
    """What a configuration cannot say: to be called before this process's first session, however that is opened."""
    # Said at every Arrow function; the versions are locked and tested together.
    warnings.filterwarnings("ignore", "PySpark does not yet fully support pandas", FutureWarning)
    if is_remote(settings):
        return
    ensure_java()
    (state_dir / "spark" / "local").mkdir(parents=True, exist_ok=True)
    if is_local(settings):
        os.environ.update(local_environment())


def local_environment() -> dict[str, str]:
    """Python workers run this same Python and find this same package."""
    paths = [str(_PACKAGE_ROOT), *filter(None, os.environ.get("PYTHONPATH", "").split(os.pathsep))]
    return {
        "SPARK_LOCAL_IP": "127.0.0.1",
        "PYSPARK_PYTHON": sys.executable,
        "PYTHONPATH": os.pathsep.join(dict.fromkeys(paths)),
    }


@contextmanager
def tag_attempt(session: SparkSession, tag: str) -> Iterator[None]:
    """Jobs that this thread starts meanwhile carry the tag."""
    session.addTag(tag)
    try:
        yield
    finally:
        session.removeTag(tag)


def interrupt_attempt(session: SparkSession, tag: str) -> None:
    """Ends what a dead attempt left running in this session; over Connect a killed client's jobs go on."""
    session.interruptTag(tag)
