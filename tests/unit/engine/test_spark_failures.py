from __future__ import annotations

import pytest
from py4j.protocol import Py4JError, Py4JNetworkError
from pyspark.errors import PySparkException

from hakiri_dagster.engine.spark_failures import as_hakiri_error, translate_spark_errors, useful_text
from hakiri_dagster.errors import EngineError, EngineLost, LeaseLost, SourceError, SourceThrottled, SourceUnavailable
from hakiri_dagster.security import secrets

JAVA = """An error occurred while calling o1.count.
: org.apache.spark.SparkException: Job aborted due to stage failure: Task 0 in stage 1.0 failed 1 times
\tat org.apache.spark.scheduler.DAGScheduler.abort(DAGScheduler.scala:1)
Caused by: java.io.IOException: outer
\tat a.b(C.java:1)
\t... 3 more
Caused by: java.io.FileNotFoundException: /data/orders.csv
\tat a.b(C.java:2)
"""

WORKER = """An exception was thrown from the Python worker. Please see the stack trace below.
Traceback (most recent call last):
  File "x.py", line 1, in run
    raise SourceUnavailable("the source did not answer")
hakiri_dagster.errors.SourceUnavailable: the source did not answer
  hint: try later

JVM stacktrace:
org.apache.spark.api.python.PythonException
\tat a.b(C.java:2)
"""


def test_of_a_java_stack_the_deepest_cause_is_kept() -> None:
    assert useful_text(JAVA) == "java.io.FileNotFoundException: /data/orders.csv"


def test_of_a_python_traceback_the_exception_is_kept() -> None:
    frames = 'x\nTraceback (most recent call last):\n  File "a", line 1\n    raise\n'
    text = f"{frames}ValueError: bad\nnews\n\nDriver stacktrace:\n\tat a.b"
    assert useful_text(text) == "ValueError: bad news"


def test_a_long_text_is_cut_and_no_secret_with_it() -> None:
    assert len(useful_text("x" * 10_000)) < 1000
    secrets.register(["a-secret-where-a-long-text-is-cut"])
    assert "a-secret" not in useful_text("x" * 780 + "a-secret-where-a-long-text-is-cut")


@pytest.mark.parametrize("kind", [SourceUnavailable, SourceThrottled])
def test_an_error_of_ours_crosses_from_the_worker_with_its_type_and_hint(kind: type[SourceError]) -> None:
    error = as_hakiri_error(RuntimeError(WORKER.replace("SourceUnavailable", kind.__name__)), "shop/orders")
    assert type(error) is kind
    assert str(error) == "shop/orders: the source did not answer\n  hint: try later"


@pytest.mark.parametrize(
    "error",
    [
        Py4JError("An error occurred while calling o55.sc"),
        Py4JNetworkError("Answer from Java side is empty"),
        ConnectionRefusedError(111, "Connection refused"),
        RuntimeError("An error occurred while calling o3.collect.\n: java.io.IOException: Stream closed\n\tat a.b"),
        RuntimeError("(java.io.IOException) Stream closed"),
        RuntimeError("Job 3 cancelled because SparkContext was shut down"),
        RuntimeError("[INVALID_HANDLE.SESSION_CHANGED] The handle is invalid."),
        RuntimeError("[RESPONSE_ALREADY_RECEIVED] the operation is unknown to the server"),
        RuntimeError("[INVALID_HANDLE.OPERATION_NOT_FOUND] The handle is invalid. Operation not found."),
        RuntimeError("Caused by: java.lang.OutOfMemoryError: Java heap space"),
        RuntimeError("org.apache.spark.SparkException: Python worker exited unexpectedly (crashed)"),
        RuntimeError(
            "SparkException: EOFException occurred while reading the port number from pyspark.daemon's stdout"
        ),
    ],
)
def test_losing_spark_is_transient(error: Exception) -> None:
    assert isinstance(as_hakiri_error(error), EngineLost)


def test_all_else_is_permanent() -> None:
    error = as_hakiri_error(RuntimeError("[PATH_NOT_FOUND] Path does not exist: file:/x"), "shop/orders")
    assert type(error) is EngineError
    assert error.kind == "permanent"


def test_our_own_errors_pass_unchanged() -> None:
    with pytest.raises(LeaseLost, match="taken over"), translate_spark_errors("shop/orders"):
        raise LeaseLost("taken over")


def test_a_full_disk_is_told_with_the_cure_and_not_tried_again() -> None:
    full = "OSError: [Errno 28] No space left on device"
    error = as_hakiri_error(PySparkException(f"Traceback (most recent call last):\n{full}"))
    assert (error.kind, error.what) == ("permanent", f"no room left on the disk: {full}")
    assert error.hint is not None
    assert error.hint.startswith("free disk space")


def test_a_source_explains_what_reading_it_raised_but_not_a_lost_engine() -> None:
    def explain(_error: Exception) -> SourceError:
        return SourceError("the file is damaged")

    with pytest.raises(SourceError, match="the file is damaged"), translate_spark_errors(explain=explain):
        raise PySparkException("[FAILED_READ_FILE.NO_HINT] a.parquet")
    with pytest.raises(EngineLost), translate_spark_errors(explain=explain):
        raise ConnectionResetError
