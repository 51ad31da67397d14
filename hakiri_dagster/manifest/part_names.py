"""Values of partition keys as they stand in the keys of chunks."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Final

LONGEST_NAME: Final = 200

_PLAIN = re.compile(rb"[A-Za-z0-9_-]")
_ESCAPE: Final = "~"


@lru_cache(maxsize=4096)
def name_of(value: str) -> str:
    """What a key, a URL or a shell may take for something else is `~` and two hex digits of each byte, so that no two
    values have one name. A dot stays where it does not follow another one: Dagster refuses three."""
    found: list[str] = []
    for byte in value.encode():
        character = bytes((byte,))
        plain = _PLAIN.fullmatch(character) or (character == b"." and found[-1:] not in ([], ["."]))
        found.append(character.decode() if plain else f"{_ESCAPE}{byte:02X}")
    return "".join(found)
