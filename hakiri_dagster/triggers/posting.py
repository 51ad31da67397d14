"""One POST of JSON to an API, and its answer: within time and size, to an address that was judged, and nowhere else."""

from __future__ import annotations

import json
import ssl
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from http.client import HTTPConnection, HTTPException, HTTPMessage
from importlib.metadata import version
from pathlib import Path
from typing import Any

from hakiri_dagster.errors import QueueRefused, QueueUnavailable, UnsafeUrl, WebhookUnavailable
from hakiri_dagster.security.pinned_connection import Deadline, Timed, authority, connect, resolved
from hakiri_dagster.security.url_guard import SafeUrl


@dataclass(frozen=True, slots=True)
class Limits:
    """`seconds` are for everything together."""

    seconds: float = 15
    connect_seconds: float = 3
    answer_bytes: int = 16 << 20


@dataclass(frozen=True, slots=True)
class Answer:
    status: int
    headers: HTTPMessage
    body: bytes = field(repr=False)


@dataclass(frozen=True)
class Poster:
    """`whom`: how messages name the one who is asked. `authorities`: the certificates (PEM) to trust instead of the
    machine's."""

    whom: str
    token: str = field(repr=False)
    authorities: Path | None = None
    limits: Limits = Limits()

    def post(self, to: SafeUrl, document: Mapping[str, Any]) -> Answer:
        """Raises QueueUnavailable and QueueRefused."""
        try:
            return self._posted(to, json.dumps(dict(document)).encode())
        except ssl.SSLCertVerificationError as error:
            raise QueueRefused(
                f"{self.whom}: the certificate does not prove that it is this host: {error.verify_message}",
                hint="nothing was sent; it needs a certificate of an authority that this machine trusts",
            ) from None
        except TimeoutError:
            raise QueueUnavailable(f"{self.whom} did not answer in time") from None
        except OSError as error:
            raise QueueUnavailable(
                f"{self.whom} cannot be reached, or broke off: {error.strerror or type(error).__name__}"
            ) from None
        except HTTPException:
            raise QueueUnavailable(f"{self.whom}: what came back is not HTTP, or broke off") from None
        except WebhookUnavailable as error:
            raise QueueUnavailable(f"{self.whom}: {error.what}") from None
        except UnsafeUrl as error:
            raise QueueRefused(f"{self.whom}: {error.what}", hint="check `base_url`") from None

    def _posted(self, to: SafeUrl, body: bytes) -> Answer:
        deadline = Deadline.after(self.limits.seconds)
        addresses = resolved(to, deadline)
        with connect(
            to, addresses, tls=self._tls, deadline=deadline, at_most=self.limits.connect_seconds
        ) as connection:
            http = HTTPConnection(to.host, to.port)
            http.sock = Timed(connection, deadline)
            http.request("POST", to.target, body, self._headers(to))
            with http.getresponse() as answer:
                read = answer.read(self.limits.answer_bytes + 1)
                if len(read) > self.limits.answer_bytes:
                    raise QueueRefused(f"{self.whom}: the answer is larger than {self.limits.answer_bytes >> 20} MiB")
                return Answer(answer.status, answer.headers, read)

    @cached_property
    def _tls(self) -> ssl.SSLContext:
        """To read all certificates that a machine trusts takes longer than a request."""
        return ssl.create_default_context(cafile=self.authorities)

    def _headers(self, to: SafeUrl) -> Mapping[str, str]:
        return {
            "Authorization": f"Bearer {self.token}",
            "Content-Type": "application/json",
            "Accept": "application/json",
            "User-Agent": f"hakiri-dagster/{version('hakiri-dagster')}",
            "Host": authority(to),
            "Connection": "close",
        }
