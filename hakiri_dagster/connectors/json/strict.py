"""One JSON object, read strictly: the text of each of its members, or the reason why it cannot be loaded.

This is the slow path. It is taken for records that `record_reader.py` cannot accept at once.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Final, Never

from hakiri_dagster.connectors.json.raw_text import is_whole, members_of, written

_BLANK: Final = " \t\r\n"
_SHOWN: Final = 60


class UnreadableRecord(Exception):
    """The record is not one JSON object whose values are unambiguous. The message is the reason, for people."""


class RepeatedKey(UnreadableRecord):
    """An object has a key more than once, so that its values depend on who reads it."""


def _refuse_constant(name: str) -> Never:
    raise UnreadableRecord(f"not JSON: {name} is no JSON value")


def _refuse_repeated_keys(members: list[tuple[str, Any]]) -> dict[str, Any]:
    value = dict(members)
    if len(value) < len(members):
        seen: set[str] = set()
        for name, _ in members:
            if name in seen:
                raise RepeatedKey(f"the key {_shown(name)} is there more than once")
            seen.add(name)
    return value


def _shown(name: str) -> str:
    text = name if len(name) <= _SHOWN else f"{name[:_SHOWN]}…"
    return written(text) if not (is_whole(text) and text.isprintable()) else f"`{text}`"


# Numbers stay text: Python refuses to convert integers of more than 4,300 digits.
_DECODER: Final = json.JSONDecoder(
    parse_int=str, parse_float=str, parse_constant=_refuse_constant, object_pairs_hook=_refuse_repeated_keys
)


def decode_strictly(text: str) -> Any:
    """Return the value of a whole text, numbers as their text. Raise UnreadableRecord if it is not unambiguous JSON."""
    start = len(text) - len(text.lstrip(_BLANK))
    try:
        value, end = _DECODER.raw_decode(text, start)
    except json.JSONDecodeError as error:
        what = error.msg.removesuffix(" at").removesuffix(" starting")
        raise UnreadableRecord(f"not JSON: {what}, at character {error.pos + 1}") from None
    except RecursionError:
        raise UnreadableRecord("not readable: its values are nested too deeply") from None
    if text[end:].strip(_BLANK):
        raise UnreadableRecord(f"something follows the JSON value, at character {end + 1}")
    return value


def read_members(text: str) -> Mapping[str, str]:
    """Return the text of each member of the one object in `text`."""
    value = decode_strictly(text)
    if not isinstance(value, dict):
        raise UnreadableRecord(f"{_kind(value)} instead of a JSON object")
    return {member.name: member.text for member in members_of(text)}


def has_repeated_keys(text: str) -> bool:
    """Whether an object in the text of a JSON value has a key more than once, however deep."""
    try:
        decode_strictly(text)
    except RepeatedKey:
        return True
    except UnreadableRecord:
        return False
    return False


def _kind(value: Any) -> str:
    match value:
        case list():
            return "a list"
        case None:
            return "null"
        case bool():
            return str(value).lower()
        case _:
            return "a text or number"
