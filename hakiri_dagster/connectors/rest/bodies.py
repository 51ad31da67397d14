"""The body of an answer, read in pieces, so that one without an end fills no memory."""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from contextlib import suppress
from http.client import HTTPException, HTTPResponse, IncompleteRead

_PIECE = 64 << 10
_GZIP = 16 + zlib.MAX_WBITS


class TooLarge(Exception):
    """More than was allowed for."""


class UnknownEncoding(Exception):
    """The body is packed in a way that was not asked for."""


def read_body(answer: HTTPResponse, most_bytes: int) -> bytes:
    """Unpacked. Raises TooLarge, UnknownEncoding, and, where it ends before its end, IncompleteRead."""
    if answer.length is not None and answer.length > most_bytes:
        raise TooLarge
    pieces = _pieces(answer)
    match _encoding(answer):
        case "identity":
            return _within(pieces, most_bytes)
        case "gzip" | "x-gzip":
            return _within(_unpacked(_limited(pieces, most_bytes)), most_bytes)
        case other:
            raise UnknownEncoding(other)


def beginning_of_body(answer: HTTPResponse, most_bytes: int) -> bytes:
    """Of an answer that holds no records, only what is wrong. What cannot be read of it is left out: its status has
    said enough."""
    packed = b""
    with suppress(OSError, HTTPException):
        packed = answer.read(most_bytes)
    match _encoding(answer):
        case "identity":
            return packed
        case "gzip" | "x-gzip":
            with suppress(zlib.error):
                return zlib.decompressobj(_GZIP).decompress(packed, most_bytes)
    return b""


def ends_with_its_connection(answer: HTTPResponse) -> bool:
    """Nothing says how long the body is, so that one that was cut off looks whole."""
    return answer.length is None and not answer.chunked


def _encoding(answer: HTTPResponse) -> str:
    return (answer.headers.get("Content-Encoding") or "identity").strip().lower()


def _within(pieces: Iterator[bytes], most_bytes: int) -> bytes:
    body = bytearray()
    for piece in _limited(pieces, most_bytes):
        body += piece
    return bytes(body)


def _limited(pieces: Iterator[bytes], most_bytes: int) -> Iterator[bytes]:
    taken = 0
    for piece in pieces:
        taken += len(piece)
        if taken > most_bytes:
            raise TooLarge
        yield piece


def _pieces(answer: HTTPResponse) -> Iterator[bytes]:
    while piece := answer.read(_PIECE):
        yield piece
    if answer.length:  # http.client does not say that the rest never came
        raise IncompleteRead(b"", answer.length)


def _unpacked(pieces: Iterator[bytes]) -> Iterator[bytes]:
    """A few packed bytes may hold gigabytes: no more is unpacked at once than fits a piece. What follows the end of a
    packed stream is another one, and no part of the body is left out."""
    unpacking = None
    for piece in pieces:
        while piece:
            if unpacking is None or unpacking.eof:
                unpacking = zlib.decompressobj(_GZIP)
            try:
                yield unpacking.decompress(piece, _PIECE)
            except zlib.error:
                raise IncompleteRead(b"") from None
            piece = unpacking.unused_data if unpacking.eof else unpacking.unconsumed_tail
    if unpacking is not None and not unpacking.eof:
        raise IncompleteRead(b"")
