"""Secret values never reach a log, an event, an error or metadata: whoever reads one registers it here."""

from __future__ import annotations

import logging
import re
import threading
from collections.abc import Iterable
from typing import Any
from urllib.parse import quote, unquote, urlsplit

MASK = "***"
MIN_LENGTH = 4
"""Shorter values would mask half of every text; inside URLs they are masked all the same."""
LONG = 8
"""Shorter values may be words, such as `short`: masked inside of a longer word, they would be told by what is left."""

_lock = threading.Lock()
_secrets: frozenset[str] = frozenset()
_pattern: re.Pattern[str] | None = None

_URL_PASSWORD = re.compile(r"(?P<before>[A-Za-z][A-Za-z0-9+.-]*://[^\s/?#'\"@:]*:)[^\s/?#'\"]+(?=@)")
_NAMED_PASSWORD = re.compile(r"(?P<before>\b(?:ssl)?password=)(?:'(?:\\.|[^'\\])*'|[^\s&'\"]+)", re.IGNORECASE)


def register(values: Iterable[str]) -> None:
    """Also the passwords of those values that are URLs."""
    global _secrets, _pattern
    found = {form for value in values for form in _forms(value) if len(form) >= MIN_LENGTH}
    with _lock:
        if found <= _secrets:
            return
        _secrets |= found
        longest_first = sorted(_secrets, key=lambda secret: (-len(secret), secret))
        _pattern = re.compile("|".join(map(_wherever, longest_first)))


def known_in(texts: Iterable[str]) -> tuple[str, ...]:
    """Those that occur in the texts: for another process, which is given these and is to mask them as well."""
    together = "\0".join(texts)
    return tuple(secret for secret in _secrets if secret in together)


def register_url(url: str) -> None:
    """The password of a URL, not the URL itself."""
    if (password := _password(url)) is not None:
        register([password])


def _wherever(secret: str) -> str:
    escaped = re.escape(secret)
    return escaped if len(secret) >= LONG else rf"(?<![^\W_]){escaped}(?![^\W_])"


def redact(text: str) -> str:
    pattern = _pattern
    masked = pattern.sub(MASK, text) if pattern is not None else text
    masked = _URL_PASSWORD.sub(rf"\g<before>{MASK}", masked)
    return _NAMED_PASSWORD.sub(rf"\g<before>{MASK}", masked)


def redact_within(value: Any) -> Any:
    """A document, text by text: masking it when it is written out could cut through its quotes."""
    match value:
        case str():
            return redact(value)
        case dict():
            return {key: redact_within(inner) for key, inner in value.items()}
        case list() | tuple():
            return [redact_within(inner) for inner in value]
        case _:
            return value


def safe_url(url: str) -> str:
    """The URL without its password, to be shown."""
    masked = _URL_PASSWORD.sub(r"\g<before>", url).replace(":@", "@", 1)
    return redact(masked)


class RedactingFilter(logging.Filter):
    """On a handler, so that records of every logger pass through it."""

    def filter(self, record: logging.LogRecord) -> bool:
        record.msg = redact(record.getMessage())
        record.args = None
        if record.exc_info:
            record.exc_text = redact(logging.Formatter().formatException(record.exc_info))
        return True


def _forms(value: str) -> Iterable[str]:
    """A secret as it may turn up: as it is, stripped, and as it is written in a URL."""
    yield from {value, value.strip(), quote(value, safe=""), unquote(value)}
    if (password := _password(value)) is not None:
        yield from {password, unquote(password), quote(unquote(password), safe="")}


def _password(url: str) -> str | None:
    if "://" not in url:
        return None
    try:
        return urlsplit(url).password
    except ValueError:
        return None
