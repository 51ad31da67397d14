"""The lines of JSON files, block by block: where each part of a file begins and ends, and its lines in UTF-8.

A line ends with a newline, and with nothing else: a carriage return is a blank to JSON. Lines of blanks are no records.
"""

from __future__ import annotations

import codecs
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Final

from hakiri_dagster.connectors.files.charsets import Charset
from hakiri_dagster.connectors.files.contents import decompressed
from hakiri_dagster.connectors.files.formats import compression_of
from hakiri_dagster.errors import SourceError

PART_BYTES: Final = 32 << 20
OPENING_BYTES: Final = 1 << 20
_BLOCK: Final = 2 << 20
_BLANK: Final = b" \t\r"


@dataclass(frozen=True, slots=True)
class LineRange:
    """The lines of a file that begin at `start` or behind it, and before `end`; None: up to the end of the file."""

    path: str
    start: int = 0
    end: int | None = None


def split_files(sizes: Iterable[tuple[str, int]]) -> tuple[tuple[LineRange, ...], ...]:
    """Share files out to tasks, by their paths and sizes: large ones in parts of a size, small ones together. A
    compressed file has no parts."""
    ranges: list[tuple[LineRange, int]] = []
    for path, size in sizes:
        if compression_of(path) != "none" or size <= PART_BYTES:
            ranges.append((LineRange(path), size))
        else:
            starts = range(0, size, PART_BYTES)
            ranges += [(LineRange(path, start, min(start + PART_BYTES, size)), PART_BYTES) for start in starts]
    parts: list[tuple[LineRange, ...]] = []
    part: list[LineRange] = []
    filled = 0
    for one, size in ranges:
        if part and filled + size > PART_BYTES:
            parts.append(tuple(part))
            part, filled = [], 0
        part.append(one)
        filled += size + OPENING_BYTES
    return (*parts, tuple(part)) if part else tuple(parts)


def read_lines(one: LineRange, charset: Charset, label: str) -> Iterator[list[bytes]]:
    """Yield blocks of lines in UTF-8, blank ones among them. A byte order mark at the head of a line is left out: files
    that begin with one may have been put together."""
    blocks = decompressed(one.path, label) if one.end is None else _blocks_between(one.path, one.start, one.end)
    try:
        for block in _whole_lines(blocks):
            lines = (block if charset.is_utf8 else block.decode(charset.python).encode()).split(b"\n")
            marked = codecs.BOM_UTF8 in block
            yield [line.removeprefix(codecs.BOM_UTF8) for line in lines] if marked else lines
    except FileNotFoundError as error:
        raise SourceError(f"{one.path} has vanished", where=label, hint="run again") from error
    except OSError as error:
        raise SourceError(
            f"{one.path} cannot be read: {error.strerror or error}", where=label, hint="check its permissions"
        ) from error


def records_of(lines: Sequence[bytes]) -> list[bytes]:
    return [line for line in lines if line.strip(_BLANK)]


def _blocks_between(path: str, start: int, end: int) -> Iterator[bytes]:
    """The line that begins before `start` belongs to the part before, also if it begins right there: whether it does,
    tells the byte before."""
    with open(path, "rb") as file:
        if start:
            file.seek(start - 1)
            file.readline()
        while (at := file.tell()) < end:
            block = file.read(min(_BLOCK, end - at))
            if at + len(block) == end and not block.endswith(b"\n"):
                block += file.readline()
            if not block:
                return
            yield block


def _whole_lines(blocks: Iterable[bytes]) -> Iterator[bytes]:
    """Cut blocks behind their last newline, which is left out; a line may be longer than many blocks."""
    rest: list[bytes] = []
    for block in blocks:
        head, newline, tail = block.rpartition(b"\n")
        if not newline:
            rest.append(block)
            continue
        yield b"".join((*rest, head))
        rest = [tail] if tail else []
    if rest:
        yield b"".join(rest)


def number_records(path: str, charset: Charset, label: str) -> Iterator[int]:
    """Yield the number of each line of a file that is not blank, counted from 1."""
    lines = chain.from_iterable(read_lines(LineRange(path), charset, label))
    return (number for number, line in enumerate(lines, 1) if line.strip(_BLANK))
