"""Spans as the rest of the product knows them: values, and two protocols. Their only maker is `otel`, which is imported
where the operator has asked for spans and nowhere else."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

Attribute = str | bool | int | float | Sequence[str] | Sequence[int]
Attributes = Mapping[str, Attribute | None]
"""What is None is left out. Texts are redacted on their way into a span."""


@dataclass(frozen=True, slots=True)
class SpanPlace:
    """Where a span is, wherever it was made: 32 and 16 hexadecimal digits."""

    trace_id: str
    span_id: str


@dataclass(frozen=True, slots=True)
class Link:
    to: SpanPlace
    attributes: Attributes = field(default_factory=dict)


class Span(Protocol):
    """Something that goes on. Several threads may tell of it."""

    @property
    def trace_id(self) -> str: ...

    def child(
        self,
        name: str,
        attributes: Attributes,
        *,
        links: Sequence[Link] = (),
        began: int | None = None,
        span_id: str | None = None,
    ) -> Span:
        """`began`: nanoseconds since 1970, where that was before now. `span_id`: where others are to find it."""
        ...

    def tell(self, attributes: Attributes) -> None: ...

    def happened(self, name: str, attributes: Attributes) -> None:
        """At this moment."""
        ...

    def failed(self, why: str) -> None: ...

    def ended(self) -> None:
        """What is told after that is not heard."""
        ...


class Tracing(Protocol):
    """Makes spans and sends them away. No call waits for whoever receives them."""

    def root(
        self,
        name: str,
        attributes: Attributes,
        *,
        links: Sequence[Link] = (),
        trace_id: str | None = None,
        span_id: str | None = None,
        within: Mapping[str, str] | None = None,
    ) -> Span:
        """The first span of ours in a trace. `within`: `traceparent` and `tracestate` of another trace, which it joins
        then. If they are none, it begins one."""
        ...

    def close(self) -> None:
        """Sends what is left, and waits for that a few seconds at most."""
        ...


def span_id_of(*parts: str | int) -> str:
    """The same for the same parts, so that a span can be linked by whoever knows what it was about."""
    digest = hashlib.sha256("\0".join(map(str, parts)).encode()).digest()
    return max(int.from_bytes(digest[:8]), 1).to_bytes(8).hex()  # 0 is no id
