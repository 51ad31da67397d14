"""What a collector receives of an apply, and what becomes of an apply without one."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from dataclasses import dataclass

import pytest

from hakiri_dagster.audit.database import open_audit_view
from hakiri_dagster.audit.runs import RunRecord
from tests.acceptance.command_line import Done, ProjectFolder
from tests.acceptance.conftest import NewProject
from tests.span_receiver import Received, SpanReceiver, span_receiver

CI_TRACE = "0af7651916cd43dd8448eb211c80319c"
CI_SPAN = "b7ad6b7169203331"
SECRET = "plum-4711-brandy"
MONTHS = ("2024-01", "2024-02", "2024-03", "2024-04")
ORDERS = "order_id,placed_at,total\n" + "".join(
    f"{number},{month}-{day:02},{number}.50\n"
    for number, (month, day) in enumerate((month, day) for month in MONTHS for day in (1, 5, 9))
)
WHAT_IS_IMPORTED = """
import json, sys
from hakiri_dagster.cli.main import main
sys.argv = ["hakiri", "run", "shop", "--table", "orders", "--chunk", "2024-04", "--json"]
try:
    main()
finally:
    found = sorted(name for name in sys.modules if name.startswith("opentelemetry"))
    print("imported:", json.dumps(found), file=sys.stderr, flush=True)
