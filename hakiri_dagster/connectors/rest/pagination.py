"""How pages follow each other: what is asked for first, and what a page says of the next one.

Each kind is a value that can be pickled, and keeps nothing between pages but what `step` returns.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Protocol
from urllib.parse import parse_qsl, urlsplit

from hakiri_dagster.connectors.json.raw_text import is_whole, value_at
from hakiri_dagster.connectors.rest.api import Pairs
from hakiri_dagster.connectors.rest.client import Client
from hakiri_dagster.connectors.rest.pages import Page, path_of
from hakiri_dagster.connectors.rest.urls import with_params
from hakiri_dagster.errors import SourceError
from hakiri_dagster.manifest.api_urls import judged
from hakiri_dagster.security.url_guard import SafeUrl

_LINK_PARAM = re.compile(r"\s*;\s*([\w!#$&+.^`|~-]+\*?)\s*(?:=\s*(?:\"([^\"]*)\"|([^\s\";,]+)))?")
_END_OF_LINK = re.compile(r"\s*(?:,|$)")


class Pagination(Protocol):
    @property
    def steers(self) -> tuple[str, ...]:
        """The parameters that tell one page from another."""
        ...

    def first_params(self) -> Pairs:
        """What is added to the request for the first page."""
        ...

    def after(self, client: Client, page: Page) -> SafeUrl | None:
        """The page that follows; None if none does."""
        ...


@dataclass(frozen=True, slots=True)
class OnePage:
    """Everything is in one answer."""

    @property
    def steers(self) -> tuple[str, ...]:
        return ()

    def first_params(self) -> Pairs:
        return ()

    def after(self, client: Client, page: Page) -> SafeUrl | None:
        if link_to_next(page.headers.get_all("Link") or ()) is not None:
            raise SourceError(
                f"{client.shown(page.at)}: the answer has a `Link` to a next page, and `pagination` says there is none",
                hint='write `pagination = { type = "link" }`',
            )
        return None


@dataclass(frozen=True, slots=True)
class LinkHeader:
    """The header `Link` with `rel="next"` (RFC 8288)."""

    @property
    def steers(self) -> tuple[str, ...]:
        return ()

    def first_params(self) -> Pairs:
        return ()

    def after(self, client: Client, page: Page) -> SafeUrl | None:
        link = link_to_next(page.headers.get_all("Link") or ())
        return None if link is None else client.next_url(page.at, link, "the `Link` to the next page")


@dataclass(frozen=True, slots=True)
class NextUrl:
    """The body holds the URL of the next page."""

    path: str

    @property
    def steers(self) -> tuple[str, ...]:
        return ()

    def first_params(self) -> Pairs:
        return ()

    def after(self, client: Client, page: Page) -> SafeUrl | None:
        link = page.document.at(path_of(self.path))
        if link is None or link == "":
            return None
        if not isinstance(link, str):
            raise _odd(client, page, self.path, "no URL")
        return client.next_url(page.at, link, f"`{self.path}`")


@dataclass(frozen=True, slots=True)
class BodyCursor:
    """The body holds a token, which the next request gives back. `more`: where the body says whether pages follow."""

    path: str
    param: str
    more: str | None = None

    @property
    def steers(self) -> tuple[str, ...]:
        return (self.param,)

    def first_params(self) -> Pairs:
        return ()

    def after(self, client: Client, page: Page) -> SafeUrl | None:
        if self.more is not None and page.document.at(path_of(self.more)) is not True:
            return None
        token = page.document.at(path_of(self.path))
        if token is None or token == "" or token is False:
            if self.more is None:
                return None
            raise SourceError(
                f"{client.shown(page.at)}: `{self.more}` says that pages follow, and `{self.path}` holds no token",
                hint="`next` is the dotted path of the token",
            )
        if (asked := _askable(token)) is None:
            raise _odd(client, page, self.path, "no token")
        return _at(page.at, [(self.param, asked)])


@dataclass(frozen=True, slots=True)
class LastRecord:
    """The next request names the last record that has come. `more`: where the body says whether pages follow."""

    id: str
    param: str
    more: str | None = None

    @property
    def steers(self) -> tuple[str, ...]:
        return (self.param,)

    def first_params(self) -> Pairs:
        return ()

    def after(self, client: Client, page: Page) -> SafeUrl | None:
        more = None if self.more is None else page.document.at(path_of(self.more))
        if (self.more is not None and more is not True) or (self.more is None and not page.records):
            return None
        last = _askable(value_at(page.records[-1].value, path_of(self.id))) if page.records else None
        if last is None:
            raise SourceError(
                f"{client.shown(page.at)}: the last record has no `{self.id}`, after which the next page is asked for",
                hint="`id` under `pagination` is the dotted path of what tells records apart",
            )
        return _at(page.at, [(self.param, last)])


@dataclass(frozen=True, slots=True)
class _Counted:
    """Requests count: pages, or records. `total`: where the body says how many there are altogether."""

    param: str
    first: int = 1
    size: Pairs = ()
    total: str | None = None

    @property
    def steers(self) -> tuple[str, ...]:
        return (self.param,)

    def first_params(self) -> Pairs:
        return ((self.param, str(self.first)), *self.size)

    def goes_on(self, client: Client, page: Page, number: int) -> SafeUrl | None:
        if self.total is not None and number >= self.first + _count(client, page, self.total):
            return None
        return _at(page.at, [(self.param, str(number))])


@dataclass(frozen=True, slots=True)
class PageNumber(_Counted):
    """Pages have numbers. The last is the one that `total` tells, else the one before the first that is empty."""

    def after(self, client: Client, page: Page) -> SafeUrl | None:
        total = None if self.total is None else page.document.at(path_of(self.total))
        if total is None and not page.records:
            return None
        return self.goes_on(client, page, _number_in(page.at, self.param) + 1)


@dataclass(frozen=True, slots=True)
class Offset(_Counted):
    """Requests say how many records to pass over: as many as have come."""

    first: int = 0

    def after(self, client: Client, page: Page) -> SafeUrl | None:
        if not page.records:
            return None
        return self.goes_on(client, page, _number_in(page.at, self.param) + len(page.records))


def link_to_next(headers: Iterable[str]) -> str | None:
    return next((target for header in headers for target, rels in _links(header) if "next" in rels), None)


def _links(header: str) -> Iterator[tuple[str, Collection[str]]]:
    """Each with its relations. No character is looked at more than a few times: whoever answers writes this text."""
    at = 0
    while (start := header.find("<", at)) >= 0 and (end := header.find(">", start)) >= 0:
        rels: list[str] = []
        at = end + 1
        while (param := _LINK_PARAM.match(header, at)) is not None:
            name, quoted, plain = param.groups()
            if name.lower() == "rel":
                rels += (quoted or plain or "").lower().split()
            at = param.end()
        if _END_OF_LINK.match(header, at) is not None:
            yield header[start + 1 : end], rels


def _count(client: Client, page: Page, path: str) -> int:
    found = page.document.at(path_of(path))
    if isinstance(found, bool) or not isinstance(found, int) or found < 0:
        raise _odd(client, page, path, "no number of pages or records")
    return found


def _odd(client: Client, page: Page, path: str, what: str) -> SourceError:
    return SourceError(
        f"{client.shown(page.at)}: `{path}` of the answer is {what}",
        hint="the paths under `pagination` are dotted paths into the answer",
    )


def _askable(value: Any) -> str | None:
    """What a parameter can say; None: nothing that tells one page from another, or half of a character."""
    if isinstance(value, bool) or not isinstance(value, str | int):
        return None
    text = str(value)
    return text if text and is_whole(text) else None


def _number_in(at: SafeUrl, param: str) -> int:
    return next(int(value) for name, value in parse_qsl(urlsplit(at.url).query) if name == param)


def _at(at: SafeUrl, params: Iterable[tuple[str, Any]]) -> SafeUrl:
    return judged(with_params(at.url, params), allow_loopback=at.loopback)
