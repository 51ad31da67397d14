"""Whether spans are wanted, and by whom they are received."""

from __future__ import annotations

import logging

import pytest

from hakiri_dagster.security.secrets import redact
from hakiri_dagster.tracing.configuration import Receiver, parent_of, receiver, tracing_of

HERE = "http://127.0.0.1:4317"
ENDPOINT = {"OTEL_EXPORTER_OTLP_ENDPOINT": HERE}


@pytest.mark.parametrize(
    "environment",
    [
        {},
        {"OTEL_SERVICE_NAME": "loads"},
        {"OTEL_EXPORTER_OTLP_ENDPOINT": " "},
        ENDPOINT | {"OTEL_SDK_DISABLED": "true"},
        ENDPOINT | {"OTEL_SDK_DISABLED": "True"},
        ENDPOINT | {"OTEL_TRACES_EXPORTER": "none"},
        ENDPOINT | {"OTEL_TRACES_EXPORTER": "console"},
    ],
)
def test_no_spans_are_made_unless_somebody_asks_for_them(environment: dict[str, str]) -> None:
    assert receiver(environment) is None
    assert tracing_of(environment) is None


@pytest.mark.parametrize(
    ("environment", "wanted"),
    [
        (ENDPOINT, Receiver(HERE, "grpc")),
        (ENDPOINT | {"OTEL_SDK_DISABLED": "false", "OTEL_TRACES_EXPORTER": "console, otlp"}, Receiver(HERE, "grpc")),
        (ENDPOINT | {"OTEL_EXPORTER_OTLP_PROTOCOL": "http/protobuf"}, Receiver(HERE, "http/protobuf")),
        (
            ENDPOINT | {"OTEL_EXPORTER_OTLP_PROTOCOL": "http/protobuf", "OTEL_EXPORTER_OTLP_TRACES_PROTOCOL": "grpc"},
            Receiver(HERE, "grpc"),
        ),
        (ENDPOINT | {"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": "http://[::1]:1"}, Receiver("http://[::1]:1", "grpc")),
    ],
)
def test_what_is_said_of_traces_goes_before_what_is_said_of_all_signals(
    environment: dict[str, str], wanted: Receiver
) -> None:
    assert receiver(environment) == wanted


def test_a_protocol_that_nobody_speaks_is_warned_of(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING):
        assert tracing_of(ENDPOINT | {"OTEL_EXPORTER_OTLP_PROTOCOL": "http/json"}) is None
    assert "'http/json' is neither grpc nor http/protobuf" in caplog.text


def test_the_span_of_who_started_the_process_is_handed_on_as_it_is_written() -> None:
    parent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
    assert parent_of({"TRACEPARENT": parent, "TRACESTATE": "", "BAGGAGE": "a=b"}) == {"traceparent": parent}
    assert parent_of({"TRACEPARENT": parent, "TRACESTATE": "a=b"}) == {"traceparent": parent, "tracestate": "a=b"}
    assert parent_of({}) == {}


def test_the_receivers_tokens_are_secrets_and_its_other_headers_are_not(monkeypatch: pytest.MonkeyPatch) -> None:
    headers = "authorization=Bearer%20tok-8f3a91,x-api-key=key-77c2,x-scope-orgid=tenants"
    for name, value in (ENDPOINT | {"OTEL_EXPORTER_OTLP_HEADERS": headers}).items():
        monkeypatch.setenv(name, value)
    tracing = tracing_of(ENDPOINT | {"OTEL_EXPORTER_OTLP_HEADERS": headers})
    assert tracing is not None
    tracing.close()
    assert redact("tok-8f3a91, key-77c2, tenants") == "***, ***, tenants"


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("OTEL_EXPORTER_OTLP_TIMEOUT", "soon"),
        ("OTEL_EXPORTER_OTLP_COMPRESSION", "zip"),
        ("OTEL_BSP_MAX_EXPORT_BATCH_SIZE", "0"),
    ],
)
def test_a_setting_that_cannot_be_read_is_warned_of_and_stops_nothing(
    name: str, value: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv(name, value)
    with caplog.at_level(logging.WARNING):
        assert tracing_of(ENDPOINT) is None
    assert "no spans are sent" in caplog.text
