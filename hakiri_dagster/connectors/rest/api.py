"""A REST API as it is talked to: where it is, with which credentials, and how much patience and memory it is given."""

from __future__ import annotations

import base64
from collections.abc import Iterator
from dataclasses import dataclass, field, replace

Pairs = tuple[tuple[str, str], ...]

_DOUBLED_AT_MOST = 60
"""Times: by then it is longer than anybody waits, and no float overflows."""


@dataclass(frozen=True, slots=True)
class Credentials:
    """Sent with every request, as headers or as parameters of the query."""

    headers: Pairs = field(default=(), repr=False)
    params: Pairs = field(default=(), repr=False)
    secrets: tuple[str, ...] = field(default=(), repr=False)

    @classmethod
    def bearer(cls, token: str) -> Credentials:
        return cls(headers=(("Authorization", f"Bearer {token}"),), secrets=(token,))

    @classmethod
    def basic(cls, username: str, password: str) -> Credentials:
        encoded = base64.b64encode(f"{username}:{password}".encode()).decode()
        return cls(headers=(("Authorization", f"Basic {encoded}"),), secrets=(password, encoded))

    @classmethod
    def header(cls, name: str, value: str) -> Credentials:
        return cls(headers=((name, value),), secrets=(value,))

    @classmethod
    def query(cls, name: str, value: str) -> Credentials:
        return cls(params=((name, value),), secrets=(value,))


@dataclass(frozen=True, slots=True)
class Timeouts:
    """Seconds: to connect to one address, for one wait for more of an answer, and for one request altogether."""

    connect: float = 10
    read: float = 60
    total: float = 300

    def hurried(self) -> Timeouts:
        return Timeouts(min(self.connect, 5), min(self.read, 7), min(self.total, 7))


@dataclass(frozen=True, slots=True)
class Patience:
    """`retries` follow a failure that may pass, after pauses that grow from `first_pause` to `longest_pause` seconds.
    An API that asks to be left alone for longer than `longest_retry_after` is left alone for good; `way_out` says what
    becomes of it then."""

    retries: int = 5
    first_pause: float = 1
    longest_pause: float = 60
    longest_retry_after: float = 900
    way_out: str | None = None

    def pauses(self) -> Iterator[float]:
        """The longest that each may take."""
        for tried in range(self.retries):
            yield min(self.longest_pause, self.first_pause * 2.0 ** min(tried, _DOUBLED_AT_MOST))

    def hurried(self) -> Patience:
        return replace(
            self,
            retries=min(self.retries, 1),
            first_pause=min(self.first_pause, 1),
            longest_retry_after=min(self.longest_retry_after, 1),
            way_out="a tick does not wait for that: a later one looks again",
        )


@dataclass(frozen=True, slots=True)
class Api:
    base_url: str
    credentials: Credentials = Credentials()
    headers: Pairs = field(default=(), repr=False)
    timeouts: Timeouts = Timeouts()
    patience: Patience = Patience()
    most_bytes: int = 64 << 20
    """Of one answer, unpacked."""

    def hurried(self) -> Api:
        """As a tick asks it, which has a minute for all of its tables: at most twice, and for about 15 s in all."""
        return replace(self, timeouts=self.timeouts.hurried(), patience=self.patience.hurried())
