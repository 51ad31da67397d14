"""Character sets of text files. Spark decodes a handful; the single-byte ones are built on its Latin-1."""

from __future__ import annotations

import codecs
import importlib
from dataclasses import dataclass

from pyspark.sql import Column
from pyspark.sql import functions as F  # noqa: N812  # Spark's own convention

_SPARK_NAMES = {
    "utf-8": "UTF-8",
    "utf-8-sig": "UTF-8",
    "ascii": "US-ASCII",
    "iso8859-1": "ISO-8859-1",
    "utf-16": "UTF-16",
    "utf-16-le": "UTF-16LE",
    "utf-16-be": "UTF-16BE",
    "utf-32": "UTF-32",
}
_ASCII = "".join(map(chr, range(128)))
_UNDEFINED = "\ufffe"


@dataclass(frozen=True, slots=True)
class Charset:
    """`python` decodes like `spark` followed by `translate`."""

    python: str
    spark: str
    wrong: str = ""
    right: str = ""

    @property
    def is_utf8(self) -> bool:
        return self.spark == "UTF-8"

    @property
    def keeps_newlines(self) -> bool:
        """A newline is the one byte 0x0A, and that byte is always a newline."""
        return not self.spark.startswith(("UTF-16", "UTF-32"))

    def translate(self, text: Column) -> Column:
        return F.translate(text, self.wrong, self.right) if self.wrong else text


ANY_BYTES = Charset("latin-1", "ISO-8859-1")
"""For text whose bytes are checked where it is read: each byte is a character."""


def charset(name: str) -> Charset | None:
    """None if there is no such encoding, or none that Spark can be made to read."""
    try:
        found = codecs.lookup(name).name
    except LookupError:
        return None
    if found in _SPARK_NAMES:
        return Charset("utf-8-sig" if found == "utf-8" else found, _SPARK_NAMES[found])
    return _single_byte(found)


def _single_byte(name: str) -> Charset | None:
    """Windows-1252 and its like: ASCII below, one character a byte above. Python keeps those as tables."""
    try:
        module = importlib.import_module(f"encodings.{name.replace('-', '_')}")
    except ImportError:
        return None
    table: str | None = getattr(module, "decoding_table", None)
    if table is None or table[:128] != _ASCII:
        return None
    changed = [(chr(byte), text) for byte, text in enumerate(table) if text not in (chr(byte), _UNDEFINED)]
    return Charset(name, "ISO-8859-1", "".join(c[0] for c in changed), "".join(c[1] for c in changed))