"""


@dataclass(frozen=True)
class Traced:
    project: ProjectFolder
    applied: Done
    spans: list[Received]
    run: RunRecord

    def of_kind(self, kind: str) -> list[Received]:
        return [span for span in self.spans if span.kind == kind]

    @property
    def chunks(self) -> dict[str, Received]:
        return {span.attributes["hakiri.chunk_id"]: span for span in self.of_kind("chunk")}


@pytest.fixture(scope="module")
def receiver() -> Iterator[SpanReceiver]:
    with span_receiver() as opened:
        yield opened


@pytest.fixture(scope="module")
def traced(new_project: NewProject, receiver: SpanReceiver) -> Traced:
    """Of four months one is refused, and one loses a row to the quarantine."""
    project = new_project("traced")
    project.env["EXPORT_DIR"] = SECRET
    project.file("manifests/hakiri.toml", '[project]\nname = "shop"\n')
    project.file(f"data/{SECRET}/orders.csv", ORDERS.replace("3,2024-02-01,3.50", "3,2024-02-01,-1"))
    project.pipeline(
        {
            "id": "shop",
            "secrets": ["EXPORT_DIR"],
            "source": {"connector": "files", "config": {"path": "data/${EXPORT_DIR}", "format": "csv"}},
            "tables": [
                {
                    "name": "orders",
                    "incremental": "placed_at",
                    "load": {"mode": "append"},
                    "row_level": [
                        {"type": "range", "field": "total", "min": 0, "on_fail": "skip"},
                        {"type": "one_of", "field": "order_id", "values": _all_but(7), "on_fail": "abort"},
                    ],
                }
            ],
        }
    )
    environment = {"OTEL_EXPORTER_OTLP_ENDPOINT": receiver.endpoint, "TRACEPARENT": f"00-{CI_TRACE}-{CI_SPAN}-01"}
    applied = project.hakiri("apply", "--json", env=environment)
    with open_audit_view(None, project.state) as audit:
        (run,) = audit.runs.recent("shop", "orders")
    return Traced(project, applied, receiver.take(), run)


def _all_but(order: int) -> list[int]:
    return [number for number in range(12) if number != order]


class TestABackfill:
    def test_is_one_trace_within_that_of_who_started_it(self, traced: Traced) -> None:
        assert traced.applied.code == 1
        assert {span.trace_id for span in traced.spans} == {CI_TRACE}
        (command,), (load,) = traced.of_kind("hakiri"), traced.of_kind("load")
        assert (command.name, command.parent_id) == ("hakiri apply", CI_SPAN)
        assert (load.name, load.parent_id) == ("load shop/orders", command.span_id)
        assert {span.parent_id for kind in ("read", "chunk") for span in traced.of_kind(kind)} == {load.span_id}

    def test_has_a_span_a_chunk_with_what_the_specification_asks_for(self, traced: Traced) -> None:
        assert sorted(traced.chunks) == list(MONTHS)
        january = traced.chunks["2024-01"]
        told = january.attributes
        assert {name: told[name] for name in told if not name.endswith(("_ms", "eta", "bytes", "load_id"))} == {
            "hakiri.pipeline_id": "shop",
            "hakiri.table": "orders",
            "hakiri.run_id": traced.run.run_id,
            "hakiri.chunk_id": "2024-01",
            "hakiri.chunk.predicate": "placed_at >= '2024-01-01' AND placed_at < '2024-02-01'",
            "hakiri.chunk.attempts": 1,
            "hakiri.chunk.outcome": "published",
            "hakiri.chunk.rows": 3,
            "hakiri.chunk.quarantined": 0,
        }
        assert told["hakiri.chunk.bytes"] > 0
        assert told["hakiri.chunk.wait_ms"] == 0
        assert told["hakiri.chunk.duration_ms"] <= (january.ended - january.began) / 1e6
        last = max(traced.chunks.values(), key=lambda span: span.ended)
        assert last.attributes["hakiri.backfill.eta"] == 0

    def test_shows_the_chunk_that_failed_with_the_kind_of_its_error(self, traced: Traced) -> None:
        failed = {key: span for key, span in traced.chunks.items() if span.error is not None}
        assert list(failed) == ["2024-03"]
        march = failed["2024-03"]
        assert "one_of_order_id: 1 of 3 row(s) break it" in (march.error or "")
        told = march.attributes
        assert (told["hakiri.chunk.outcome"], told["hakiri.chunk.rows"]) == ("failed", 0)
        assert (told["error.type"], told["hakiri.error.kind"]) == ("RowsRefused", "permanent")
        assert told["hakiri.chunk.failed_checks"] == ["one_of_order_id"]

    def test_shows_the_rows_that_were_set_aside(self, traced: Traced) -> None:
        told = traced.chunks["2024-02"].attributes
        assert (told["hakiri.chunk.rows"], told["hakiri.chunk.quarantined"]) == (2, 1)
        assert told["hakiri.chunk.failed_checks"] == ["range_total"]

    def test_sums_up_in_the_spans_of_the_run_and_of_the_command(self, traced: Traced) -> None:
        (command,), (load,), (read,) = traced.of_kind("hakiri"), traced.of_kind("load"), traced.of_kind("read")
        assert (load.attributes["hakiri.run.chunks.published"], load.attributes["hakiri.run.chunks.failed"]) == (3, 1)
        assert load.attributes["hakiri.run.rows"] == command.attributes["hakiri.command.rows"] == 8
        assert load.error is not None
        assert command.error is not None
        assert (read.attributes["hakiri.read.chunks"], read.error) == (4, None)

    def test_is_found_again_by_the_trace_id_of_its_record_and_of_its_events(self, traced: Traced) -> None:
        assert traced.run.trace_id == CI_TRACE
        events = traced.project.rows(
            "SELECT event FROM event_logs WHERE dagster_event_type IN ('ASSET_MATERIALIZATION', 'STEP_FAILURE')",
            database="dagster",
        )
        assert len(events) == 4
        assert all(f'"text": "{CI_TRACE}"' in event for (event,) in events)

    def test_tells_no_secret(self, traced: Traced) -> None:
        assert SECRET not in json.dumps([str(span) for span in traced.spans])


def test_a_receiver_that_is_away_fails_nothing(traced: Traced) -> None:
    again = ("run", "shop", "--table", "orders", "--chunk", "2024-01", "--json")
    told = traced.project.hakiri(*again, env={"OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:9"})
    assert told.code == 0, told
    assert told.tables()["orders"]["rows"] == 3
    assert told.err.count("did not take all spans of this run") == 1
    assert "Traceback" not in told.err


def test_without_a_receiver_nothing_of_opentelemetry_is_imported(traced: Traced) -> None:
    told = traced.project.command([sys.executable, "-c", WHAT_IS_IMPORTED])
    assert told.code == 0, told
    assert told.tables()["orders"]["rows"] == 3
    assert "imported: []" in told.err.splitlines()
    with open_audit_view(None, traced.project.state) as audit:
        newest, *_ = audit.runs.recent("shop", "orders")
    assert newest.trace_id is None
