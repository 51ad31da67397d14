"""Dates and times that hide in the texts of a format which has numbers of its own.

Each text has a signature, a set of bits that says which types could hold it; the bits of a column are united.
"""

from __future__ import annotations

from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

from hakiri_dagster.connectors.files.text_values import YEAR, ZONE

_DATE, _ZONELESS, _ZONED, _TEXT = (1 << bit for bit in range(4))
DAY: Final = rf"{YEAR}-\d{{2}}-\d{{2}}"
_CLOCK: Final = r"[ T](?:[01]?\d|2[0-3]):[0-5]?\d(?::[0-5]?\d(?:\.\d{1,9})?)?"
_TIMES: Final = (
    (rf"^{DAY}$", _DATE),
    (rf"^{DAY}{_CLOCK}$", _ZONELESS),
    (rf"^{DAY}{_CLOCK}{ZONE}$", _ZONED),
)
_TYPES: Final = {
    _DATE: "date",
    _ZONELESS: "timestamp_ntz",
    _DATE | _ZONELESS: "timestamp_ntz",
    _ZONED: "timestamp",
}
TIMES_BY_TYPE: Final = {
    "date": rf"^{DAY}$",
    "timestamp_ntz": rf"^{DAY}(?:{_CLOCK})?$",
    "timestamp": rf"^{DAY}{_CLOCK}{ZONE}$",
}
"""By type, the texts that inference takes for it."""


def signature(values: pa.Array) -> int:
    """The united bits of some texts."""
    texts = pc.utf8_trim_whitespace(values.drop_null())
    texts = texts.filter(pc.not_equal(texts, ""))
    bits = 0
    for pattern, bit in _TIMES:
        texts, matching = split_matching(texts, pattern)
        if len(matching):
            bits |= bit if are_days(matching) else _TEXT
    return bits | (_TEXT if len(texts) else 0)


def split_matching(texts: pa.Array, pattern: str) -> tuple[pa.Array, pa.Array]:
    """Return the texts that do not match, and those that do."""
    if not len(texts):
        return texts, texts
    mask = pc.match_substring_regex(texts, pattern)
    return texts.filter(pc.invert(mask)), texts.filter(mask)


def are_days(texts: pa.Array) -> bool:
    """The thirtieth of February is a text."""
    try:
        pc.utf8_slice_codeunits(texts, 0, 10).cast(pa.date32())
    except pa.ArrowInvalid:
        return False
    return True


def is_plain_text(signature: int) -> bool:
    """Whether a value is among them that is nothing but text."""
    return bool(signature & _TEXT)


def type_of(signature: int) -> str | None:
    return _TYPES.get(signature, "string") if signature else None
