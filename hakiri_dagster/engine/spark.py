"""Spark sessions: starting one, and telling the work of one attempt from that of another."""

from __future__ import annotations

import ctypes
import logging
import os
import socket
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from pathlib import Path
from urllib.parse import urlsplit

from py4j.protocol import Py4JError  # type: ignore[import-untyped]  # py4j ships no types
from pyspark import SparkContext
from pyspark.sql import SparkSession
from pyspark.sql.utils import is_remote as connect_is_in_use

from hakiri_dagster.engine.java import ensure_java
from hakiri_dagster.engine.shipped_package import package_archive, write_package
from hakiri_dagster.engine.spark_config import ITS_OWN, PACKAGE_MARK, is_local, is_remote, spark_config, workers_python
from hakiri_dagster.engine.spark_failures import translate_spark_errors
from hakiri_dagster.errors import EngineAway, EngineLost
from hakiri_dagster.settings import Settings

__all__ = [
    "engine_environment",
    "interrupt_attempt",
    "is_remote",
    "living_session",
    "opened_apart",
    "open_session",
    "prepare_process",
    "prepare_session",
    "spark_config",
    "tag_attempt",
]

_PACKAGE_ROOT = Path(__file__).resolve().parents[2]

_CONNECT_PORT = 15002
_RESTART_SECONDS = 20
_LOOK_SECONDS = 0.5
_CONNECT_RETRIES = 10
_CONNECT_LONGEST_WAIT_MS = 2500
"""Twenty seconds in all, enough for a Connect server to be started again; Spark's own patience is ten minutes."""


_prepared: list[SparkSession] = []
"""Connect's. They are never given up, not even when Python ends."""


def open_session(settings: Settings, state_dir: Path) -> SparkSession:
    """The session that dagster-pyspark's resource opens too, for those who run without Dagster.

    After EngineLost, another call opens a new one.
    """
    prepare_process(settings, state_dir)
    builder = SparkSession.builder
    for key, value in spark_config(settings, state_dir).items():
        builder = builder.config(key, value)

    def opened() -> SparkSession:
        with translate_spark_errors():
            return prepare_session(opened_apart(builder.getOrCreate, settings), state_dir)

    try:
        return opened()
    except EngineLost:  # it was of a Connect server that has been started again since, as this first word to it told
        return opened()


def opened_apart(open_one: Callable[[], SparkSession], settings: Settings) -> SparkSession:
    """In a thread of its own where a JVM is to be started.

    PySpark starts it by a fork that runs Python code before and after. Python drops an interrupt that arrives there,
    and leaves the lock of `logging` held; but only the main thread gets interrupts, and that one just waits.
    """
    if is_remote(settings) or SparkContext._gateway is not None:
        return open_one()
    starter = ThreadPoolExecutor(1, thread_name_prefix="spark-start")
    opened = starter.submit(open_one)
    starter.shutdown(wait=False)
    return opened.result()


def prepare_process(settings: Settings, state_dir: Path) -> None:
    """What a configuration cannot say. To be called before a session is opened, by whatever means."""
    _quieten()
    if is_remote(settings):
        _await_connect_server(settings.spark)
        _forget_lost_sessions()
        return
    _forget_lost_jvm()
    ensure_java()
    (state_dir / "spark" / "local").mkdir(parents=True, exist_ok=True)
    os.environ.update(engine_environment(settings, state_dir))


def _await_connect_server(url: str) -> None:
    """It may be starting again. PySpark would try for ten minutes to reach one that is not there, and say nothing."""
    parts = urlsplit(url.partition("/;")[0])
    place = (parts.hostname or "", parts.port or _CONNECT_PORT)
    deadline = time.monotonic() + _RESTART_SECONDS
    while True:
        try:
            socket.create_connection(place, timeout=_RESTART_SECONDS).close()
            return
        except OSError as error:
            if time.monotonic() > deadline:
                raise EngineAway(
                    f"Spark Connect does not answer at {place[0]}:{place[1]}: {error}",
                    hint="is that server up? HAKIRI_SPARK says where it is",
                ) from error
        time.sleep(_LOOK_SECONDS)


def prepare_session(session: SparkSession, state_dir: Path) -> SparkSession:
    """To be called once on a session that somebody else opened, such as dagster-pyspark's resource."""
    if connect_is_in_use():
        from pyspark.sql.connect.client.retries import DefaultPolicy

        _keep(session)
        policy = DefaultPolicy(max_retries=_CONNECT_RETRIES, max_backoff=_CONNECT_LONGEST_WAIT_MS)
        session.client.set_retry_policies([policy])
        # The session is shared: whoever stops it must leave it to the others.
        session.release_session_on_close = False  # type: ignore[attr-defined]  # Connect's sessions have it
        _ship_package(session, state_dir)
    return session


