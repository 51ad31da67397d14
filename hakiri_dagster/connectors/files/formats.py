"""What a file's name says about its format and its compression."""

from __future__ import annotations

from pathlib import PurePath
from typing import Literal

Format = Literal["csv", "jsonl", "parquet", "orc"]
Compression = Literal["none", "gzip", "bz2", "zstd"]

TEXT_FORMATS: frozenset[Format] = frozenset({"csv", "jsonl"})

EXTENSIONS: dict[str, Format] = {
    ".csv": "csv",
    ".tsv": "csv",
    ".jsonl": "jsonl",
    ".ndjson": "jsonl",
    ".json": "jsonl",
    ".parquet": "parquet",
    ".pq": "parquet",
    ".orc": "orc",
}

CODECS: dict[str, Compression] = {".gz": "gzip", ".bz2": "bz2", ".zst": "zstd"}
"""Spark picks the codec by these extensions, and by nothing else."""

# An lz4 frame makes Hadoop's codec ask for gigabytes until the JVM dies; the others would be read as plain text.
UNREADABLE = frozenset(
    {".lz4", ".zstd", ".xz", ".lzma", ".zip", ".7z", ".rar", ".br", ".tar", ".tgz", ".z", ".deflate", ".snappy"}
)


def compression_of(path: str) -> Compression:
    return CODECS.get(PurePath(path).suffix.lower(), "none")


def format_of(path: str) -> Format | None:
    """`orders.csv.gz` is CSV. None: the name does not say."""
    name = PurePath(path)
    if name.suffix.lower() in CODECS:
        name = name.with_suffix("")
    return EXTENSIONS.get(name.suffix.lower())


def is_unreadable(path: str) -> bool:
    return PurePath(path).suffix.lower() in UNREADABLE


def is_tab_separated(path: str) -> bool:
    name = PurePath(path)
    return ".tsv" in {suffix.lower() for suffix in name.suffixes[-2:]}
