"""What is wrong with hooks, as far as their texts tell: nothing is run, resolved or connected to."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from hakiri_dagster.errors import Problem, UnsafeSql, UnsafeUrl
from hakiri_dagster.manifest.custom_functions import GROUP, registered, whose
from hakiri_dagster.manifest.field_types import MAX_IDENTIFIER_BYTES, quoted
from hakiri_dagster.manifest.places import Entry, value_at
from hakiri_dagster.manifest.positions import KeyPath
from hakiri_dagster.manifest.references import Filled, is_one_reference, names_in
from hakiri_dagster.manifest.spelling import closest
from hakiri_dagster.security import sql_guard, url_guard

SHORTEST_SECRET = 16
_NO_NAME = re.compile(r"""["';()\\]|--|/\*""")

_BEHIND_THE_HOST = re.compile(r"://[^/?]*[/?].")

Complaint = tuple[str, str, str]
"""The key that is wrong, the message and the hint."""


def hook_problems(entry: Entry, filled: Filled, *, allow_loopback: bool) -> Iterator[Problem]:
    for at, hook in _hooks(filled.data):
        for key, message, hint in _complaints(hook, entry.value(at), allow_loopback=allow_loopback):
            path = (*at, key)
            if not filled.unsettled(entry.written(path)):
                yield entry.problem(path, message, hint)


def hook_secrets(entry: Entry, filled: Filled, env: Mapping[str, str]) -> Iterator[str]:
    """What must never be shown: secrets, what a URL has behind its host, and the variables that both are made from."""
    for at, hook in _hooks(filled.data):
        written = entry.value(at)
        for key in ("url", "secret"):
            value = hook.get(key)
            if not isinstance(value, str):
                continue
            if key == "secret" or _BEHIND_THE_HOST.search(value):
                yield value
            yield from (env[name] for name in names_in(written[key]) if name in env)


def _hooks(data: Any) -> Iterator[tuple[KeyPath, dict[str, Any]]]:
    tables = value_at(data, ("tables",))
    for at in ((), *(("tables", index) for index in range(len(tables) if isinstance(tables, list) else 0))):
        for slot in ("pre_hook", "post_hook"):
            path: KeyPath = (*at, "load", slot)
            hooks = value_at(data, path)
            if isinstance(hooks, dict):
                yield path, hooks
            for index, hook in enumerate(hooks if isinstance(hooks, list) else ()):
                if isinstance(hook, dict):
                    yield (*path, index), hook


def _complaints(hook: dict[str, Any], written: Any, *, allow_loopback: bool) -> Iterator[Complaint]:
    match hook:
        case {"type": "sql", "statement": str(statement)} if statement:
            yield from _statement(statement)
        case {"type": "refresh_mat_view", "view": str(view)} if view:
            yield from _view(view)
        case {"type": "webhook"}:
            yield from _webhook(hook, written, allow_loopback=allow_loopback)
        case {"type": "custom_function", "function": str(function)} if function:
            yield from _function(function)


def _statement(statement: str) -> Iterator[Complaint]:
    try:
        sql_guard.judge_template(statement)
    except UnsafeSql as error:
        yield "statement", f"the hook's SQL is refused: {error.what}", error.hint or sql_guard.ALLOWED


def _view(view: str) -> Iterator[Complaint]:
    """Its parts are names as they are, never SQL."""
    parts = view.split(".")
    fits = all(part.strip() == part and 0 < len(part.encode()) <= MAX_IDENTIFIER_BYTES for part in parts)
    if len(parts) != 2 or not fits or not view.isprintable() or _NO_NAME.search(view):
        yield "view", f"{quoted(view)} is not the name of a view", "write `schema.view`, without quotes"


def _webhook(hook: dict[str, Any], written: Any, *, allow_loopback: bool) -> Iterator[Complaint]:
    """Neither the URL nor the secret is quoted."""
    url, secret = hook.get("url"), hook.get("secret")
    if isinstance(url, str) and url:
        try:
            url_guard.judge(url, allow_loopback=allow_loopback)
        except UnsafeUrl as error:
            yield "url", f"the webhook is refused: {error.what}", error.hint or url_guard.ALLOWED
    if not isinstance(secret, str) or not secret:
        return
    if not is_one_reference(written["secret"]):
        yield "secret", "a secret is not written into a manifest", "write `${NAME}`, and set NAME in the environment"
    elif len(secret) < SHORTEST_SECRET:
        message = f"the secret is shorter than {SHORTEST_SECRET} characters, so it can be guessed"
        yield "secret", message, "`openssl rand -hex 32` makes a good one"


def _function(function: str) -> Iterator[Complaint]:
    known = registered()
    match known.get(function, ()):
        case ():
            near = closest(function, known)
            names = f"registered are: {', '.join(known)}" if known else "none is registered"
            hint = f"did you mean `{near}`?" if near else f"{names}; a package does so by an entry point of `{GROUP}`"
            yield "function", f"no function {quoted(function)} is registered for hooks", hint
        case (_,):
            return
        case several:
            packages = ", ".join(whose(entry_point) for entry_point in several)
            message = f"the function {quoted(function)} is registered more than once: by {packages}"
            yield "function", message, "uninstall all of these packages but one"