def _keep(session: SparkSession) -> None:
    """One that is collected as garbage closes its channel, which may never return when its server was lost: nobody ends
    the calls that are under way, least of all while Python ends."""
    if not any(session is kept for kept in _prepared):
        _prepared.append(session)
        ctypes.pythonapi.Py_IncRef(ctypes.py_object(session))


def _ship_package(session: SparkSession, state_dir: Path) -> None:
    """Once a session, which outlives its clients, and is new after its server was started again."""
    with translate_spark_errors():
        there = session.conf.get(PACKAGE_MARK, "")
        if there == ITS_OWN or there == package_archive(state_dir).name:
            return
        archive = write_package(state_dir)
        session.addArtifacts(str(archive), pyfile=True)
        session.conf.set(PACKAGE_MARK, archive.name)


def living_session(session: SparkSession, settings: Settings, state_dir: Path) -> SparkSession:
    """dagster-pyspark's resource hands out its first session for ever, also when what is behind it has died."""
    if not connect_is_in_use():
        return session if SparkSession._instantiatedSession is session else open_session(settings, state_dir)
    with suppress(EngineLost):
        if not session.is_stopped:  # type: ignore[attr-defined]  # Connect's sessions know
            return prepare_session(session, state_dir)
    return open_session(settings, state_dir)


def engine_environment(settings: Settings, state_dir: Path) -> dict[str, str]:
    """For the process that starts the JVM: what PySpark and Spark's scripts take from nowhere else."""
    if is_local(settings):
        return _local_environment()
    write_package(state_dir)
    chosen = workers_python(settings)
    return {} if chosen is None else {"PYSPARK_PYTHON": chosen}


def _local_environment() -> dict[str, str]:
    """Python workers run this same Python and find this same package."""
    paths = [str(_PACKAGE_ROOT), *filter(None, os.environ.get("PYTHONPATH", "").split(os.pathsep))]
    return {
        "SPARK_LOCAL_IP": "127.0.0.1",
        "PYSPARK_PYTHON": sys.executable,
        "PYTHONPATH": os.pathsep.join(dict.fromkeys(paths)),
    }


@contextmanager
def tag_attempt(session: SparkSession, tag: str) -> Iterator[None]:
    """Jobs that this thread starts meanwhile carry the tag, which must hold no comma."""
    # A classic session's own tags can be interrupted only from the thread that set them; its context's from any.
    if connect_is_in_use():
        session.addTag(tag)
    else:
        session.sparkContext.addJobTag(tag)
    try:
        yield
    finally:
        if connect_is_in_use():
            session.removeTag(tag)
        else:
            session.sparkContext.removeJobTag(tag)


def interrupt_attempt(session: SparkSession, tag: str) -> None:
    """Ends what a dead attempt left running; over Connect a killed client's jobs go on."""
    if connect_is_in_use():
        session.interruptTag(tag)
    else:
        session.sparkContext.cancelJobsWithTag(tag)


def _quieten() -> None:
    """What these say comes back as an exception, or was settled when the versions were locked together."""
    warnings.filterwarnings("ignore", "PySpark does not yet fully support pandas", FutureWarning)
    for name in ("SQLQueryContextLogger", "DataFrameQueryContextLogger"):
        logging.getLogger(name).setLevel(logging.CRITICAL)


def _forget_lost_sessions() -> None:
    """PySpark keeps a stopped default session in its place, so that a new one never becomes the default."""
    from pyspark.sql.connect.session import SparkSession as ConnectSession

    if ConnectSession._get_default_session() is None:
        ConnectSession._default_session = None
    if ConnectSession.getActiveSession() is None:
        ConnectSession._active_session.session = None


def _forget_lost_jvm() -> None:
    """PySpark never looks whether its JVM still lives, and would go on asking a dead one."""
    if SparkContext._gateway is None or _jvm_answers():
        return
    SparkContext._active_spark_context = None
    SparkContext._gateway = None
    SparkContext._jvm = None
    SparkSession._instantiatedSession = None
    SparkSession._activeSession = None


def _jvm_answers() -> bool:
    assert SparkContext._jvm is not None
    try:
        SparkContext._jvm.System.nanoTime()
    except (Py4JError, ConnectionError):
        return False
    return True
