"""Whether spans are wanted, by OpenTelemetry's own environment variables. Imports nothing of OpenTelemetry."""

from __future__ import annotations

import logging
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Literal
from urllib.parse import unquote

from hakiri_dagster.security.secrets import register
from hakiri_dagster.tracing.contract import Tracing

log = logging.getLogger(__name__)

OtlpProtocol = Literal["grpc", "http/protobuf"]

_HEADERS = ("OTEL_EXPORTER_OTLP_HEADERS", "OTEL_EXPORTER_OTLP_TRACES_HEADERS")
_NAMES_A_SECRET = re.compile("auth|key|token|secret|password", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Receiver:
    """Where spans are sent. Certificates, headers, timeouts, compression and batches the exporter reads by itself."""

    endpoint: str
    protocol: OtlpProtocol


def receiver(environment: Mapping[str, str]) -> Receiver | None:
    """None where nobody asked for spans."""
    endpoint = said(environment, "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "OTEL_EXPORTER_OTLP_ENDPOINT")
    disabled = said(environment, "OTEL_SDK_DISABLED").lower() == "true"
    exporters = said(environment, "OTEL_TRACES_EXPORTER") or "otlp"
    if not endpoint or disabled or "otlp" not in (name.strip() for name in exporters.split(",")):
        return None
    match said(environment, "OTEL_EXPORTER_OTLP_TRACES_PROTOCOL", "OTEL_EXPORTER_OTLP_PROTOCOL"):
        case "" | "grpc":
            return Receiver(endpoint, "grpc")
        case "http/protobuf":
            return Receiver(endpoint, "http/protobuf")
        case other:
            log.warning("no spans are sent: the OTLP protocol %r is neither grpc nor http/protobuf", other)
            return None


def tracing_of(environment: Mapping[str, str]) -> Tracing | None:
    """What a load does not depend on does not stop it either: whatever is wrong with the settings is warned of."""
    wanted = receiver(environment)
    if wanted is None:
        return None
    register(_secrets_of(environment))
    from hakiri_dagster.tracing.delivery import SETTINGS_ERRORS, SentAway

    try:
        return SentAway.to(wanted, environment)
    except SETTINGS_ERRORS as error:
        log.warning("no spans are sent: %s", error)
        return None


def parent_of(environment: Mapping[str, str]) -> Mapping[str, str]:
    """The span that whoever started this process is in, as W3C names its parts."""
    return {name: value for name in ("traceparent", "tracestate") if (value := said(environment, name.upper()))}


def said(environment: Mapping[str, str], *names: str) -> str:
    """By the first of them that says something. An empty variable is one that is not set."""
    return next((value for name in names if (value := environment.get(name, "").strip())), "")


def _secrets_of(environment: Mapping[str, str]) -> Iterator[str]:
    """The receiver's tokens, with and without the word before them (`Bearer …`)."""
    for pair in (pair for name in _HEADERS for pair in environment.get(name, "").split(",")):
        name, _, value = pair.partition("=")
        if _NAMES_A_SECRET.search(name):
            yield value.strip()
            yield unquote(value).strip().rpartition(" ")[2]
