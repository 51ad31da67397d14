"""Where every key and value of a TOML or JSON text is written. Values themselves come from `documents`."""

from __future__ import annotations

import json
import tomllib
from bisect import bisect_left
from collections.abc import Iterator
from dataclasses import dataclass, field

import tree_sitter_json
import tree_sitter_toml
from tree_sitter import Language, Node, Parser

KeyPath = tuple[str | int, ...]

TOML = Language(tree_sitter_toml.language())
JSON = Language(tree_sitter_json.language())


@dataclass(frozen=True, slots=True, order=True)
class Position:
    """1-based; columns count characters, not bytes."""

    line: int
    column: int


@dataclass(frozen=True, slots=True)
class Positions:
    """`keys` where a key is written, `values` where its value begins (a table's value begins at its header).

    `duplicates` are keys that a JSON object holds a second time; TOML's own parser refuses them.
    """

    keys: dict[KeyPath, Position] = field(default_factory=dict)
    values: dict[KeyPath, Position] = field(default_factory=dict)
    duplicates: list[tuple[str, Position]] = field(default_factory=list)

    def key(self, path: KeyPath) -> Position:
        return self.keys.get(path) or self.value(path)

    def value(self, path: KeyPath) -> Position:
        """The value's place, or that of the nearest thing around it which is written."""
        for length in range(len(path), -1, -1):
            known = self.values.get(path[:length])
            if known is not None:
                return known
        return Position(1, 1)


def toml_positions(text: str) -> Positions:
    return _TomlWalk(text).positions


def json_positions(text: str) -> Positions:
    return _JsonWalk(text).positions


class _Source:
    """Turns the parser's byte columns into character columns."""

    def __init__(self, text: str, language: Language) -> None:
        encoded = text.encode()
        self._lines = encoded.split(b"\n")
        self._offsets: dict[int, list[int]] = {}
        self.root = Parser(language).parse(encoded).root_node

    def position(self, node: Node) -> Position:
        row, column = node.start_point
        return Position(row + 1, column - bisect_left(self._inner_bytes(row), column) + 1)

    def _inner_bytes(self, row: int) -> list[int]:
        """Where a line has bytes that begin no character. Kept: a manifest may be one line of megabytes."""
        known = self._offsets.get(row)
        if known is None:
            line = self._lines[row]
            known = [] if line.isascii() else [at for at, byte in enumerate(line) if byte & 0xC0 == 0x80]
            self._offsets[row] = known
        return known


class _TomlWalk:
    def __init__(self, text: str) -> None:
        self._source = _Source(text, TOML)
        self._lengths: dict[KeyPath, int] = {}
        self.positions = Positions(values={(): Position(1, 1)})
        for node in self._source.root.children:
            match node.type:
                case "pair":
                    self._pair((), node)
                case "table":
                    self._table(node, repeated=False)
                case "table_array_element":
                    self._table(node, repeated=True)
                case _:
                    pass

    def _table(self, node: Node, *, repeated: bool) -> None:
        header = next((child for child in node.children if child.type.endswith("_key")), None)
        if header is None:
            return
        start = self._source.position(node)
        *parents, last = _toml_keys(header)
        path: KeyPath = ()
        for key in parents:
            path = self._newest((*path, _toml_key_text(key)))
            self._note(path, self._source.position(key), start)
        path = (*path, _toml_key_text(last))
        self._note(path, self._source.position(last), start)
        if repeated:
            index = self._lengths.get(path, 0)
            self._lengths[path] = index + 1
            path = (*path, index)
        self.positions.values[path] = start
        for child in node.children:
            if child.type == "pair":
                self._pair(path, child)

    def _newest(self, path: KeyPath) -> KeyPath:
        """`[a.b]` below `[[a]]` speaks of the newest element of `a`."""
        length = self._lengths.get(path)
        return path if length is None else (*path, length - 1)

    def _pair(self, table: KeyPath, node: Node) -> None:
        named = [child for child in node.children if child.is_named and child.type != "comment"]
        if len(named) < 2:
            return
        value = self._source.position(named[1])
        path = table
        for key in _toml_keys(named[0]):
            path = (*path, _toml_key_text(key))
            self._note(path, self._source.position(key), value)
        self._value(path, named[1])

    def _value(self, path: KeyPath, node: Node) -> None:
        self.positions.values[path] = self._source.position(node)
        if node.type == "inline_table":
            for child in node.children:
                if child.type == "pair":
                    self._pair(path, child)
        elif node.type == "array":
            elements = (child for child in node.children if child.is_named and child.type != "comment")
            for index, child in enumerate(elements):
                self._value((*path, index), child)

    def _note(self, path: KeyPath, key: Position, value: Position) -> None:
        self.positions.keys.setdefault(path, key)
        self.positions.values.setdefault(path, value)


def _toml_keys(node: Node) -> Iterator[Node]:
    """The parts of `a.b."c"`, which the grammar nests to the left."""
    parts: list[Node] = []
    while node.type == "dotted_key":
        head, tail = (child for child in node.children if child.is_named)
        parts.append(tail)
        node = head
    yield node
    yield from reversed(parts)


def _toml_key_text(node: Node) -> str:
    text = (node.text or b"").decode()
    if node.type == "quoted_key":
        return next(iter(tomllib.loads(f"{text} = 0")))
    return text


class _JsonWalk:
    def __init__(self, text: str) -> None:
        self._source = _Source(text, JSON)
        self.positions = Positions()
        for node in self._source.root.children:
            if node.is_named:
                self._value((), node)

    def _value(self, path: KeyPath, node: Node) -> None:
        self.positions.values[path] = self._source.position(node)
        if node.type == "object":
            for child in node.children:
                if child.type == "pair":
                    self._pair(path, child)
        elif node.type == "array":
            elements = (child for child in node.children if child.is_named)
            for index, child in enumerate(elements):
                self._value((*path, index), child)

    def _pair(self, path: KeyPath, node: Node) -> None:
        key, value = node.child_by_field_name("key"), node.child_by_field_name("value")
        if key is None or value is None or key.text is None:
            return
        path = (*path, json.loads(key.text))
        if path in self.positions.keys:
            self.positions.duplicates.append((str(path[-1]), self._source.position(key)))
        self.positions.keys[path] = self._source.position(key)
        self._value(path, value)
