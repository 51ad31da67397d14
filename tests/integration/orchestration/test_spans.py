"""Runs that Dagster launches by itself, their retries and what is loaded again, as a collector sees them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any
from uuid import UUID

import dagster as dg
import pytest

from hakiri_dagster.definitions import project_definitions
from hakiri_dagster.destinations.contract import LedgerEntry
from hakiri_dagster.destinations.postgres.loading import OpenLoad
from hakiri_dagster.errors import DestinationError, DestinationUnavailable
from hakiri_dagster.manifest.project import load_project
from hakiri_dagster.pipeline.remembering import remember
from hakiri_dagster.pipeline.rewinding import Wish, rewind, stretch_of
from tests.integration.orchestration.conftest import ShopProject
from tests.span_receiver import Received, SpanReceiver, span_receiver

Declare = Callable[..., ShopProject]

MONTHS = ("2024-01", "2024-02", "2024-03")
ORDERS = dg.AssetKey(["shop", "orders"])
SOMEBODYS_SPAN = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"


@pytest.fixture
def receiver(monkeypatch: pytest.MonkeyPatch) -> Iterator[SpanReceiver]:
    """For what is opened as Dagster opens it, with the settings of the environment."""
    with span_receiver() as opened:
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", opened.endpoint)
        monkeypatch.setenv("HAKIRI_RETRY_BASE", "0.01")
        yield opened


@pytest.fixture
def shop(csv_shop: Declare) -> ShopProject:
    shop = csv_shop(incremental="placed_at", load={"mode": "append"}, rowLevel=[{"type": "not_null", "field": "id"}])
    shop.file("data/orders.csv", "id,placed_at\n" + "".join(f"{n},{month}-05\n" for n, month in enumerate(MONTHS)))
    with shop.runtime() as runtime:
        (table,) = runtime.project.tables
        survey = runtime.survey(table)
        remember(runtime.audit, survey, survey.due)
    return shop


def launch(shop: ShopProject, *months: str, **tags: str) -> str:
    """As the UI does: the project is opened for the run, by its resource."""
    job = project_definitions(load_project(shop.root, env={}), shop.settings).resolve_implicit_global_asset_job_def()
    wanted = {"dagster/asset_partition_range_start": months[0], "dagster/asset_partition_range_end": months[-1]}
    told = {f"dagster/{name}": value for name, value in tags.items()}
    return job.execute_in_process(instance=shop.instance, tags=wanted | told, raise_on_error=False).run_id


def of_kind(spans: list[Received], kind: str) -> list[Received]:
    return [span for span in spans if span.kind == kind]


def chunks(spans: list[Received]) -> dict[str, Received]:
    return {span.attributes["hakiri.chunk_id"]: span for span in of_kind(spans, "chunk")}


def test_a_run_is_a_trace_of_its_own_whose_id_is_the_runs(
    shop: ShopProject, receiver: SpanReceiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever started the server that the run is launched by did not start the run."""
    monkeypatch.setenv("TRACEPARENT", SOMEBODYS_SPAN)
    run_id = launch(shop, *MONTHS, backfill="b-1")
    spans = receiver.take()
    assert {span.trace_id for span in spans} == {UUID(run_id).hex}
    (load,) = of_kind(spans, "load")
    assert (load.parent_id, load.attributes["hakiri.occasion"]) == ("", "b-1")
    assert sorted(chunks(spans)) == list(MONTHS)
    with shop.runtime() as runtime:
        (record,) = runtime.audit.runs.recent("shop", "orders")
    events = shop.instance.fetch_materializations(ORDERS, limit=10).records
    shown = [event.asset_materialization.metadata["trace_id"].value for event in events if event.asset_materialization]
    assert [record.trace_id, *shown] == [UUID(run_id).hex] * 4


def test_a_chunk_that_is_loaded_again_links_the_span_that_loaded_it_before(
    shop: ShopProject, receiver: SpanReceiver
) -> None:
    first_run = launch(shop, *MONTHS)
    first = chunks(receiver.take())["2024-02"]
    launch(shop, "2024-02")
    (again,) = chunks(receiver.take()).values()
    (link,) = again.links
    assert (link.trace_id, link.span_id) == (first.trace_id, first.span_id)
    assert link.attributes == {
        "hakiri.link": "replaces",
        "hakiri.run_id": first_run,
        "hakiri.chunk.load_id": first.attributes["hakiri.chunk.load_id"],
    }
    assert again.attributes["hakiri.chunk.replaces"] == [first.attributes["hakiri.chunk.load_id"]]
    assert again.attributes["hakiri.chunk.attempts"] == 2


