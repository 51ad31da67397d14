"""JSON as the text that it is: each record with the very characters that the API sent.

Decoded and written again, `1.10` would become `1.1`, and a number of thirty digits another number.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any, Final

_BLANK = re.compile(r"[ \t\n\r]*")
_HALF = re.compile(r"[\ud800-\udfff]")
_ABSENT: Final = object()
_LONG_INTEGER: Final = 4000
_OF_A_RECORD: Final = 64
_OF_A_VALUE: Final = 8
"""Bytes of a body that each counts for, however short it is: what is made of it takes more than that, and a MiB of
`1,`, or of `{},`, would take 70."""


def _no_constant(name: str) -> Any:
    raise ValueError(f"{name} is no JSON")


def _integer(digits: str) -> int | Decimal:
    """Python converts no integer of more than 4,300 digits."""
    return int(digits) if len(digits) < _LONG_INTEGER else Decimal(digits)


_DECODER = json.JSONDecoder(parse_int=_integer, parse_constant=_no_constant)


class NotJson(Exception):
    """The text is no JSON document."""


class TooMany(Exception):
    """More records, or values, than there is room for."""


@dataclass(frozen=True, slots=True)
class Record:
    """`value` is the decoded `text`."""

    text: str
    value: Any = field(repr=False)


@dataclass(frozen=True, slots=True)
class Member:
    """One member of an object: its text is that of the value alone."""

    name: str
    text: str
    value: Any = field(repr=False)


@dataclass(frozen=True, slots=True)
class Document:
    """What surrounds the records, decoded; and what was found where they should be: records, or another value."""

    around: Any
    records: tuple[Record, ...] | None
    instead: Any = None

    def at(self, path: Sequence[str]) -> Any:
        """None where nothing is."""
        return value_at(self.around, path)


def written(text: str) -> str:
    """As JSON. Half of a character can be escaped there, and stays so, as no UTF-8 holds one."""
    return json.dumps(text, ensure_ascii=not is_whole(text))


def is_whole(text: str) -> bool:
    return text.isascii() or _HALF.search(text) is None


def read_document(body: bytes, records_path: Sequence[str], room: int = sys.maxsize) -> Document:
    """Raises NotJson, and TooMany before what is made of a body takes many times the bytes that there is `room` for."""
    if sum(map(body.count, (b",", b"[", b"{"))) > room // _OF_A_VALUE:
        raise TooMany(f"{room // _OF_A_VALUE:,} values")
    try:
        text = body.decode(json.detect_encoding(body)).removeprefix("\ufeff")
        around, records, instead, end = _value(text, _skip(text, 0), list(records_path), room // _OF_A_RECORD)
    except (ValueError, RecursionError, LookupError) as error:
        raise NotJson(str(error)) from None
    if _skip(text, end) != len(text):
        raise NotJson(f"something follows the document, at character {end}")
    return Document(around, records, None if instead is _ABSENT else instead)


def elements_of(text: str) -> Iterator[Record]:
    """Of the text of a list, one by one."""
    for element, _ in _elements(text, _skip(text, _skip(text, 0) + 1)):
        yield element


def object_of(members: Iterable[Member]) -> Record:
    """With the members' very texts; of those that share a name, the value is the last one's, as JSON is read."""
    found = tuple(members)
    text = ",".join(f"{written(member.name)}:{member.text}" for member in found)
    return Record(f"{{{text}}}", {member.name: member.value for member in found})


def members_of(text: str) -> Iterator[Member]:
    """Of the text of an object."""
    at = _skip(text, _skip(text, 0) + 1)
    while text[at] != "}":
        name, at = _DECODER.raw_decode(text, at)
        start = _skip(text, _skip(text, at) + 1)
        value, at = _DECODER.raw_decode(text, start)
        yield Member(name, text[start:at], value)
        at = _skip(text, at)
        if text[at] == ",":
            at = _skip(text, at + 1)


def value_at(value: Any, path: Sequence[str]) -> Any:
    for name in path:
        if not isinstance(value, Mapping):
            return None
        value = value.get(name)
    return value


_Found = tuple[Any, tuple[Record, ...] | None, Any, int]
"""The value without the records, the records, what is there instead of them, and where the value ends."""


def _value(text: str, at: int, path: Sequence[str], most: int) -> _Found:
    if not path:
        return _records(text, at, most)
    if text[at : at + 1] == "{":
        return _object(text, at, path, most)
    value, end = _DECODER.raw_decode(text, at)
    return value, None, _ABSENT, end


def _object(text: str, at: int, path: Sequence[str], most: int) -> _Found:
    around: dict[str, Any] = {}
    records, instead = None, _ABSENT
    at = _skip(text, at + 1)
    while text[at : at + 1] != "}":
        if text[at : at + 1] != '"':
            raise ValueError(f"a name is missing at character {at}")
        name, at = _DECODER.raw_decode(text, at)
        at = _expected(text, at, ":")
        if name == path[0]:
            around[name], records, instead, at = _value(text, at, path[1:], most)
        else:
            around[name], at = _DECODER.raw_decode(text, at)
        at = _skip(text, at)
        if text[at : at + 1] == ",":
            at = _skip(text, at + 1)
            if text[at : at + 1] == "}":
                raise ValueError(f"a name is missing at character {at}")
        elif text[at : at + 1] != "}":
            raise ValueError(f"a comma is missing at character {at}")
    return around, records, instead, at + 1


def _records(text: str, at: int, most: int) -> _Found:
    if text[at : at + 1] != "[":
        value, end = _DECODER.raw_decode(text, at)
        return value, () if value is None else None, value, end
    records: list[Record] = []
    at = _skip(text, at + 1)
    for record, after in _elements(text, at):
        if len(records) == most:
            raise TooMany(f"{most:,} records")
        records.append(record)
        at = after
    return [], tuple(records), _ABSENT, at + 1


def _elements(text: str, at: int) -> Iterator[tuple[Record, int]]:
    """Of a list, from the first one on: each with where the next one begins, or the list ends."""
    while text[at : at + 1] != "]":
        value, end = _DECODER.raw_decode(text, at)
        record, at = Record(text[at:end], value), _skip(text, end)
        if text[at : at + 1] == ",":
            at = _skip(text, at + 1)
            if text[at : at + 1] == "]":
                raise ValueError(f"a value is missing at character {at}")
        elif text[at : at + 1] != "]":
            raise ValueError(f"a comma is missing at character {at}")
        yield record, at


def _expected(text: str, at: int, character: str) -> int:
    at = _skip(text, at)
    if text[at : at + 1] != character:
        raise ValueError(f"`{character}` is missing at character {at}")
    return _skip(text, at + 1)


def _skip(text: str, at: int) -> int:
    found = _BLANK.match(text, at)
    assert found is not None, "the pattern matches nothing, too"
    return found.end()
