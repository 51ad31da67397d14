"""Where the records of a CSV file end: whether each line is one, and whether any never ends."""

from __future__ import annotations

import csv
import os

import numpy as np
import numpy.typing as npt

from hakiri_dagster.connectors.files.contents import decompressed
from hakiri_dagster.connectors.files.formats import compression_of
from hakiri_dagster.connectors.files.headers import csv_records, delimiter_of, text_lines
from hakiri_dagster.connectors.files.options import FilesOptions
from hakiri_dagster.errors import SourceError

WORTH_SPLITTING = 64 << 20
_BLOCK = 8 << 20
_NEWLINES = (0x0A, 0x0D)

Bytes = npt.NDArray[np.uint8]


def records_are_lines(path: str, delimiter: str, options: FilesOptions) -> bool:
    """What the manifest declares; for a big file also what a look at it says. Small ones are not worth the look."""
    if not options.multiline:
        return options.charset.keeps_newlines
    splittable = compression_of(path) == "none" and options.charset.keeps_newlines
    if not splittable or os.path.getsize(path) < WORTH_SPLITTING:
        return False
    simple = options.escape == options.quote and max(ord(delimiter), ord(options.quote)) < 128
    return simple and quotes_are_tidy(path, delimiter, options.quote)


def refuse_unclosed_quote(path: str, options: FilesOptions, label: str) -> None:
    """Spark would take everything behind such a quote for one value, and lose the lines in it.

    An odd number of quotes is cheap to find; only then is the file parsed.
    """
    if not options.multiline:
        return
    quote = options.quote.encode(options.charset.python.removesuffix("-sig"))
    if sum(block.count(quote) for block in decompressed(path, label)) % 2 == 0:
        return
    records = csv_records(text_lines(path, options, label), delimiter_of(path, options), options, strict=True)
    last = ""
    try:
        for record in records:
            last = options.delimiter.join(record)
    except csv.Error as error:
        raise SourceError(
            f"{path}: a quote is not closed, or not doubled, in the record after {last[:80]!r}: {error}",
            where=label,
            hint="mend the quote; with `multiline = false` each line is a record of its own, whatever its quotes",
        ) from error


def quotes_are_tidy(path: str, delimiter: str, quote: str) -> bool:
    """Every opening quote follows a delimiter or newline, every closing one precedes one, no newline is between.

    Stricter than any parser, so whatever passes means the same to all of them.
    """
    inside = False
    before = _NEWLINES[0]
    separators = (ord(delimiter), *_NEWLINES)
    with open(path, "rb") as stream:
        block = stream.read(_BLOCK)
        if block.startswith(b"\xef\xbb\xbf"):
            block = block[3:]
        while block:
            following = stream.read(_BLOCK)
            after = following[0] if following else _NEWLINES[0]
            quotes = block.count(quote.encode())
            if quotes or inside:
                tidy, inside = _tidy_block(block, before, after, inside, ord(quote), separators)
                if not tidy:
                    return False
            before, block = block[-1], following
    return not inside


def _tidy_block(
    block: bytes, before: int, after: int, inside: bool, quote: int, separators: tuple[int, ...]
) -> tuple[bool, bool]:
    padded = np.frombuffer(bytes([before]) + block + bytes([after]), dtype=np.uint8)
    places = np.flatnonzero(padded[1:-1] == quote) + 1
    opening, closing = (places[1::2], places[0::2]) if inside else (places[0::2], places[1::2])
    neighbours = (*separators, quote)
    tidy = _all_in(padded[opening - 1], neighbours) and _all_in(padded[closing + 1], neighbours)
    newlines = np.flatnonzero(np.isin(padded[1:-1], _NEWLINES)) + 1
    quotes_before = np.searchsorted(places, newlines) + int(inside)
    return tidy and not bool((quotes_before % 2).any()), bool((len(places) + int(inside)) % 2)


def _all_in(values: Bytes, allowed: tuple[int, ...]) -> bool:
    return bool(np.isin(values, allowed).all())
