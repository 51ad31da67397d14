"""Asks an API: each request with a permit, within time and size, tried again where that may help."""

from __future__ import annotations

import ssl
import time
from collections.abc import Callable
from http.client import HTTPException, IncompleteRead
from importlib.metadata import version
from typing import Final, TypeVar
from urllib.parse import urlsplit, urlunsplit

from hakiri_dagster.connectors.network import Network
from hakiri_dagster.connectors.rest.api import Api, Pairs
from hakiri_dagster.connectors.rest.bodies import TooLarge, UnknownEncoding
from hakiri_dagster.connectors.rest.exchange import Answer, ClosedMeanwhile, Line
from hakiri_dagster.connectors.rest.throttling import seconds_to_wait
from hakiri_dagster.connectors.rest.trying import MayPass, tried
from hakiri_dagster.connectors.rest.urls import (
    next_of,
    one_line,
    params_of,
    shown,
    values_by_name,
    with_params,
    without_params,
)
from hakiri_dagster.errors import SourceError, UnsafeUrl, WebhookUnavailable
from hakiri_dagster.manifest.api_urls import ALLOWED, joined, judged
from hakiri_dagster.security.secrets import redact, register
from hakiri_dagster.security.url_guard import SafeUrl

Result = TypeVar("Result")

MOST_REDIRECTS: Final = 5
_REDIRECTS = frozenset((301, 302, 303, 307, 308))
_TRY_AGAIN = frozenset((408, 425, 429))
_SHOWN_OF_A_BODY: Final = 200
_LOOKED_AT_OF_A_BODY: Final = 64 << 10
_HINTS = {
    401: "check the credentials under `auth`",
    403: "may these credentials read this? check `auth`",
    404: "check `base_url` and the table's `path`",
    410: "check `base_url` and the table's `path`",
}


