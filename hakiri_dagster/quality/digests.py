"""Texts of values that PostgreSQL and Spark write alike, so that checksums of both can be compared.

A row's text is that of its columns, one after the other; the checksum is the sum of 60 bits of each row's MD5.
"""

from __future__ import annotations

from typing import Final, Literal

PortableForm = Literal["text", "integer", "number", "boolean", "day", "instant", "bytes"]
"""`number`: without zeros at its end; `day` and `instant`: days or microseconds since 1970; `bytes`: in hex."""

SEPARATOR: Final = "\x1f"
NOTHING: Final = "\x1e"
"""Stands for NULL."""

HEX_DIGITS: Final = 15
"""Of an MD5: as many as a signed 64-bit number holds whatever they are."""
