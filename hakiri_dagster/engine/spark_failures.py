"""What Spark raises, in classic and in Connect mode, as our errors: transient or permanent, and short."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from py4j.protocol import Py4JError, Py4JJavaError, Py4JNetworkError  # type: ignore[import-untyped]  # py4j ships no types
from pyspark.errors import PySparkException

from hakiri_dagster import errors
from hakiri_dagster.errors import EngineError, EngineLost, HakiriError
from hakiri_dagster.security.secrets import redact

_LOST_CODES = {"UNAVAILABLE", "DEADLINE_EXCEEDED", "ABORTED"}

_LOST = re.compile(
    r"SparkContext (was|has been) (shut ?down|stopped)|stopped SparkContext|SESSION_(CHANGED|NOT_FOUND|CLOSED)"
    r"|ExecutorLostFailure|Executor heartbeat timed out|Python worker exited unexpectedly"
    r"|reading the port number from pyspark|java\.io\.IOException\)?:? Stream closed|JAVA_GATEWAY_EXITED"
    r"|Answer from Java side is empty|Error while (sending|receiving|obtaining)"
    r"|NO_ACTIVE_SESSION|Connection (refused|reset)|java\.net\.(Connect|Socket)Exception|java\.lang\.OutOfMemoryError"
    r"|FetchFailedException|OPERATION_CANCELED|SPARK_JOB_CANCELLED|cancelled because|RETRIES_EXCEEDED"
    r"|OPERATION_NOT_FOUND|RESPONSE_ALREADY_RECEIVED"
)

_NO_NEWS = re.compile(r"^(\s*at |\s*\.\.\. \d+ more|Driver stacktrace:|JVM stacktrace:)")
_CALL = re.compile(r"An error occurred while calling \S+\n: ")
_LONGEST = 800
_MAKE_ROOM = "free disk space where `.hakiri` lies, then apply again; what was not published yet is not visible"


Explain = Callable[[Exception], HakiriError | None]
"""What a source knows about an error that reading it raised; None if nothing."""


def unexplained(_error: Exception) -> None: ...


@contextmanager
def translate_spark_errors(where: str | None = None, explain: Explain = unexplained) -> Iterator[None]:
    """To be put around whatever makes Spark work; `where` is the pipeline/table. Our own errors pass unchanged."""
    try:
        yield
    except (PySparkException, Py4JError, *_rpc_errors(), ConnectionError, EOFError) as error:
        told = as_hakiri_error(error, where)
        known = explain(error) if type(told) is EngineError else None  # a lost engine says nothing about the source
        raise known or told from error


def as_hakiri_error(error: Exception, where: str | None = None) -> HakiriError:
    text = str(error)
    if (raised := _raised_in_worker(text, where)) is not None:
        return raised
    short = useful_text(text)
    if "No space left on device" in text:
        return EngineError(f"no room left on the disk: {short}", where=where, hint=_MAKE_ROOM)
    if _is_lost(error, text):
        return EngineLost(
            f"Spark went away: {short}", where=where, hint="It is tried again; see also `.hakiri/spark/spark.log`."
        )
    return EngineError(f"Spark: {short}", where=where)


def useful_text(text: str) -> str:
    """The deepest cause, or the last line of a Python traceback, without frames."""
    text = _CALL.sub("", text, count=1)
    lines = [line.strip() for line in text.splitlines() if line.strip() and not _NO_NEWS.match(line)]
    causes = [line.removeprefix("Caused by: ") for line in lines if line.startswith("Caused by: ")]
    if "Traceback (most recent call last):" in text:
        chosen = _end_of_traceback(text)
    elif causes:
        chosen = causes[-1]
    else:
        chosen = " ".join(lines[:3])
    chosen = redact(chosen)  # cut, a secret would not be known any more
    return chosen if len(chosen) <= _LONGEST else f"{chosen[:_LONGEST]} …"


def _end_of_traceback(text: str) -> str:
    """The exception itself comes first after the frames, which are indented."""
    after = text.rpartition("Traceback (most recent call last):")[2].splitlines()[1:]
    said: list[str] = []
    for line in after:
        if line.startswith(" ") and not said:
            continue
        if not line.strip() or _NO_NEWS.match(line):
            break
        said.append(line.strip())
    return " ".join(said)


def _raised_in_worker(text: str, where: str | None) -> HakiriError | None:
    """A HakiriError that a Python worker raised crosses the JVM as text; here it becomes itself again."""
    found = re.search(r"^(?:hakiri_dagster\.errors\.)(\w+): (.*)$", text, re.MULTILINE)
    raised = getattr(errors, found.group(1), None) if found else None
    if found is None or not (isinstance(raised, type) and issubclass(raised, HakiriError)):
        return None
    hint = re.search(r"^  hint: (.*)$", text[found.end() :], re.MULTILINE)
    return raised(found.group(2), where=where, hint=hint.group(1) if hint else None)


def _rpc_errors() -> tuple[type[Exception], ...]:
    """Raised by who talks to a Connect server, and has imported what raises them. To others that is 11 MB."""
    grpc = sys.modules.get("grpc")
    return () if grpc is None else (grpc.RpcError,)


def _is_lost(error: Exception, text: str) -> bool:
    if isinstance(error, (Py4JNetworkError, ConnectionError, EOFError)):
        return True
    if isinstance(error, Py4JError) and not isinstance(error, Py4JJavaError) and "Trace:" not in text:
        return True  # Java said nothing at all.
    if isinstance(error, _rpc_errors()):
        return _code_of(error, "code") in _LOST_CODES
    return _code_of(error, "getGrpcStatusCode") in _LOST_CODES or _LOST.search(text) is not None


def _code_of(error: Exception, method: str) -> str | None:
    status = getattr(error, method, lambda: None)()
    return None if status is None else str(status.name)
