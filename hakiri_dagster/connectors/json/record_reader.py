"""The members of many JSON objects as columns of raw text: each value with the very characters that were written.

Decoded and written again, `1.10` would become `1.1`, and a number of thirty digits another number. msgspec cuts the
values out without decoding them. What it lets pass is checked for many records at once: that the text is UTF-8, and
that no key is there twice. Only where such a check fails are records read one by one (`strict.py`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Final
from uuid import uuid4

import msgspec
import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
from msgspec import Raw
from msgspec.structs import astuple

from hakiri_dagster.connectors.json.raw_text import is_whole, written
from hakiri_dagster.connectors.json.strict import UnreadableRecord, decode_strictly, read_members

MOST_NAMES: Final = 5_000
"""More different keys than any table has columns: those beyond are read one by one."""

_AT_ONCE: Final = 1_000
"""Records whose values are in memory as objects: with more of them, they no longer fit a processor's cache."""

_MISSING: Final = Raw(b"")
_BROKEN: Final = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)
_NULL: Final = b"null"
_NULL_BYTES: Final = len(_NULL)
_N: Final = ord("n")

Offsets = npt.NDArray[np.int64]
_Row = Sequence[Raw | bytes]


@dataclass(frozen=True, slots=True)
class RawRecords:
    """`columns`: by key, the JSON text of each record's value; NULL where it is missing or `null`. `reasons`: why a
    record cannot be loaded, by its index; all its values are NULL then. `unmapped`: of records that were read one by
    one, the keys that are no column's."""

    count: int
    columns: dict[str, pa.LargeStringArray]
    reasons: dict[int, str]
    unmapped: dict[int, tuple[str, ...]]


class RecordReader:
    """Reads blocks of records, one after the other. The keys that it meets become columns, behind the given ones.

    `lenient_names`: a record with a key that no column can be called after (half of a surrogate pair) is loaded without
    that member, which is reported as unmapped. Otherwise the record is refused.
    """

    def __init__(self, names: Iterable[str] = (), *, lenient_names: bool = False) -> None:
        self.names: list[str] = []
        self._places: dict[str, int] = {}
        self._lenient_names = lenient_names
        self._add_names(names)

    def read(self, records: Sequence[bytes]) -> RawRecords:
        """`records`: each the text of one object, in UTF-8, without a byte order mark."""
        if len(records) <= _AT_ONCE:
            return self._read_some(records)
        starts = range(0, len(records), _AT_ONCE)
        return self._stacked([self._read_some(records[start : start + _AT_ONCE]) for start in starts])

    def _stacked(self, parts: Sequence[RawRecords]) -> RawRecords:
        """Keys that were met late are missing in the parts before."""
        columns = {
            name: pa.concat_arrays([part.columns.get(name, pa.nulls(part.count, pa.large_string())) for part in parts])
            for name in self.names
        }
        reasons: dict[int, str] = {}
        unmapped: dict[int, tuple[str, ...]] = {}
        for number, part in enumerate(parts):
            reasons |= {number * _AT_ONCE + index: reason for index, reason in part.reasons.items()}
            unmapped |= {number * _AT_ONCE + index: names for index, names in part.unmapped.items()}
        return RawRecords(sum(part.count for part in parts), columns, reasons, unmapped)

    def _read_some(self, records: Sequence[bytes]) -> RawRecords:
        block = b"".join(records)
        rows = self._decode_all(records)
        if rows is not None and _is_utf8(block) and not self._may_hide_keys(block):
            columns = (
                [_joined(values) for values in zip(*rows, strict=True)] if rows else [_joined(())] * len(self.names)
            )
            if self._count_colons(columns) == block.count(b":") and not any(map(_repeats_keys, columns)):
                return self._assembled(len(records), columns, {}, {})
        return self._read_each(records)

    def _decode_all(self, records: Sequence[bytes]) -> list[_Row] | None:
        try:
            return list(map(astuple, map(self._decode, records)))
        except _BROKEN:
            return None

    def _count_colons(self, columns: Sequence[_Column]) -> int:
        """Return how many colons the records hold if no key is there twice: one behind each key, and those within keys
        and values. A key that is there twice has one more, for only its last value is among the columns."""
        return sum(
            column.present * (1 + colons) + column.text.count(b":")
            for column, colons in zip(columns, self._colons, strict=True)
        )

    def _may_hide_keys(self, block: bytes) -> bool:
        """Colons that are escaped within keys are not counted as they are written."""
        return any(self._colons) and (b"\\u003a" in block or b"\\u003A" in block)

    def _read_each(self, records: Sequence[bytes]) -> RawRecords:
        reasons: dict[int, str] = {}
        unmapped: dict[int, tuple[str, ...]] = {}
        rows: list[_Row] = []
        for index, record in enumerate(records):
            row: _Row = ()
            unknown: tuple[str, ...] = ()
            try:
                row, unknown = self._read_one(record)
            except UnreadableRecord as error:
                reasons[index] = str(error)
            if unknown:
                unmapped[index] = unknown
            rows.append(row)
        width = len(self.names)
        filled = [row if len(row) == width else (*row, *[b""] * (width - len(row))) for row in rows]
        columns = [_joined(values) for values in zip(*filled, strict=True)]
        return self._assembled(len(records), columns, reasons, unmapped)

    def _read_one(self, record: bytes) -> tuple[_Row, tuple[str, ...]]:
        if _is_utf8(record) and not self._may_hide_keys(record):
            try:
                row = astuple(self._decode(record))
            except _BROKEN:
                return self._read_strictly(record)
            text = b"".join(row)
            keys = sum(1 + colons for value, colons in zip(row, self._colons, strict=True) if len(value))
            if b"{" not in text and keys + text.count(b":") == record.count(b":"):
                return row, ()
        return self._read_strictly(record)

    def _read_strictly(self, record: bytes) -> tuple[_Row, tuple[str, ...]]:
        try:
            text = record.decode()
        except UnicodeDecodeError as error:
            raise UnreadableRecord(
                f"not UTF-8, at byte {error.start + 1}: is the file in another `encoding`?"
            ) from None
        members = read_members(text)
        halves = [name for name in members if not is_whole(name)]
        if halves and not self._lenient_names:
            raise UnreadableRecord(f"the key {written(halves[0])} holds half of a surrogate pair")
        known = [name for name in members if name not in halves]
        self._add_names(known)
        row = [members.get(name, "").encode() for name in self.names]
        unmapped = (name for name in members if name not in self._places and members[name] != "null")
        return row, tuple(unmapped)

    def _add_names(self, names: Iterable[str]) -> None:
        new = [name for name in dict.fromkeys(names) if name not in self._places]
        new = new[: max(MOST_NAMES - len(self.names), 0)] if self.names else new
        if not new and self.names:
            return
        self.names += new
        self._places = {name: place for place, name in enumerate(self.names)}
        self._colons = [name.count(":") for name in self.names]
        self._decode = _decoder(self.names)

    def _assembled(
        self,
        count: int,
        columns: Sequence[_Column],
        reasons: dict[int, str],
        unmapped: dict[int, tuple[str, ...]],
    ) -> RawRecords:
        if not columns:
            columns = [_joined([b""] * count) for _ in self.names]
        texts = {name: column.texts for name, column in zip(self.names, columns, strict=True)}
        return RawRecords(count, texts, reasons, unmapped)


