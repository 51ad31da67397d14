"""The number by which Spark's rows name their file: `xxhash64(_metadata.file_path)`, computed without Spark."""

from __future__ import annotations

import os
import unicodedata

import xxhash
from pyspark.sql import Column
from pyspark.sql import functions as F  # noqa: N812  # Spark's own convention

from hakiri_dagster.connectors.contract import FileOrigin, FileState

_SPARK_SEED = 42
# java.net.URI's legal characters of a path. All else that is ASCII is escaped.
_LEGAL = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-!.~'()*:@&=+$,;/")


def file_marker() -> Column:
    return F.xxhash64(F.col("_metadata.file_path"))


def split_start() -> Column:
    return F.col("_metadata.file_block_start")


def marker_of(path: str) -> int:
    unsigned = xxhash.xxh64_intdigest(spark_path(path).encode(), seed=_SPARK_SEED)
    return unsigned - (1 << 64) if unsigned >= 1 << 63 else unsigned


def origin_of(state: FileState) -> FileOrigin:
    return FileOrigin(marker_of(state.path), state.path, bytes.fromhex(state.content_hash))


def spark_path(path: str) -> str:
    return "file:" + "".join(map(_quoted, os.path.normpath(path)))


def _quoted(character: str) -> str:
    """As java.net.URI quotes: other characters stay as they are, unless they are blanks or control characters."""
    if character in _LEGAL or (ord(character) > 127 and unicodedata.category(character) not in _ESCAPED):
        return character
    # Java composes a character before it escapes it.
    return "".join(f"%{byte:02X}" for byte in unicodedata.normalize("NFC", character).encode())


_ESCAPED = frozenset({"Zs", "Zl", "Zp", "Cc"})
