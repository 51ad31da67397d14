"""Where the rows of a block of COPY begin and end."""

from __future__ import annotations

import struct
from itertools import accumulate

from hakiri_dagster.destinations.postgres.encoding import is_binary

_FIELDS = struct.Struct("!h")
_LENGTH = struct.Struct("!i")


def row_bounds(block: bytes) -> list[int]:
    """The first row begins at the first of them; each ends at the next."""
    return _bounds_of_binary(block) if is_binary(block) else _bounds_of_text(block)


def _bounds_of_binary(block: bytes) -> list[int]:
    """A row is the number of its fields, and of each field the length, -1 for NULL, and the bytes."""
    bounds, at, end = [0], 0, len(block)
    while at < end:
        (fields,) = _FIELDS.unpack_from(block, at)
        at += _FIELDS.size
        for _ in range(fields):
            (length,) = _LENGTH.unpack_from(block, at)
            at += _LENGTH.size + max(length, 0)
        bounds.append(at)
    return bounds


def _bounds_of_text(block: bytes) -> list[int]:
    """A newline within a value is escaped."""
    return list(accumulate((len(line) + 1 for line in block.split(b"\n")[:-1]), initial=0))