@dataclass(frozen=True, slots=True)
class _Column:
    """The values of one key end to end; an empty one is missing."""

    text: bytes
    lengths: Offsets

    @property
    def present(self) -> int:
        return int(np.count_nonzero(self.lengths))

    @property
    def texts(self) -> pa.LargeStringArray:
        offsets = np.zeros(len(self.lengths) + 1, dtype=np.int64)
        np.cumsum(self.lengths, out=offsets[1:])
        present = self.lengths > 0
        if _NULL in self.text:
            bytes_ = np.frombuffer(self.text + b"\0", dtype=np.uint8)
            present &= ~((self.lengths == _NULL_BYTES) & (bytes_[offsets[:-1]] == _N))
        validity = None if present.all() else pa.array(present).buffers()[1]
        buffers = [validity, pa.py_buffer(offsets), pa.py_buffer(self.text)]
        return pa.Array.from_buffers(pa.large_string(), len(self.lengths), buffers)


def _joined(values: Sequence[Raw | bytes]) -> _Column:
    return _Column(b"".join(values), np.fromiter(map(len, values), dtype=np.int64, count=len(values)))


def _is_utf8(text: bytes) -> bool:
    if text.isascii():
        return True
    try:
        text.decode()
    except UnicodeDecodeError:
        return False
    return True


def _repeats_keys(column: _Column) -> bool:
    """Whether an object within one of the values may have a key twice. An object with one key does not."""
    if b"{" not in column.text:
        return False
    texts = column.texts
    nested = texts.filter(pc.greater(pc.count_substring(texts, ":"), 1))
    nested = nested.filter(pc.match_substring_regex(nested, r"^[\[{]"))
    try:
        decode_strictly(f"[{','.join(nested.to_pylist())}]")
    except UnreadableRecord:
        return True  # or it cannot be told from here
    return False


def _decoder(names: Sequence[str]) -> Callable[[bytes], Any]:
    """Return a function that cuts the values of these keys out of a record, in their order."""
    fields: list[tuple[str, type, Any]] = []
    for place, name in enumerate(names):
        # msgspec takes no name that JSON writes with an escape. Nothing matches such a field: its records are read one
        # by one, as their key is an unknown one.
        escaped = any(character in '"\\' or character < " " for character in name)
        field = msgspec.field(default=_MISSING, name=uuid4().hex if escaped else name)
        fields.append((f"field_{place}", Raw, field))
    record = msgspec.defstruct("Record", fields, forbid_unknown_fields=True, gc=False)
    return msgspec.json.Decoder(record).decode
