"""The settings of a `files` source, and what can be told of them without touching a file."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from difflib import get_close_matches
from typing import Any

from pydantic import ValidationError, field_validator
from pydantic.alias_generators import to_camel

from hakiri_dagster.connectors.files.charsets import Charset, charset
from hakiri_dagster.connectors.files.formats import Compression
from hakiri_dagster.manifest.field_types import wrong
from hakiri_dagster.manifest.source_config import FilesConfig

_COMPRESSIONS: Mapping[str, Compression] = {
    "none": "none",
    "uncompressed": "none",
    "gzip": "gzip",
    "gz": "gzip",
    "bzip2": "bz2",
    "bz2": "bz2",
    "zstd": "zstd",
    "zst": "zstd",
}


class FilesOptions(FilesConfig):
    @field_validator("delimiter")
    @classmethod
    def _written_out_tab(cls, value: str) -> str:
        return "\t" if value == "\\t" else value

    @field_validator("encoding")
    @classmethod
    def _readable_encoding(cls, value: str) -> str:
        if charset(value) is None:
            raise wrong("cannot be read; UTF-8, UTF-16, UTF-32 and single-byte encodings such as windows-1252 can")
        return value

    @property
    def declared_compression(self) -> Compression | None:
        return None if self.compression is None else _COMPRESSIONS[self.compression]

    def digest(self, pattern: str, columns: Mapping[str, str]) -> str:
        """Of all that tells which bytes are read and how they become values."""
        told = f"{pattern}\0{self.model_dump_json(exclude={'path'})}\0{sorted(columns.items())}"
        return hashlib.blake2b(told.encode(), digest_size=6).hexdigest()

    @property
    def charset(self) -> Charset:
        found = charset(self.encoding)
        if found is None:
            raise ValueError(f"no such encoding: {self.encoding}")
        return found


def option_problems(config: Mapping[str, Any]) -> list[str]:
    try:
        FilesOptions.model_validate(dict(config))
    except ValidationError as error:
        return [_sentence(problem) for problem in error.errors(include_input=False)]
    return []


def _sentence(problem: Any) -> str:
    name = str(problem["loc"][0]) if problem["loc"] else "config"
    if problem["type"] != "extra_forbidden":
        return f"`{name}`: {problem['msg']}"
    known = [alias for field in FilesOptions.model_fields for alias in (field, to_camel(field))]
    close = get_close_matches(name, known, n=1)
    return f"`{name}` is no setting of `files`" + (f"; did you mean `{close[0]}`?" if close else "")
