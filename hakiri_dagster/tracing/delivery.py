"""Spans on their way to a receiver. It may be away, slow or gone for good: nobody waits for it but `close`, and that
for seconds only."""

from __future__ import annotations

import logging
import os
import platform
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from threading import Thread
from typing import Final

from opentelemetry.sdk.resources import OTELResourceDetector, Resource
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor, SpanExporter, SpanExportResult
from opentelemetry.util.types import AttributeValue

from hakiri_dagster.security.secrets import safe_url
from hakiri_dagster.tracing.configuration import Receiver, said
from hakiri_dagster.tracing.otel import GivenIds, SpanMaker

log = logging.getLogger(__name__)

PATIENCE_SECONDS: Final = 5.0
PATIENCE_WITH_STRANGERS_SECONDS: Final = 2.0
"""With a receiver that has not taken a span yet: it may not be there at all."""

_SEND_EACH_MS: Final = 1_000
_LOOK_SECONDS: Final = 0.05

SETTINGS_ERRORS: Final = (ValueError, RuntimeError, OSError)
"""What exporters and samplers raise for settings that they cannot read."""


class Watched(SpanExporter):
    """An exporter, and what becomes of what it is given."""

    def __init__(self, exporter: SpanExporter) -> None:
        self._exporter = exporter
        self.answered = False
        self.lost = 0

    def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
        self.lost += len(spans)  # until they are there: an exporter may also raise
        result = self._exporter.export(spans)
        self.answered = result is SpanExportResult.SUCCESS
        if self.answered:
            self.lost -= len(spans)
        return result

    def shutdown(self) -> None:
        self._exporter.shutdown()

    def force_flush(self, timeout_millis: int = 30_000) -> bool:
        return self._exporter.force_flush(timeout_millis)


@dataclass(frozen=True, slots=True)
class SentAway(SpanMaker):
    """Spans that a thread of the SDK sends in batches (`contract.Tracing`)."""

    _endpoint: str
    _provider: TracerProvider
    _exporter: Watched

    @classmethod
    def to(cls, receiver: Receiver, environment: Mapping[str, str]) -> SentAway:
        if not os.environ.get("HAKIRI_LOG"):
            logging.getLogger("opentelemetry").setLevel(logging.CRITICAL)  # what is lost is told once, by `close`
        release = version("hakiri-dagster")
        ids, exporter = GivenIds(), Watched(_exporter(receiver))
        provider = TracerProvider(resource=_resource(release), id_generator=ids, shutdown_on_exit=False)
        delay = None if said(environment, "OTEL_BSP_SCHEDULE_DELAY") else _SEND_EACH_MS
        provider.add_span_processor(BatchSpanProcessor(exporter, schedule_delay_millis=delay))
        return cls(provider.get_tracer("hakiri_dagster", release), ids, safe_url(receiver.endpoint), provider, exporter)

    def close(self) -> None:
        closing = Thread(target=self._provider.shutdown, name="last-spans", daemon=True)
        began = time.monotonic()
        closing.start()
        while closing.is_alive() and time.monotonic() - began < self._patience:
            closing.join(_LOOK_SECONDS)
        if closing.is_alive():
            self._exporter.shutdown()  # ends what is under way
        if closing.is_alive() or self._exporter.lost:
            log.warning("%s did not take all spans of this run; its loads do not depend on that", self._endpoint)

    @property
    def _patience(self) -> float:
        return PATIENCE_SECONDS if self._exporter.answered else PATIENCE_WITH_STRANGERS_SECONDS


def _exporter(receiver: Receiver) -> SpanExporter:
    """Only what is asked for is imported."""
    match receiver.protocol:
        case "grpc":
            from opentelemetry.exporter.otlp.proto.grpc.exporter import InvalidCompressionValueException
            from opentelemetry.exporter.otlp.proto.grpc.trace_exporter import OTLPSpanExporter as OverGrpc

            try:
                return OverGrpc()
            except InvalidCompressionValueException as error:  # an `Exception` of its own
                raise ValueError(str(error)) from error
        case "http/protobuf":
            from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter as OverHttp

            return OverHttp()


def _resource(release: str) -> Resource:
    """`OTEL_SERVICE_NAME` and `OTEL_RESOURCE_ATTRIBUTES` say otherwise where they say something."""
    ours: dict[str, AttributeValue] = {
        "service.name": "hakiri",
        "service.version": release,
        "host.name": platform.node(),
        "process.pid": os.getpid(),
    }
    theirs = OTELResourceDetector().detect().attributes
    return Resource.create({name: value for name, value in ours.items() if name not in theirs})