class Client:
    """Of one API, in one process: it keeps a connection open. `chunk`: for whose sake it asks, if for one alone."""

    def __init__(
        self, api: Api, network: Network, *, chunk: str = "", pause: Callable[[float], None] = time.sleep
    ) -> None:
        register(api.credentials.secrets)  # this may be a worker of Spark's, which knows none of them yet
        self._api = api
        self._network = network
        self._chunk = chunk
        self._pause = pause
        self._base = judged(api.base_url, allow_loopback=network.allow_loopback)
        self._line = Line(api.timeouts, network.authorities, api.most_bytes)
        self._headers = {
            "Accept": "application/json",
            "Accept-Encoding": "gzip",
            "User-Agent": f"hakiri-dagster/{version('hakiri-dagster')}",
            **dict(api.headers),
            **dict(api.credentials.headers),
        }

    @property
    def most_bytes(self) -> int:
        """Of one answer."""
        return self._api.most_bytes

    def close(self) -> None:
        self._line.close()

    def url(self, path: str) -> SafeUrl:
        return judged(joined(self._base.url, path), allow_loopback=self._base.loopback)

    def next_url(self, at: SafeUrl, link: str, what: str) -> SafeUrl:
        return next_of(self._base, at, link, what=what)

    def token(self, at: SafeUrl, asked: Pairs) -> str:
        """A page, to be written down: without the host, which may move, without credentials, and without what is as it
        was `asked`, for that may hold a secret, too. One that is known stays out however the API writes it."""
        there = values_by_name(params_of(at.url))
        unsaid = {name for name, _ in self._api.credentials.params}
        for name, values in values_by_name(asked).items():
            if there.get(name) == values or any(redact(value) != value for value in values):
                unsaid.add(name)
        parts = urlsplit(without_params(at.url, unsaid))
        return urlunsplit(("", "", parts.path, parts.query, ""))

    def page_of(self, token: str, asked: Pairs) -> SafeUrl:
        """`asked`: put back, but for what the token says itself: the API has moved it on."""
        at = self.next_url(self._base, token, "the token")
        there = values_by_name(params_of(at.url))
        left_out = [(name, value) for name, value in asked if name not in there]
        return judged(with_params(at.url, left_out), allow_loopback=at.loopback)

    def shown(self, at: SafeUrl) -> str:
        """As errors name a request."""
        return f"GET {shown(at.url, [name for name, _ in self._api.credentials.params])}"

    def get(self, at: SafeUrl, read: Callable[[Answer], Result]) -> Result:
        """What `read` makes of the answer, which is good. It may raise MayPass, too."""
        return tried(lambda: read(self._redirected(at)), self._api.patience, pause=self._pause)

    def _redirected(self, at: SafeUrl) -> Answer:
        to = at
        for _ in range(MOST_REDIRECTS + 1):
            answer = self._asked(to)
            if answer.status not in _REDIRECTS:
                return self._good(to, answer)
            location = answer.headers.get("Location")
            if location is None:
                raise SourceError(f"{self.shown(to)}: answered {answer.status}, and does not say where to")
            to = self.next_url(to, location, "the redirect")
        raise SourceError(f"{self.shown(at)}: redirected more than {MOST_REDIRECTS} times")

    def _asked(self, at: SafeUrl) -> Answer:
        asked = judged(with_params(at.url, self._api.credentials.params), allow_loopback=self._base.loopback)
        while True:
            try:
                with self._network.permits.permit(self._chunk):
                    return self._sent(asked)
            except ClosedMeanwhile:  # at most once: the next connection is a new one
                continue

    def _sent(self, at: SafeUrl) -> Answer:
        shown_as = self.shown(at)
        try:
            return self._line.get(at, self._headers)
        except TooLarge:
            raise SourceError(
                f"{shown_as}: the answer is larger than {self._api.most_bytes >> 20} MiB, and was not read to its end",
                hint="ask for smaller pages, or raise `max_body_mib` if there is memory for it",
            ) from None
        except UnknownEncoding as error:
            raise SourceError(f"{shown_as}: the answer is packed as {one_line(str(error), 40)}, not as gzip") from None
        except ssl.SSLCertVerificationError as error:
            raise SourceError(
                f"{shown_as}: the certificate does not prove that it is this host: {error.verify_message}",
                hint="nothing was asked; the API needs a certificate of an authority that this machine trusts",
            ) from None
        except TimeoutError:
            raise MayPass(f"{shown_as}: no answer in time") from None
        except (IncompleteRead, EOFError):
            raise MayPass(f"{shown_as}: the connection broke off in the middle of the answer") from None
        except OSError as error:
            raise MayPass(f"{shown_as}: cannot be reached, or broke off: {error.strerror or error}") from None
        except HTTPException:
            raise MayPass(f"{shown_as}: what came back is not HTTP") from None
        except WebhookUnavailable as error:
            raise MayPass(f"{shown_as}: {error.what}") from None
        except UnsafeUrl as error:
            raise UnsafeUrl(f"{shown_as}: {error.what}", hint=ALLOWED) from None

    def _good(self, at: SafeUrl, answer: Answer) -> Answer:
        if answer.is_good:
            return answer
        wish = seconds_to_wait(answer)
        what = f"{self.shown(at)}: answered {answer.status} {one_line(answer.reason, 60)}{beginning_of(answer.body)}"
        throttled = answer.status == 403 and wish is not None
        if answer.status >= 500 or answer.status in _TRY_AGAIN or throttled:
            raise MayPass(what, wish)
        raise SourceError(what, hint=_HINTS.get(answer.status))


def beginning_of(body: bytes) -> str:
    """To be put behind what is said of an answer. So much is looked at because blanks and secrets take less room on a
    line than in a body: where it ends it may cut a secret in two."""
    text = one_line(body[:_LOOKED_AT_OF_A_BODY].decode("utf-8", "replace"), _SHOWN_OF_A_BODY)
    return f": {text}" if text else ""
