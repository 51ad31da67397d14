"""A receiver of spans as a collector is one: OpenTelemetry's own service, over gRPC on this machine."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import grpc
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import (
    ExportTraceServiceRequest,
    ExportTraceServiceResponse,
)
from opentelemetry.proto.collector.trace.v1.trace_service_pb2_grpc import (
    TraceServiceServicer,
    add_TraceServiceServicer_to_server,
)
from opentelemetry.proto.common.v1.common_pb2 import AnyValue, KeyValue


@dataclass(frozen=True)
class Event:
    name: str
    attributes: Mapping[str, Any]


@dataclass(frozen=True)
class Linked:
    trace_id: str
    span_id: str
    attributes: Mapping[str, Any]


@dataclass(frozen=True)
class Received:
    trace_id: str
    span_id: str
    parent_id: str
    name: str
    attributes: Mapping[str, Any]
    error: str | None
    links: tuple[Linked, ...]
    events: tuple[Event, ...]
    began: int
    ended: int
    resource: Mapping[str, Any]

    @property
    def kind(self) -> str:
        """`hakiri`, `load`, `read`, `chunk`, `pre_hook`, `post_hook`."""
        return self.name.partition(" ")[0]


class SpanReceiver(TraceServiceServicer):
    """Takes what comes, but only while it is `open`, and nothing if it `refuses`. `left`: a sender has broken off."""

    def __init__(self) -> None:
        self.endpoint = ""
        self.headers: list[Mapping[str, str]] = []
        self.asked = threading.Event()
        self.open = threading.Event()
        self.open.set()
        self.left = threading.Event()
        self.refuses = False
        self._spans: list[Received] = []
        self._lock = threading.Lock()

    def Export(  # noqa: N802  # the service's own name
        self, request: ExportTraceServiceRequest, context: grpc.ServicerContext
    ) -> ExportTraceServiceResponse:
        self.asked.set()
        if self.refuses:
            context.abort(grpc.StatusCode.UNAUTHENTICATED, "no token")
        context.add_callback(lambda: None if self.open.is_set() else self.left.set())
        self.open.wait()
        with self._lock:
            self.headers.append(dict(context.invocation_metadata()))
            self._spans += received(request)
        return ExportTraceServiceResponse()

    def take(self) -> list[Received]:
        """All that came since it was last asked."""
        with self._lock:
            taken, self._spans = self._spans, []
        return taken


@contextmanager
def span_receiver() -> Iterator[SpanReceiver]:
    receiver = SpanReceiver()
    server = grpc.server(ThreadPoolExecutor(2))
    add_TraceServiceServicer_to_server(receiver, server)
    receiver.endpoint = f"http://127.0.0.1:{server.add_insecure_port('127.0.0.1:0')}"
    server.start()
    try:
        yield receiver
    finally:
        receiver.open.set()
        server.stop(None).wait()


def received(request: ExportTraceServiceRequest) -> list[Received]:
    return [
        Received(
            trace_id=span.trace_id.hex(),
            span_id=span.span_id.hex(),
            parent_id=span.parent_span_id.hex(),
            name=span.name,
            attributes=_attributes(span.attributes),
            error=span.status.message if span.status.code == span.status.STATUS_CODE_ERROR else None,
            links=tuple(
                Linked(link.trace_id.hex(), link.span_id.hex(), _attributes(link.attributes)) for link in span.links
            ),
            events=tuple(Event(event.name, _attributes(event.attributes)) for event in span.events),
            began=span.start_time_unix_nano,
            ended=span.end_time_unix_nano,
            resource=_attributes(of_resource.resource.attributes),
        )
        for of_resource in request.resource_spans
        for of_scope in of_resource.scope_spans
        for span in of_scope.spans
    ]


def _attributes(pairs: Any) -> dict[str, Any]:
    return {pair.key: _value(pair.value) for pair in _typed(pairs)}


def _typed(pairs: Any) -> Iterator[KeyValue]:
    yield from pairs


def _value(value: AnyValue) -> Any:
    kind = value.WhichOneof("value")
    if kind == "array_value":
        return [_value(one) for one in value.array_value.values]
    return getattr(value, kind or "string_value")
