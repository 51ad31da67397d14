"""Spark's errors about files, in our words. They surface wherever a frame is run, long after it was read."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from urllib.parse import unquote

from py4j.protocol import Py4JJavaError  # type: ignore[import-untyped]  # py4j has no types
from pyspark.errors import PySparkException

from hakiri_dagster.errors import HakiriError, SourceError

SPARK_ERRORS: tuple[type[Exception], ...] = (PySparkException, Py4JJavaError)
"""A failed job arrives as the latter when Spark runs in this process."""

_FAILED = re.compile(r"\[FAILED_READ_FILE\.(\w+)\] Encountered error while reading file (?:file:/*)(/\S*?)\.(?=\s)")
_NOT_FOUND = re.compile(r"\[PATH_NOT_FOUND\] Path does not exist: file:/*(/.*?)\. SQLSTATE")
_CAUSE = re.compile(r"^\s*Caused by: (?:[\w$]+\.)*([\w$]+(?:: .*)?)$", re.MULTILINE)
_TYPES = re.compile(r"column \[(.*?)\]\. Expected Spark type (.*?), actual Parquet type (.*?)\.")


@contextmanager
def told_in_our_words(label: str) -> Iterator[None]:
    """Around whatever makes Spark read."""
    try:
        yield
    except SPARK_ERRORS as error:
        raise explain_read_error(error, label) or error from error


def explain_read_error(error: BaseException, label: str) -> HakiriError | None:
    """None if the error is not about a file that was read."""
    text = str(error)
    if found := _FAILED.search(text):
        return _failed(found[1], "/" + unquote(found[2]).lstrip("/"), text, label)
    if found := _NOT_FOUND.search(text):
        return SourceError(f"{'/' + found[1].lstrip('/')} has vanished", where=label, hint="run again")
    return None


def _failed(condition: str, path: str, text: str, label: str) -> SourceError:
    if condition == "FILE_NOT_EXIST":
        return SourceError(f"{path} vanished while it was read", where=label, hint="run again")
    if found := _TYPES.search(text):
        column, wanted, actual = found.groups()
        return SourceError(
            f"{path}: column `{column}` is {actual}, expected {wanted}",
            where=label,
            hint="declare the column's type under `columns`, or write the file again",
        )
    causes = _CAUSE.findall(text)
    reason = f": {causes[-1][:200]}" if causes else ""
    return SourceError(
        f"{path} cannot be read to its end{reason}", where=label, hint="the file is damaged; write it again"
    )
