"""Spans on their way to receivers that answer, are not there, or never come to an end."""

from __future__ import annotations

import logging
import socket
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import Any

import pytest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from hakiri_dagster.tracing.configuration import tracing_of
from hakiri_dagster.tracing.contract import Tracing
from tests.span_receiver import Received, SpanReceiver, received, span_receiver


@pytest.fixture
def receiver() -> Iterator[SpanReceiver]:
    with span_receiver() as opened:
        yield opened


def opened(monkeypatch: pytest.MonkeyPatch, endpoint: str, **more: str) -> Tracing:
    environment = {"OTEL_EXPORTER_OTLP_ENDPOINT": endpoint, **more}
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    tracing = tracing_of(environment)
    assert tracing is not None
    return tracing


def test_all_spans_are_there_when_it_is_closed(receiver: SpanReceiver, monkeypatch: pytest.MonkeyPatch) -> None:
    tracing = opened(monkeypatch, receiver.endpoint, OTEL_EXPORTER_OTLP_HEADERS="x-tenant=shop")
    run = tracing.root("load", {"hakiri.table": "orders"})
    for number in range(1_500):
        run.child("chunk", {"number": number}).ended()
    run.ended()
    tracing.close()
    spans = receiver.take()
    assert sorted(span.attributes["number"] for span in spans if span.name == "chunk") == list(range(1_500))
    (load,) = [span for span in spans if span.name == "load"]
    assert {span.parent_id for span in spans} == {load.span_id, ""}
    assert {headers["x-tenant"] for headers in receiver.headers} == {"shop"}
    assert load.resource["service.name"] == "hakiri"
    assert load.resource["service.version"]


def test_a_span_is_sent_while_others_go_on(receiver: SpanReceiver, monkeypatch: pytest.MonkeyPatch) -> None:
    tracing = opened(monkeypatch, receiver.endpoint, OTEL_BSP_SCHEDULE_DELAY="10")
    run = tracing.root("load", {})
    run.child("chunk", {}).ended()
    assert receiver.asked.wait(30)
    run.ended()
    tracing.close()
    assert {span.name for span in receiver.take()} == {"load", "chunk"}


def test_the_operator_names_the_service(receiver: SpanReceiver, monkeypatch: pytest.MonkeyPatch) -> None:
    said = {"OTEL_SERVICE_NAME": "nightly", "OTEL_RESOURCE_ATTRIBUTES": "host.name=etl-1,team=data"}
    tracing = opened(monkeypatch, receiver.endpoint, **said)
    tracing.root("load", {}).ended()
    tracing.close()
    (load,) = receiver.take()
    told = {name: load.resource[name] for name in ("service.name", "host.name", "team")}
    assert told == {"service.name": "nightly", "host.name": "etl-1", "team": "data"}


def test_a_receiver_that_never_answers_is_left(
    receiver: SpanReceiver, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """The SDK would wait for it for half a minute, and leave it only then."""
    receiver.open.clear()
    tracing = opened(monkeypatch, receiver.endpoint, OTEL_EXPORTER_OTLP_TIMEOUT="600")
    tracing.root("load", {}).ended()
    closing = threading.Thread(target=tracing.close)
    with caplog.at_level(logging.WARNING):
        closing.start()
        assert receiver.asked.wait(20)
        assert receiver.left.wait(20)
        closing.join()
    assert not receiver.open.is_set()
    assert [record.message for record in caplog.records] == [
        f"{receiver.endpoint} did not take all spans of this run; its loads do not depend on that"
    ]


def test_a_receiver_that_refuses_spans_is_told_once(
    receiver: SpanReceiver, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    receiver.refuses = True
    tracing = opened(monkeypatch, receiver.endpoint)
    tracing.root("load", {}).ended()
    with caplog.at_level(logging.WARNING):
        tracing.close()
    assert len(caplog.records) == 1
    assert "did not take all spans of this run" in caplog.text


@pytest.mark.parametrize("protocol", ["grpc", "http/protobuf"])
def test_a_receiver_that_is_away_is_told_once(
    protocol: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    endpoint = f"http://me:plum-brandy@127.0.0.1:{_closed_port()}"
    tracing = opened(monkeypatch, endpoint, OTEL_EXPORTER_OTLP_PROTOCOL=protocol)
    tracing.root("load", {}).ended()
    with caplog.at_level(logging.WARNING):
        tracing.close()
    assert len(caplog.records) == 1
    assert "did not take all spans of this run" in caplog.text
    assert "plum-brandy" not in caplog.text


def test_no_thread_is_left_by_a_receiver_that_is_away(monkeypatch: pytest.MonkeyPatch) -> None:
    before = set(threading.enumerate())
    tracing = opened(monkeypatch, f"http://127.0.0.1:{_closed_port()}")
    tracing.root("load", {}).ended()
    tracing.close()
    for thread in set(threading.enumerate()) - before:
        thread.join(30)
        assert not thread.is_alive(), thread.name


def test_spans_go_over_http_where_that_is_wanted(monkeypatch: pytest.MonkeyPatch) -> None:
    class Collector(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            taken.append((self.path, received(ExportTraceServiceRequest.FromString(body))))
            self.send_response(200)
            self.end_headers()

        def log_message(self, format: str, *args: Any) -> None: ...  # noqa: A002  # the base's name

    taken: list[tuple[str, list[Received]]] = []
    with HTTPServer(("127.0.0.1", 0), Collector) as server:
        serving = threading.Thread(target=server.serve_forever)
        serving.start()
        endpoint = f"http://127.0.0.1:{server.server_port}"
        tracing = opened(monkeypatch, endpoint, OTEL_EXPORTER_OTLP_PROTOCOL="http/protobuf")
        tracing.root("load", {"hakiri.table": "orders"}).ended()
        tracing.close()
        server.shutdown()
        serving.join()
    ((path, (load,)),) = taken
    assert path == "/v1/traces"
    assert (load.name, load.attributes) == ("load", {"hakiri.table": "orders"})


def _closed_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port
