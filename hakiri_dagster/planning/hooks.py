"""Hooks as values: what tells them apart, and which of them published loads still owe."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import assert_never
from urllib.parse import urlsplit

from hakiri_dagster.manifest.hook_spec import CustomFunctionHook, Hook, RefreshMatViewHook, SqlHook, WebhookHook
from hakiri_dagster.security.sql_guard import TABLE, judge_template

_SHOWN = 80


@dataclass(frozen=True, slots=True)
class HookName:
    """`key` tells the hooks of a table apart, and stays when a manifest says them in another order."""

    key: str
    text: str


@dataclass(frozen=True, slots=True)
class NamedHook:
    name: HookName
    hook: Hook

    @property
    def sets(self) -> bool:
        """It changes nothing but the session, so that the hooks behind it need it whenever they run."""
        return isinstance(self.hook, SqlHook) and judge_template(self.hook.statement).sets

    @property
    def names_the_table(self) -> bool:
        return isinstance(self.hook, SqlHook) and TABLE in self.hook.statement


@dataclass(frozen=True, slots=True)
class OwedHook:
    """A post-hook that has not run since these loads were published."""

    name: HookName
    load_ids: tuple[int, ...]


def named(hooks: Sequence[Hook] | None) -> tuple[NamedHook, ...]:
    seen: Counter[str] = Counter()
    found = []
    for hook in hooks or ():
        text = _text(hook)
        seen[text] += 1
        found.append(NamedHook(HookName(_key(text, seen[text]), _short(text)), hook))
    return tuple(found)


def to_run(declared: Sequence[NamedHook], keys: Collection[str]) -> Iterator[NamedHook]:
    """Those of `keys`, in the order of the manifest, and what they need set before them."""
    last = max((place for place, hook in enumerate(declared) if hook.name.key in keys), default=-1)
    for hook in declared[: last + 1]:
        if hook.name.key in keys or hook.sets:
            yield hook


def _text(hook: Hook) -> str:
    """Without the path of a URL, in which there often is a token: that may change, and it is the same hook."""
    match hook:
        case SqlHook(statement=statement):
            return f"sql {statement}"
        case RefreshMatViewHook(view=view):
            return f"refresh_mat_view {view}"
        case WebhookHook(url=url):
            parts = urlsplit(url)
            return f"webhook {parts.scheme}://{parts.netloc}"
        case CustomFunctionHook(function=function):
            return f"custom_function {function}"
        case _:
            assert_never(hook)


def _key(text: str, occurrence: int) -> str:
    return hashlib.sha256(f"{occurrence} {text}".encode()).hexdigest()[:32]


def _short(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= _SHOWN else f"{line[: _SHOWN - 1]}…"
