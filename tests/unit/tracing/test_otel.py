"""Our spans as OpenTelemetry's SDK makes them."""

from __future__ import annotations

import pytest
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from hakiri_dagster.security.secrets import register
from hakiri_dagster.tracing.contract import Link, SpanPlace, span_id_of
from hakiri_dagster.tracing.otel import LONGEST_TEXT, GivenIds, SpanMaker

TRACE = "0af7651916cd43dd8448eb211c80319c"
SPAN = "b7ad6b7169203331"
SECRET = "plum-4711-brandy"


class Spans:
    def __init__(self) -> None:
        self._kept = InMemorySpanExporter()
        ids = GivenIds()
        provider = TracerProvider(id_generator=ids, shutdown_on_exit=False)
        provider.add_span_processor(SimpleSpanProcessor(self._kept))
        self.make = SpanMaker(provider.get_tracer("test"), ids)

    def __getitem__(self, name: str) -> ReadableSpan:
        (found,) = [span for span in self._kept.get_finished_spans() if span.name == name]
        return found


@pytest.fixture
def spans() -> Spans:
    register([SECRET])
    return Spans()


def test_a_span_has_the_ids_that_it_is_given_and_its_children_have_others(spans: Spans) -> None:
    run = spans.make.root("run", {}, trace_id=TRACE, span_id=SPAN)
    run.child("given", {}, span_id="0000000000000001").ended()
    run.child("random", {}).ended()
    run.ended()
    assert run.trace_id == TRACE
    contexts = {name: spans[name].get_span_context() for name in ("run", "given", "random")}
    assert {context.trace_id for context in contexts.values() if context} == {int(TRACE, 16)}
    assert [context.span_id for context in contexts.values() if context][:2] == [int(SPAN, 16), 1]
    assert {spans[name].parent.span_id for name in ("given", "random") if spans[name].parent} == {int(SPAN, 16)}
    spans.make.root("another", {}).ended()
    another = spans["another"].get_span_context()
    assert another is not None
    assert (another.trace_id, another.span_id) != (int(TRACE, 16), int(SPAN, 16))


def test_it_joins_the_trace_of_who_started_the_process_and_no_other(spans: Spans) -> None:
    joined = spans.make.root("joined", {}, within={"traceparent": f"00-{TRACE}-{SPAN}-01"})
    joined.ended()
    assert joined.trace_id == TRACE
    assert spans["joined"].parent is not None
    for wrong in ("", "x", f"00-{TRACE}-{SPAN}", f"00-{'0' * 32}-{SPAN}-01", f"ff-{TRACE}-{SPAN}-01"):
        alone = spans.make.root(f"alone {wrong}", {}, within={"traceparent": wrong})
        alone.ended()
        assert alone.trace_id != TRACE
        assert spans[f"alone {wrong}"].parent is None


def test_a_trace_that_its_owner_does_not_sample_is_not_sampled_here(spans: Spans) -> None:
    spans.make.root("unsampled", {}, within={"traceparent": f"00-{TRACE}-{SPAN}-00"}).ended()
    with pytest.raises(ValueError, match="not enough values"):
        assert spans["unsampled"]


def test_nothing_secret_gets_into_a_span(spans: Spans) -> None:
    link = Link(SpanPlace(TRACE, SPAN), {"where": f"/{SECRET}/"})
    span = spans.make.root("leaky", {"path": f"/{SECRET}/a.csv", "names": ["a", SECRET]}, links=[link])
    span.tell({"more": f"password={SECRET}"})
    span.happened("retry", {"why": f"{SECRET} is wrong"})
    span.failed(f"postgresql://me:{SECRET}@here/db does not answer")
    span.ended()
    assert SECRET not in spans["leaky"].to_json()
    assert dict(spans["leaky"].attributes or {}) == {
        "path": "/***/a.csv",
        "names": ("a", "***"),
        "more": "password=***",
    }


def test_what_is_none_is_left_out_and_numbers_stay_numbers(spans: Spans) -> None:
    spans.make.root("told", {"none": None, "rows": 3, "share": 0.5, "yes": True, "ids": [1, 2]}).ended()
    assert dict(spans["told"].attributes or {}) == {"rows": 3, "share": 0.5, "yes": True, "ids": (1, 2)}


def test_a_long_error_is_cut(spans: Spans) -> None:
    span = spans.make.root("long", {})
    span.failed("x" * 2 * LONGEST_TEXT)
    span.ended()
    assert len(spans["long"].status.description or "") == LONGEST_TEXT


def test_a_span_may_have_begun_before_it_is_told(spans: Spans) -> None:
    run = spans.make.root("run", {})
    run.child("chunk", {}, began=17).ended()
    assert spans["chunk"].start_time == 17


def test_ids_follow_from_what_a_span_is_about() -> None:
    assert span_id_of("chunk", "run-1", "2024-01", 1) == span_id_of("chunk", "run-1", "2024-01", 1)
    told = {
        span_id_of("chunk", "run-1", "2024-01", 1),
        span_id_of("chunk", "run-1", "2024-01", 2),
        span_id_of("a", "b"),
    }
    assert len(told) == 3
    assert {len(span_id) for span_id in told} == {16}
    assert span_id_of("a", "bc") != span_id_of("ab", "c")
