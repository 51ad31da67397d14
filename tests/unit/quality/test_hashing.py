"""Which values have which hashes: wherever they lie, and whatever lies beside them."""

from __future__ import annotations

import random
from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pytest

from hakiri_dagster.quality.hashing import hashed, words_of

SEED = 7


def hashes(*columns: pa.Array, seed: int = SEED, words: int = 2) -> list[tuple[int, ...]]:
    found = hashed([words_of(column, seed) for column in columns], len(columns[0]), seed, words=words)
    return [tuple(map(int, row)) for row in found]


def texts_that_hardly_differ() -> Sequence[str]:
    """Of all lengths around where words end, and where texts are long, with one character other at each place."""
    texts = [""]
    for length in (1, 7, 8, 9, 15, 16, 17, 31, 32, 63, 64, 65, 66, 71, 72, 73, 130, 1000):
        plain = "a" * length
        texts += [plain, *(plain[:place] + "b" + plain[place + 1 :] for place in range(length))]
        texts += ["\0" * length]
    return texts


def test_texts_that_differ_in_one_place_or_in_length_have_other_hashes() -> None:
    texts = texts_that_hardly_differ()
    assert len(set(hashes(pa.array(texts)))) == len(texts)
    assert len(set(hashes(pa.array(texts), words=1))) == len(texts)


def test_a_hash_is_of_the_value_alone() -> None:
    texts = [*texts_that_hardly_differ()]
    told = dict(zip(texts, hashes(pa.array(texts)), strict=True))
    random.Random(3).shuffle(texts)
    for kind in (pa.string(), pa.large_string(), pa.string_view()):
        shuffled = pa.array(texts, kind)
        assert hashes(shuffled.slice(40)) == [told[text] for text in texts[40:]]
    assert [hashes(pa.array([text]))[0] for text in texts[:60]] == [told[text] for text in texts[:60]]


def test_of_many_numbers_in_a_row_no_two_have_the_same() -> None:
    numbers = pa.array(np.arange(200_000))
    assert len(set(hashes(numbers))) == len(numbers)
    assert len(set(hashes(numbers, words=1))) == len(numbers)


@pytest.mark.parametrize("bit", [0, 31, 32, 62, 63])
def test_what_differs_in_one_bit_of_two_columns_is_told_apart(bit: int) -> None:
    """A sum of whole words times odd numbers would not see two highest bits."""
    words = np.array([0, 1 << bit], dtype=np.uint64)
    ones, others = (pa.array(words[list(chosen)].view(np.int64)) for chosen in ((0, 0, 1, 1), (0, 1, 0, 1)))
    assert len(set(hashes(ones, others))) == 4


def test_every_seed_has_hashes_of_its_own() -> None:
    values = pa.array([1, 2, 3])
    assert not {*hashes(values, seed=1)} & {*hashes(values, seed=2)}
    long = pa.array(["x" * 100])
    assert hashes(long, seed=1) != hashes(long, seed=2)


def test_no_rows_have_no_hashes() -> None:
    for kind in (pa.string(), pa.binary(), pa.int64(), pa.decimal128(10, 2)):
        assert hashes(pa.array([], kind)) == []
