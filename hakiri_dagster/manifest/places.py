"""From a path in the model's own words to the place where somebody wrote it, in whatever spelling."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from pydantic.alias_generators import to_camel

from hakiri_dagster.errors import Problem
from hakiri_dagster.manifest.documents import Document
from hakiri_dagster.manifest.flat_keys import flat_spellings
from hakiri_dagster.manifest.positions import KeyPath


@dataclass(frozen=True, slots=True)
class Entry:
    """A pipeline, or the project's own settings, inside a document."""

    document: Document
    path: KeyPath
    data: Any

    @property
    def pipeline_id(self) -> str | None:
        """As written, right or wrong; None for the project's settings."""
        written = self.data.get("id") if isinstance(self.data, dict) else None
        return written if isinstance(written, str) else None

    @property
    def line(self) -> int:
        return self.document.positions.value(self.path).line

    @property
    def file(self) -> str:
        return self.document.file

    def written(self, path: KeyPath) -> KeyPath:
        return written_path(self.data, path)

    def value(self, path: KeyPath) -> Any:
        return value_at(self.data, path)

    def line_of(self, path: KeyPath) -> int:
        return self.document.positions.value((*self.path, *self.written(path))).line

    def problem(self, path: KeyPath, message: str, hint: str | None = None, *, at_key: bool = False) -> Problem:
        """`path` in the model's words; the nearest thing that is written stands for what is not."""
        where = (*self.path, *self.written(path))
        positions = self.document.positions
        position = positions.key(where) if at_key else positions.value(where)
        return Problem(self.file, position.line, position.column, self.pipeline_id, message, hint)


def written_path(data: Any, path: Sequence[str | int]) -> KeyPath:
    """As far as `path` is written. Steps that no one wrote, like the tags of pydantic's unions, are passed over."""
    written: list[str | int] = []
    rest = list(path)
    while rest:
        taken, used = _step(data, rest)
        rest = rest[used:]
        if taken is not None:
            written.append(taken)
            data = data[taken]
    return tuple(written)


def _step(data: Any, rest: Sequence[str | int]) -> tuple[str | int | None, int]:
    """The key or index to take next, and how many steps of the path that uses up."""
    step = rest[0]
    if isinstance(data, list):
        return (step, 1) if isinstance(step, int) and step < len(data) else (None, 1)
    if not isinstance(data, dict) or not isinstance(step, str):
        return None, 1
    if len(rest) > 1 and isinstance(rest[1], str) and not _holds(data.get(step), rest[1]):
        for flat in flat_spellings(step, rest[1]):
            if flat in data:
                return flat, 2
    for spelling in (step, to_camel(step)):
        if spelling in data:
            return spelling, 1
    return None, 1


def _holds(section: Any, name: str) -> bool:
    return isinstance(section, dict) and not section.keys().isdisjoint({name, to_camel(name)})


def value_at(data: Any, path: KeyPath) -> Any:
    """None where nothing is written."""
    rest = list(path)
    while rest:
        taken, used = _step(data, rest)
        if taken is None:
            return None
        data, rest = data[taken], rest[used:]
    return data
