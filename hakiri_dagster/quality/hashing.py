"""Numbers for values: the same for equal ones, and for others hardly ever. Whole columns at a time.

Each value is words of 64 bits, and each half of a word has multipliers of its own, drawn by the seed. The upper half of
a sum of products are 32 bits that two different values share with a chance of one in 2³², whatever the values are
(multilinear hashing): who does not know the seed cannot prepare values that collide.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as at
import xxhash

from hakiri_dagster.planning.arrow_types import is_bytes, is_text

Words = npt.NDArray[np.uint64]

_SHORT = 64
"""Bytes of a text that are hashed as they are; of a longer one a digest of 128 bits is, by the same seed."""
_MOST_WORDS = 1 + _SHORT // 8
_LOWER, _UPPER = np.uint64(0xFFFFFFFF), np.uint64(32)
_FIRST_BYTES = np.array([(1 << 8 * size) - 1 for size in range(9)], dtype=np.uint64)


def hashed(columns: Sequence[Iterable[Words]], rows: int, seed: int, *, words: int) -> Words:
    """So many words for each row, by the words of its columns."""
    draws = 2 * words
    multipliers = _multipliers(seed, draws, len(columns))
    sums = np.repeat(multipliers[0][:, None], rows, axis=1)
    product = np.empty(rows, dtype=np.uint64)
    for number, column in enumerate(columns):
        for place, word in enumerate(column):
            letter = 1 + 2 * (number * _MOST_WORDS + place)
            for half, drawn in ((word & _LOWER, multipliers[letter]), (word >> _UPPER, multipliers[letter + 1])):
                if half.any():
                    for draw in range(draws):
                        np.multiply(half, drawn[draw], out=product)
                        sums[draw] += product
    return np.stack([(sums[2 * one] & ~_LOWER) | (sums[2 * one + 1] >> _UPPER) for one in range(words)], axis=1)


@lru_cache(maxsize=16)
def _multipliers(seed: int, draws: int, columns: int) -> Words:
    letters = 1 + 2 * columns * _MOST_WORDS
    drawn = hashlib.shake_256(seed.to_bytes(8, "little")).digest(8 * draws * letters)
    return np.frombuffer(drawn, dtype="<u8").reshape(letters, draws)


def words_of(column: pa.Array, seed: int) -> Iterator[Words]:
    """Of values none of which is NULL: at most nine words each, where all that come after are 0. Zero has no sign here,
    and NaN is equal to itself, as in PostgreSQL."""
    kind = column.type
    if at.is_dictionary(kind):
        yield from words_of(column.dictionary_decode(), seed)
    elif is_text(kind) or is_bytes(kind):
        yield from _words_of_texts(column.cast(pa.large_binary()), seed)
    elif at.is_decimal(kind):
        wide = column.cast(pa.decimal128(38, kind.scale))
        halves = np.frombuffer(wide.buffers()[1], dtype=np.uint64)[2 * wide.offset :][: 2 * len(wide)].reshape(-1, 2)
        yield from (halves[:, 0], halves[:, 1])
    else:
        yield np.ascontiguousarray(_numbers(column)).view(np.uint64)


def _numbers(column: pa.Array) -> npt.NDArray[Any]:
    kind = column.type
    if at.is_floating(kind):
        numbers = np.asarray(column.cast(pa.float64())) + 0.0
        numbers[np.isnan(numbers)] = np.nan
        return numbers
    if at.is_date(kind):
        column = column.cast(pa.date32()).cast(pa.int32())
    elif at.is_timestamp(kind):
        column = column.cast(pa.timestamp("us", kind.tz))
    elif at.is_time(kind):
        column = column.cast(pa.time64("us"))
    return np.asarray(pc.cast(column, pa.int64()))


def _words_of_texts(texts: pa.LargeBinaryArray, seed: int) -> Iterator[Words]:
    """The length, and the bytes eight at a time."""
    offsets = np.frombuffer(texts.buffers()[1], dtype=np.int64)[texts.offset :][: len(texts) + 1]
    lengths = np.diff(offsets)
    yield lengths.view(np.uint64)
    starts = offsets[:-1] - offsets[0]
    held = texts.buffers()[2]
    data = np.zeros(offsets[-1] - offsets[0] + 8, dtype=np.uint8)
    if held is not None:
        data[:-8] = np.frombuffer(held, dtype=np.uint8)[offsets[0] : offsets[-1]]
    from_each = np.ndarray((len(data) - 7,), dtype="<u8", buffer=data, strides=(1,))
    long = np.flatnonzero(lengths > _SHORT)
    digests = _digests([data[starts[one] : starts[one] + lengths[one]].tobytes() for one in long], seed)
    for place in range(0, min(int(lengths.max(initial=0)), _SHORT), 8):
        word = from_each[np.minimum(starts + place, len(data) - 8)]
        word &= _FIRST_BYTES[np.clip(lengths - place, 0, 8)]
        if len(long):
            word[long] = digests[:, place // 8] if place < 16 else 0
        yield word


def _digests(values: Sequence[bytes], seed: int) -> Words:
    digest = xxhash.xxh3_128_digest
    joined = b"".join([digest(value, seed) for value in values])
    return np.frombuffer(joined, dtype=np.uint64).reshape(-1, 2)