def test_a_chunk_that_was_rewound_tells_why_and_links_what_it_replaces(
    shop: ShopProject, receiver: SpanReceiver
) -> None:
    launch(shop, *MONTHS)
    first = chunks(receiver.take())["2024-02"]
    with shop.runtime() as runtime:
        (table,) = runtime.project.tables
        survey = runtime.survey(table)
        wish = Wish("2024-02-01", "2024-03-01", "vendor-side data correction RT-481", "ada")
        answer = rewind(runtime, survey, stretch_of(survey, wish), wish)
    launch(shop, "2024-02")
    (again,) = chunks(receiver.take()).values()
    assert again.attributes["hakiri.rewind.reason"] == "vendor-side data correction RT-481"
    assert again.attributes["hakiri.rewind.id"] == answer.rewind_id
    assert again.attributes["hakiri.chunk.replaces"] == [first.attributes["hakiri.chunk.load_id"]]
    assert [(link.trace_id, link.span_id) for link in again.links] == [(first.trace_id, first.span_id)]


def test_a_run_that_retries_another_links_it_and_shows_what_it_spares(
    shop: ShopProject, receiver: SpanReceiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    publish = OpenLoad.publish

    def refuse(load: OpenLoad, *told: Any) -> LedgerEntry:
        if load.load.slice.chunk.key == "2024-02":
            load.undo()
            raise DestinationError("the target refused the rows")
        return publish(load, *told)

    monkeypatch.setattr(OpenLoad, "publish", refuse)
    root = launch(shop, *MONTHS)
    spans = receiver.take()
    (failed_run,) = of_kind(spans, "load")
    assert failed_run.error is not None
    assert {key: span.attributes["hakiri.chunk.outcome"] for key, span in chunks(spans).items()} == {
        "2024-01": "published",
        "2024-02": "failed",
        "2024-03": "published",
    }
    (failure,) = shop.instance.get_records_for_run(root, of_type=dg.DagsterEventType.STEP_FAILURE).records
    event = failure.event_log_entry.dagster_event
    assert event is not None
    assert event.step_failure_data.user_failure_data is not None
    assert event.step_failure_data.user_failure_data.metadata["trace_id"].value == UUID(root).hex
    monkeypatch.setattr(OpenLoad, "publish", publish)
    launch(shop, *MONTHS, root_run_id=root, parent_run_id=root)
    spans = receiver.take()
    (retry,) = of_kind(spans, "load")
    assert [(link.trace_id, link.span_id) for link in retry.links] == [(failed_run.trace_id, failed_run.span_id)]
    assert retry.attributes["hakiri.run.retries"] == [root]
    assert {key: span.attributes["hakiri.chunk.outcome"] for key, span in chunks(spans).items()} == {
        "2024-01": "skipped",
        "2024-02": "published",
        "2024-03": "skipped",
    }
    assert chunks(spans)["2024-02"].links == ()  # nothing of it was published before


def test_what_is_tried_again_is_one_span_with_the_pause_told_in_the_run(
    shop: ShopProject, receiver: SpanReceiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    def publish(load: OpenLoad, *_args: object) -> LedgerEntry:
        monkeypatch.undo()
        load.undo()
        raise DestinationUnavailable("the server closed the connection")

    monkeypatch.setattr(OpenLoad, "publish", publish)
    launch(shop, "2024-01")
    spans = receiver.take()
    (chunk,) = chunks(spans).values()
    (load,) = of_kind(spans, "load")
    assert (chunk.error, chunk.attributes["hakiri.chunk.attempts"]) == (None, 1)
    (retry,) = load.events
    assert (retry.name, retry.attributes["hakiri.error.kind"]) == ("retry", "transient")
    assert retry.attributes["hakiri.error.message"] == "the server closed the connection"


def test_a_run_that_is_interrupted_shows_the_chunk_it_was_at(
    shop: ShopProject, receiver: SpanReceiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(load: OpenLoad, *_args: object) -> LedgerEntry:
        load.undo()
        raise KeyboardInterrupt

    monkeypatch.setattr(OpenLoad, "publish", interrupted)
    launch(shop, *MONTHS)
    spans = receiver.take()
    (load,) = of_kind(spans, "load")
    assert "the run was interrupted" in (load.error or "")
    given_back = [s for s in chunks(spans).values() if s.attributes["hakiri.chunk.outcome"] == "given_back"]
    assert "2024-01" in {span.attributes["hakiri.chunk_id"] for span in given_back}
    assert all(span.error for span in given_back)
