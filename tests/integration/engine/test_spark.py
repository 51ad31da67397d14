"""Sessions start on either Java, quietly; what goes wrong in them comes back short and of the right kind."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from hakiri_dagster.engine.spark import interrupt_attempt, tag_attempt
from hakiri_dagster.engine.spark_failures import translate_spark_errors
from hakiri_dagster.errors import EngineError, EngineLost, SourceUnavailable

COUNT_ROWS = """
import sys
from pathlib import Path
from hakiri_dagster.engine.spark import open_session
from hakiri_dagster.settings import Settings
session = open_session(Settings(), Path(sys.argv[1]))
print(session.range(1000).mapInArrow(lambda batches: batches, "id bigint").count())
"""

SURVIVE_THE_JVM = """
import sys
from pathlib import Path
import psutil
from hakiri_dagster.engine.spark import open_session
from hakiri_dagster.engine.spark_failures import translate_spark_errors
from hakiri_dagster.errors import EngineLost
from hakiri_dagster.settings import Settings
def count():
    with translate_spark_errors("shop/orders"):
        return open_session(Settings(), Path(sys.argv[1])).range(7).count()
count()
session = open_session(Settings(), Path(sys.argv[1]))
for child in psutil.Process().children(recursive=True):
    if child.name() == "java":
        child.kill()
try:
    with translate_spark_errors("shop/orders"):
        session.range(7).count()
except EngineLost as error:
    print(error.kind)
print(count())
"""

BE_INTERRUPTED_AT_THE_FORK = """
import os, signal, sys
from pathlib import Path
from hakiri_dagster.engine.spark import open_session
from hakiri_dagster.settings import Settings
signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell starts what runs in its background without it
os.register_at_fork(after_in_parent=lambda: os.kill(os.getpid(), signal.SIGINT))
try:
    open_session(Settings(), Path(sys.argv[1]))
except KeyboardInterrupt:
    print("interrupted", flush=True)
os._exit(0)
"""


def run_python(
    code: str, state_dir: Path, environment: dict[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", code, str(state_dir)],
        capture_output=True, text=True, check=False, timeout=120, env=environment,
    )  # fmt: skip


@pytest.fixture
def path_without_java(tmp_path: Path) -> str:
    """What Spark's own scripts call, and nothing else."""
    for command in ("bash", "sh", "dirname", "env", "uname", "ps"):
        if found := shutil.which(command):
            (tmp_path / command).symlink_to(found)
    return str(tmp_path)


def test_spark_starts_on_the_wheels_java_where_there_is_no_other(path_without_java: str, tmp_path: Path) -> None:
    environment = {k: v for k, v in os.environ.items() if k != "JAVA_HOME"} | {"PATH": path_without_java}
    done = run_python(COUNT_ROWS, tmp_path / "with space", environment)
    assert (done.stdout, done.stderr) == ("1000\n", "")


def test_a_start_says_nothing_on_the_terminal_and_logs_to_the_project(tmp_path: Path) -> None:
    done = run_python(COUNT_ROWS, tmp_path)
    assert (done.stdout, done.stderr) == ("1000\n", "")
    assert (tmp_path / "spark" / "spark.log").exists()


def test_after_its_jvm_was_killed_the_work_fails_as_transient_and_the_next_session_works(tmp_path: Path) -> None:
    done = run_python(SURVIVE_THE_JVM, tmp_path)
    assert done.stdout == "transient\n7\n", done.stderr


def test_an_interrupt_that_comes_while_the_jvm_is_forked_is_not_lost(tmp_path: Path) -> None:
    done = run_python(BE_INTERRUPTED_AT_THE_FORK, tmp_path)
    assert (done.stdout, done.stderr) == ("interrupted\n", "")


def test_a_missing_file_is_a_permanent_error_in_one_line(spark: SparkSession) -> None:
    with (
        pytest.raises(EngineError, match=r"^shop/orders: Spark: \[PATH_NOT_FOUND\]") as raised,
        translate_spark_errors("shop/orders"),
    ):
        spark.read.parquet("/nonexistent").count()
    assert raised.value.kind == "permanent"
    assert "\n" not in str(raised.value)


def test_a_corrupt_file_is_named(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "half.parquet").write_text("not at all a parquet file")
    with pytest.raises(EngineError, match=r"half\.parquet is not a Parquet file"), translate_spark_errors():
        spark.read.schema("a int").parquet(str(tmp_path / "half.parquet")).count()


def test_an_error_of_ours_raised_in_a_worker_arrives_as_itself(spark: SparkSession) -> None:
    def refuse(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        raise SourceUnavailable("the source did not answer", hint="try later")
        yield from batches

    with pytest.raises(SourceUnavailable) as raised, translate_spark_errors("shop/orders"):
        spark.range(1).mapInArrow(refuse, "id bigint").count()
    assert raised.value.hint == "try later"


def test_a_killed_worker_is_transient(spark: SparkSession) -> None:
    def die(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        os.kill(os.getpid(), 9)
        yield from batches

    with pytest.raises(EngineLost), translate_spark_errors("shop/orders"):
        spark.range(1).mapInArrow(die, "id bigint").count()


def test_an_attempt_is_interrupted_from_another_thread_and_no_other_is(spark: SparkSession, tmp_path: Path) -> None:
    started, proceed = tmp_path / "started", tmp_path / "proceed"
    os.mkfifo(started)
    os.mkfifo(proceed)

    def wait(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        started.write_text("now")
        proceed.read_text()
        yield from batches

    ended: list[str] = []

    def attempt() -> None:
        try:
            with tag_attempt(spark, "attempt-1"), translate_spark_errors():
                spark.range(1).coalesce(1).mapInArrow(wait, "id bigint").count()
        except EngineLost as error:
            ended.append(error.kind)

    thread = threading.Thread(target=attempt)
    thread.start()
    started.read_text()
    interrupt_attempt(spark, "attempt-2")
    assert thread.is_alive()
    interrupt_attempt(spark, "attempt-1")
    thread.join(20)
    assert ended == ["transient"]
