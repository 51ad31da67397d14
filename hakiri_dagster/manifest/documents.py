"""One manifest file as plain values with positions. TOML and JSON are the same from here on."""

from __future__ import annotations

import datetime
import json
import math
import re
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import PurePath
from typing import Any

from hakiri_dagster.errors import ManifestError, Problem
from hakiri_dagster.manifest.positions import KeyPath, Position, Positions, json_positions, toml_positions

MAX_DEPTH = 32
MAX_BYTES = 8 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class Document:
    """`file` is as messages name it; `data` is as written, `${NAME}`s included."""

    file: str
    data: dict[str, Any]
    positions: Positions

    @property
    def is_toml(self) -> bool:
        return self.file.endswith(".toml")


def parse_document(content: bytes, file: str) -> Document:
    """Raises ManifestError with one Problem for a syntax error, or all that are wrong with single values."""
    if len(content) > MAX_BYTES:
        raise _error(file, Position(1, 1), f"the file is larger than {MAX_BYTES // 2**20} MiB")
    text = _decode(content, file)
    is_json = PurePath(file).suffix == ".json"
    try:
        data = _json_values(text) if is_json else tomllib.loads(f"{text}\n")
    except RecursionError:
        raise _too_deep(file) from None
    except _ConstantError:
        raise _constant_error(file, text) from None
    except ValueError as error:
        raise _syntax_error(error, file, text) from None
    if not isinstance(data, dict):
        raise _error(file, Position(1, 1), "a manifest is one object: `{ … }`")
    if _depth_exceeds(data, MAX_DEPTH):
        raise _too_deep(file)
    positions = json_positions(text) if is_json else toml_positions(text)
    problems = [*_duplicates(file, positions), *_unusable_values(data, file, positions)]
    if problems:
        raise ManifestError(problems)
    return Document(file, _with_text_dates(data), positions)


def _decode(content: bytes, file: str) -> str:
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        before = content[: error.start].decode("utf-8-sig", errors="replace")
        raise _error(file, _end_of(before), "the file is not UTF-8 text", "save it as UTF-8 in your editor") from None


_JSON_CONSTANT = re.compile(r'"(?:\\.|[^"\\])*"|(-?Infinity|NaN)')


class _ConstantError(Exception):
    """What `json` lets pass and we do not."""


def _json_values(text: str) -> Any:
    return json.loads(text, parse_constant=_refuse_constant)


def _refuse_constant(name: str) -> Any:
    raise _ConstantError(name)


def _constant_error(file: str, text: str) -> ManifestError:
    found = next(match for match in _JSON_CONSTANT.finditer(text) if match[1] is not None)
    return _error(file, _end_of(text[: found.start()]), f"not valid JSON: {found[1]} is not a JSON value")


_TOML_PLACE = re.compile(r" \(at (?:line (\d+), column (\d+)|end of document)\)$")


def _syntax_error(error: ValueError, file: str, text: str) -> ManifestError:
    if isinstance(error, json.JSONDecodeError):
        return _error(file, Position(error.lineno, error.colno), f"not valid JSON: {_plain(error.msg)}")
    place = _TOML_PLACE.search(str(error))
    if place is None:
        return _error(file, Position(1, 1), "a number in this file has too many digits")
    what = f"not valid TOML: {_plain(str(error)[: place.start()])}"
    if place[1] is None:
        return _error(file, _end_of(text), what)
    return _error(file, Position(int(place[1]), int(place[2])), what)


def _plain(message: str) -> str:
    return message[:1].lower() + message[1:]


def _end_of(text: str) -> Position:
    return Position(text.count("\n") + 1, len(text) - (text.rfind("\n") + 1) + 1)


def _depth_exceeds(data: Any, limit: int) -> bool:
    """Without recursion, so that what comes after may recurse."""
    level = [data]
    for _ in range(limit):
        level = [child for value in level for child in _children(value)]
        if not level:
            return False
    return True


def _children(value: Any) -> list[Any]:
    if isinstance(value, dict):
        return list(value.values())
    return value if isinstance(value, list) else []


def _duplicates(file: str, positions: Positions) -> Iterator[Problem]:
    for key, position in positions.duplicates:
        yield _problem(file, position, f"the key `{key}` is written twice in one object", "keep one of the two")


def _unusable_values(value: Any, file: str, positions: Positions, path: KeyPath = ()) -> Iterator[Problem]:
    match value:
        case dict():
            for key, child in value.items():
                here = (*path, key)
                if (reason := _unusable_text(key)) is not None:
                    yield _problem(file, positions.key(here), f"a key {reason}")
                yield from _unusable_values(child, file, positions, here)
        case list():
            for index, child in enumerate(value):
                yield from _unusable_values(child, file, positions, (*path, index))
        case str() if (reason := _unusable_text(value)) is not None:
            yield _problem(file, positions.value(path), f"the text {reason}")
        case float() if not math.isfinite(value):
            yield _problem(file, positions.value(path), "not a finite number")
        case int() if abs(value) >= 2**63:
            yield _problem(file, positions.value(path), "the number is too large")
        case _:
            pass


_UNUSABLE = re.compile("[\\x00\\ud800-\\udfff]")


def _unusable_text(text: str) -> str | None:
    found = _UNUSABLE.search(text)
    if found is None:
        return None
    if found[0] == "\0":
        return "holds a NUL character, which nothing can store"
    return "holds half of a surrogate pair, which is not a character"


def _with_text_dates(value: Any) -> Any:
    """TOML has dates of its own and JSON has not; as ISO text they are the same in both."""
    match value:
        case dict():
            return {key: _with_text_dates(child) for key, child in value.items()}
        case list():
            return [_with_text_dates(child) for child in value]
        case datetime.datetime() | datetime.date() | datetime.time():
            return value.isoformat()
        case _:
            return value


def _too_deep(file: str) -> ManifestError:
    return _error(file, Position(1, 1), f"nested more than {MAX_DEPTH} levels deep")


def _error(file: str, position: Position, message: str, hint: str | None = None) -> ManifestError:
    return ManifestError([_problem(file, position, message, hint)])


def _problem(file: str, position: Position, message: str, hint: str | None = None) -> Problem:
    return Problem(file, position.line, position.column, None, message, hint)
