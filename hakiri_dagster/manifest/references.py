"""`${NAME}` in settings and paths is what the environment says; `$${` is a plain `${`."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from hakiri_dagster.manifest.positions import KeyPath

_REFERENCE = re.compile(r"\$\$\{|\$\{([^}]*)\}?")
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")

Scope = tuple[str, ...]
_WEBHOOK_SCOPES: tuple[Scope, ...] = tuple(
    (*at, *hooks, *index, key)
    for at in ((), ("tables", "*"))
    for slot in ("pre_hook", "preHook", "post_hook", "postHook")
    for hooks in ((slot,), ("load", slot))
    for index in ((), ("*",))
    for key in ("url", "secret")
)
"""One hook or a list of them, under `load` or by the seed's flat names."""

PIPELINE_SCOPES: tuple[Scope, ...] = (
    ("source", "config"),
    ("destination", "config"),
    ("tables", "*", "path"),
    ("tables", "*", "params"),
    ("triggers", "*"),
    *_WEBHOOK_SCOPES,
)
PROJECT_SCOPES: tuple[Scope, ...] = (("audit", "url"), ("context", "path"), ("destinations", "*", "config"))


def is_variable(name: str) -> bool:
    return _NAME.fullmatch(name) is not None


def names_in(text: str) -> tuple[str, ...]:
    """The variables that a text refers to."""
    return tuple(found[1] for found in _REFERENCE.finditer(text) if found[1] is not None)


def is_one_reference(text: str) -> bool:
    """It is a reference and nothing else."""
    found = _REFERENCE.fullmatch(text)
    return found is not None and found[1] is not None


@dataclass(frozen=True, slots=True)
class Gap:
    """A reference that cannot be filled. `name` is as written."""

    path: KeyPath
    name: str

    @property
    def well_formed(self) -> bool:
        return is_variable(self.name)


@dataclass(frozen=True, slots=True)
class Filled:
    """`data` with its references filled in, where that was possible; `values` are those texts that had some."""

    data: Any
    gaps: tuple[Gap, ...]
    values: tuple[str, ...]

    def unsettled(self, path: KeyPath) -> bool:
        """Whether the value there is not known, so that nothing else can be said about it."""
        return any(gap.path == path for gap in self.gaps)


def fill(data: Any, scopes: tuple[Scope, ...], env: Mapping[str, str]) -> Filled:
    filler = _Filler(env)
    for scope in scopes:
        data = filler.within(data, scope, ())
    return Filled(data, tuple(filler.gaps), tuple(filler.values))


@dataclass(slots=True)
class _Filler:
    env: Mapping[str, str]
    gaps: list[Gap] = field(default_factory=list)
    values: list[str] = field(default_factory=list)

    def within(self, value: Any, scope: Scope, path: KeyPath) -> Any:
        if not scope:
            return self.everywhere(value, path)
        step, rest = scope[0], scope[1:]
        match value:
            case dict():
                return {
                    key: self.within(child, rest, (*path, key)) if step in ("*", key) else child
                    for key, child in value.items()
                }
            case list() if step == "*":
                return [self.within(child, rest, (*path, index)) for index, child in enumerate(value)]
            case _:
                return value

    def everywhere(self, value: Any, path: KeyPath) -> Any:
        match value:
            case str():
                return self._text(value, path)
            case dict():
                return {key: self.everywhere(child, (*path, key)) for key, child in value.items()}
            case list():
                return [self.everywhere(child, (*path, index)) for index, child in enumerate(value)]
            case _:
                return value

    def _text(self, text: str, path: KeyPath) -> str:
        def fill_one(found: re.Match[str]) -> str:
            name = found[1]
            if name is None:
                return "${"
            if name in self.env:
                return self.env[name]
            self.gaps.append(Gap(path, name))
            return found[0]

        filled = _REFERENCE.sub(fill_one, text)
        self.values.append(filled)
        return filled
