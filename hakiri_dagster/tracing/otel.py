"""Spans of OpenTelemetry's SDK. Imported where an exporter is configured: without one, none of it is loaded."""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from opentelemetry import trace
from opentelemetry.context import Context
from opentelemetry.sdk.trace.id_generator import IdGenerator, RandomIdGenerator
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator
from opentelemetry.util.types import AttributeValue

from hakiri_dagster.security.secrets import redact
from hakiri_dagster.tracing.contract import Attributes, Link, SpanPlace

LONGEST_TEXT = 4_000
"""Of a status: some errors quote many lines, and collectors refuse large messages."""


class GivenIds(IdGenerator):
    """Random ids, but for the next span of this thread those that are given. The SDK asks nobody else."""

    def __init__(self) -> None:
        self._random = RandomIdGenerator()
        self._given = threading.local()

    def generate_trace_id(self) -> int:
        given: int | None = getattr(self._given, "trace_id", None)
        return given or self._random.generate_trace_id()

    def generate_span_id(self) -> int:
        given: int | None = getattr(self._given, "span_id", None)
        return given or self._random.generate_span_id()

    def give(self, trace_id: str | None, span_id: str | None) -> None:
        self._given.trace_id = None if trace_id is None else int(trace_id, 16)
        self._given.span_id = None if span_id is None else int(span_id, 16)


@dataclass(frozen=True, slots=True)
class SpanMaker:
    """Of one provider."""

    tracer: trace.Tracer
    ids: GivenIds

    def root(
        self,
        name: str,
        attributes: Attributes,
        *,
        links: Sequence[Link] = (),
        trace_id: str | None = None,
        span_id: str | None = None,
        within: Mapping[str, str] | None = None,
    ) -> OtelSpan:
        context = TraceContextTextMapPropagator().extract(within or {}, Context())
        return self.begun(name, context, attributes, links, None, trace_id=trace_id, span_id=span_id)

    def begun(
        self,
        name: str,
        context: Context,
        attributes: Attributes,
        links: Sequence[Link],
        began: int | None,
        *,
        trace_id: str | None = None,
        span_id: str | None = None,
    ) -> OtelSpan:
        self.ids.give(trace_id, span_id)
        span = self.tracer.start_span(
            redact(name), context, attributes=_told(attributes), links=list(map(_link, links)), start_time=began
        )
        return OtelSpan(self, span)


@dataclass(frozen=True, slots=True)
class OtelSpan:
    _maker: SpanMaker
    _span: trace.Span

    @property
    def trace_id(self) -> str:
        return trace.format_trace_id(self._span.get_span_context().trace_id)

    def child(
        self,
        name: str,
        attributes: Attributes,
        *,
        links: Sequence[Link] = (),
        began: int | None = None,
        span_id: str | None = None,
    ) -> OtelSpan:
        context = trace.set_span_in_context(self._span, Context())
        return self._maker.begun(name, context, attributes, links, began, span_id=span_id)

    def tell(self, attributes: Attributes) -> None:
        self._span.set_attributes(_told(attributes))

    def happened(self, name: str, attributes: Attributes) -> None:
        self._span.add_event(name, _told(attributes))

    def failed(self, why: str) -> None:
        self._span.set_status(trace.StatusCode.ERROR, redact(why)[:LONGEST_TEXT])

    def ended(self) -> None:
        self._span.end()


def _told(attributes: Attributes) -> dict[str, AttributeValue]:
    """The one way into a span: nothing secret passes."""
    told: dict[str, AttributeValue] = {}
    for name, value in attributes.items():
        match value:
            case None:
                continue
            case str():
                told[name] = redact(value)
            case bool() | int() | float():
                told[name] = value
            case _:
                told[name] = [redact(one) if isinstance(one, str) else one for one in value]
    return told


def _link(link: Link) -> trace.Link:
    return trace.Link(_context_of(link.to), _told(link.attributes))


def _context_of(place: SpanPlace) -> trace.SpanContext:
    return trace.SpanContext(
        int(place.trace_id, 16), int(place.span_id, 16), is_remote=True, trace_flags=trace.TraceFlags(0)
    )
