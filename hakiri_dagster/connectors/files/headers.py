"""The first record of a CSV file: its columns' names. Read with Python's own parser, a few kilobytes a file."""

from __future__ import annotations

import csv
import io
import os
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from hakiri_dagster.connectors.files.contents import decompressed
from hakiri_dagster.connectors.files.formats import compression_of, is_tab_separated
from hakiri_dagster.connectors.files.options import FilesOptions
from hakiri_dagster.errors import SourceError

_THREADS = min(8, 2 * (os.cpu_count() or 1))


@dataclass(frozen=True, slots=True)
class Header:
    """`names` is empty for a file without a single record."""

    path: str
    names: tuple[str, ...]


def read_headers(paths: Iterable[str], options: FilesOptions, label: str) -> tuple[Header, ...]:
    def read(path: str) -> Header:
        try:
            first = _first_record(path, options, label)
        except OSError as error:
            raise SourceError(f"{path} cannot be read: {error.strerror or error}", where=label) from error
        except (csv.Error, UnicodeError) as error:
            raise SourceError(f"{path}: its first line cannot be read: {error}", where=label) from error
        if not options.header:
            return Header(path, numbered(len(first)))
        return Header(path, _names(first, path, label))

    with ThreadPoolExecutor(_THREADS) as pool:
        return tuple(pool.map(read, paths))


def numbered(count: int) -> tuple[str, ...]:
    return tuple(f"column_{number}" for number in range(1, count + 1))


def delimiter_of(path: str, options: FilesOptions) -> str:
    return "\t" if is_tab_separated(path) and options.delimiter == "," else options.delimiter


def _first_record(path: str, options: FilesOptions, label: str) -> list[str]:
    records = csv_records(text_lines(path, options, label), delimiter_of(path, options), options)
    return next((record for record in records if record), [])


def csv_records(
    lines: Iterable[str], delimiter: str, options: FilesOptions, *, strict: bool = False
) -> Iterator[list[str]]:
    doubled = options.quote is not None and options.escape == options.quote
    return csv.reader(
        lines,
        strict=strict,
        delimiter=delimiter,
        quotechar=options.quote,
        doublequote=doubled,
        escapechar=None if doubled else options.escape,
    )


def text_lines(path: str, options: FilesOptions, label: str) -> Iterator[str]:
    charset = options.charset.python
    if compression_of(path) == "none":
        with open(path, encoding=charset, newline="") as text:
            yield from text
        return
    blocks = io.BufferedReader(_Blocks(decompressed(path, label)))
    yield from io.TextIOWrapper(blocks, encoding=charset, newline="")


class _Blocks(io.RawIOBase):
    """Blocks of bytes as a file, so that its text can be read line by line."""

    def __init__(self, blocks: Iterator[bytes]) -> None:
        self._blocks = blocks
        self._rest = b""

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: memoryview) -> int:  # type: ignore[override]  # typeshed wants any buffer
        self._rest = self._rest or next(self._blocks, b"")
        size = min(len(buffer), len(self._rest))
        buffer[:size], self._rest = self._rest[:size], self._rest[size:]
        return size


def _names(record: list[str], path: str, label: str) -> tuple[str, ...]:
    """A column without a name is called by its number, like the index that pandas writes."""
    names = tuple(name or f"column_{number}" for number, name in enumerate((n.strip() for n in record), 1))
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise SourceError(
            f"{path}: the header names {', '.join(f'`{name}`' for name in twice)} more than once",
            where=label,
            hint="rename the columns in the file",
        )
    return names
