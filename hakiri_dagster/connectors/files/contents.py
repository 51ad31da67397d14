"""What a file holds, as bytes: its hash, and whether its text can be decoded. New and changed files only."""

from __future__ import annotations

import codecs
import hashlib
import os
from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import IO

import pyarrow as pa

from hakiri_dagster.connectors.contract import FileState
from hakiri_dagster.connectors.files.charsets import Charset
from hakiri_dagster.connectors.files.formats import compression_of
from hakiri_dagster.connectors.files.listing import ListedFile
from hakiri_dagster.errors import SourceError, SourceUnavailable

_HASH_BYTES = 16
_BLOCK = 1 << 20
_THREADS = min(8, 2 * (os.cpu_count() or 1))


@dataclass(frozen=True, slots=True)
class FileStates:
    states: tuple[FileState, ...]
    fresh: frozenset[str]
    """Paths whose contents were not known before."""
    broken: dict[str, SourceError]
    """By path; the state then only tells the file from what it was and will be."""
    warnings: tuple[str, ...]


def file_states(
    files: Iterable[ListedFile],
    known: Mapping[str, FileState],
    *,
    cursor: str | None,
    read_as: str,
    text: Charset | None,
    label: str,
) -> FileStates:
    """`text` is the character set of a text format, whose bytes are decoded once to see that they can be."""

    broken: dict[str, SourceError] = {}

    def look(file: ListedFile) -> FileState | None:
        before = known.get(file.path)
        fingerprint = _fingerprint(file, read_as, cursor)
        if before is not None and before.fingerprint == fingerprint:
            return before
        try:
            content_hash = _content_hash(file, text, label)
        except SourceError as error:
            broken[file.path] = error
            content_hash = _stand_in(file)
        return None if content_hash is None else FileState(file.path, fingerprint, content_hash)

    listed = tuple(files)
    with ThreadPoolExecutor(_THREADS) as pool:
        states = tuple(pool.map(look, listed))
    present = tuple(state for state in states if state is not None)
    gone = [file.path for file, state in zip(listed, states, strict=True) if state is None]
    return FileStates(
        states=present,
        fresh=frozenset(s.path for s in present if known.get(s.path) is not s),
        broken=broken,
        warnings=tuple(f"{path} vanished while it was looked at" for path in gone),
    )


def _stand_in(file: ListedFile) -> str:
    text = f"{file.path}\0{file.size}\0{file.mtime_ns}"
    return hashlib.blake2b(text.encode(errors="surrogateescape"), digest_size=_HASH_BYTES).hexdigest()


def source_fingerprint(states: Iterable[FileState]) -> str:
    """Changes when a file comes, goes or changes its contents; not when one is merely touched."""
    digest = hashlib.blake2b(digest_size=_HASH_BYTES)
    for state in sorted(states, key=lambda s: s.path):
        digest.update(f"{state.path}\0{state.content_hash}\0".encode())
    return digest.hexdigest()


def refuse_changed(states: Iterable[FileState], label: str) -> None:
    """What is about to be read must be what was discovered, or rows would carry the wrong file hash."""
    for state in states:
        try:
            status = os.stat(state.path)
        except FileNotFoundError:
            raise SourceError(
                f"{state.path} has vanished since it was looked at", where=label, hint="run again"
            ) from None
        if state.fingerprint.split("-")[:2] != [str(status.st_size), str(status.st_mtime_ns)]:
            raise SourceError(f"{state.path} has changed since it was looked at", where=label, hint="run again")


def _fingerprint(file: ListedFile, read_as: str, cursor: str | None) -> str:
    """What is remembered of a file belongs to one way to read it, and to one cursor."""
    return "-".join([str(file.size), str(file.mtime_ns), *filter(None, [read_as, cursor])])


def _content_hash(file: ListedFile, text: Charset | None, label: str) -> str | None:
    """None if the file is gone."""
    try:
        with open(file.path, "rb") as stream:
            digest = _digest(stream, file.path, text, label)
            after = os.fstat(stream.fileno())
    except FileNotFoundError:
        return None
    except OSError as error:
        raise SourceError(
            f"{file.path} cannot be read: {error.strerror or error}", where=label, hint="check its permissions"
        ) from error
    if (after.st_size, after.st_mtime_ns) != (file.size, file.mtime_ns):
        raise SourceUnavailable(
            f"{file.path} is being written",
            where=label,
            hint="write files elsewhere and move them here when they are complete",
        )
    return digest


def _digest(stream: IO[bytes], path: str, text: Charset | None, label: str) -> str:
    digest = hashlib.blake2b(digest_size=_HASH_BYTES)
    plain = compression_of(path) == "none"
    decode = _Decoding(text, path, label) if text is not None and plain else None
    while block := stream.read(_BLOCK):
        digest.update(block)
        if decode is not None:
            decode.feed(block)
    if decode is not None:
        decode.feed(b"", final=True)
    elif text is not None:
        _decode_compressed(path, text, label)
    return digest.hexdigest()


def _decode_compressed(path: str, text: Charset, label: str) -> None:
    decode = _Decoding(text, path, label)
    for block in decompressed(path, label):
        decode.feed(block)
    decode.feed(b"", final=True)


def decompressed(path: str, label: str) -> Iterator[bytes]:
    """A file cut off in the middle of a compressed stream is told here, before any row of it is read."""
    codec = compression_of(path)
    try:
        with pa.input_stream(path, compression=None if codec == "none" else codec) as stream:
            while block := stream.read(_BLOCK):
                yield block
    except OSError as error:
        if isinstance(error, FileNotFoundError | PermissionError):
            raise
        raise SourceError(
            f"{path} is not a complete {codec} file: {error}", where=label, hint="write it again"
        ) from error


class _Decoding:
    """Spark would put U+FFFD where bytes are wrong, and say nothing."""

    def __init__(self, text: Charset, path: str, label: str) -> None:
        self._decoder = codecs.getincrementaldecoder(text.python)()
        self._path, self._label, self._encoding = path, label, text.python.removesuffix("-sig").upper()
        self._seen = 0

    def feed(self, block: bytes, *, final: bool = False) -> None:
        try:
            self._decoder.decode(block, final)
        except UnicodeError as error:
            raise SourceError(
                f"{self._path} is not {self._encoding}, near byte {self._seen + getattr(error, 'start', 0)}",
                where=self._label,
                hint='declare the encoding, for example `encoding = "windows-1252"`, or write the file again',
            ) from error
        self._seen += len(block)
