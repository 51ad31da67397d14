from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

from sqlalchemy import update

from hakiri_dagster.audit.claims import Outcome
from hakiri_dagster.audit.database import AuditDb
from hakiri_dagster.audit.rate_budgets import BudgetOf, Use, User
from hakiri_dagster.audit.schema import PIPELINE_RUN
from hakiri_dagster.audit.tables import StoredPlan
from hakiri_dagster.manifest.rates import Rate
from hakiri_dagster.planning.chunks import CursorRange, Interval, Slice
from hakiri_dagster.planning.columns import Column, SourceSchema
from hakiri_dagster.planning.phases import Sla
from hakiri_dagster.planning.rate_window import Given
from hakiri_dagster.planning.source_files import FileVersion, touched_by
from hakiri_dagster.planning.states import ChunkState, Due, DueSlice
from hakiri_dagster.planning.windows import to_position

OF = ("shop", "orders")


def _state(number: int, generation: int = 1) -> ChunkState:
    bounds = CursorRange(Interval(number, number + 1))
    return ChunkState(f"c{number}", bounds, generation=generation)


def _load(audit: AuditDb, state: ChunkState, rows: int = 5) -> None:
    slice_ = DueSlice(Slice(state.chunk, state.bounds), state.attempts)
    (claim,) = audit.chunks.claim(
        *OF, [slice_], holder="w", run_id="r", ttl_seconds=60, holder_is_dead=lambda _: False
    ).claimed
    audit.chunks.done(claim, Outcome(rows=rows, bytes=50, cursor_committed=None, load_id=1))


def _start(audit: AuditDb, run_id: str, pipeline_id: str, table: str, **given: Any) -> None:
    audit.runs.start(run_id, pipeline_id, table, **{"holder": "alive", "holder_is_dead": lambda h: h == "dead"} | given)


def test_the_last_word_on_a_cursor_wins(audit: AuditDb) -> None:
    assert audit.cursors.get(*OF) is None
    audit.cursors.put(*OF, {"id": 1})
    audit.cursors.put(*OF, {"id": 2})
    assert audit.cursors.get(*OF) == {"id": 2}


def test_runs_are_recorded_and_the_newest_comes_first(audit: AuditDb) -> None:
    _start(audit, "run-1", *OF, trace_id="t")
    audit.runs.finish("run-1", *OF, status="partial", rows=5, bytes_=9, error_kind="transient", error_message="gone")
    _start(audit, "run-2", *OF)
    _start(audit, "run-2", "shop", "customers")
    newest, oldest = audit.runs.recent(*OF)
    assert (newest.run_id, newest.status, newest.ended_at) == ("run-2", "running", None)
    assert (oldest.status, oldest.rows, oldest.bytes, oldest.error_kind) == ("partial", 5, 9, "transient")
    assert oldest.ended_at is not None
    assert oldest.started_at.tzinfo is UTC
    assert oldest.started_at <= oldest.ended_at <= newest.started_at
    assert len(audit.runs.recent("shop")) == 3
    assert audit.runs.recent("shop", limit=1)[0].table == "customers"


def test_what_budgets_gave_to_runs_is_forgotten_when_it_is_old_and_the_runs_are_kept(audit: AuditDb) -> None:
    def use(run_id: str) -> None:
        user = User(run_id, OF[1], "c1")
        answer, _ = audit.rate_budgets.ask(BudgetOf("shop"), Rate(60, 60), "me")
        assert isinstance(answer, Given)
        audit.rate_budgets.ended(BudgetOf("shop"), Rate(60, 60), answer.number, user, wait_ms=5)

    def begun(run_id: str, days_ago: int) -> None:
        _start(audit, run_id, *OF)
        use(run_id)
        moment = datetime.now(UTC) - timedelta(days=days_ago)
        put = update(PIPELINE_RUN).where(PIPELINE_RUN.c.run_id == run_id).values(started_at=moment)
        audit._transactions.write(lambda c: c.execute(put))

    for run_id, days_ago in (("old", 91), ("recent", 89)):
        begun(run_id, days_ago)
    _start(audit, "now", *OF)
    audit.runs.finish("now", *OF, status="success", rows=1, bytes_=1)
    assert audit.rate_budgets.uses("old", *OF) == {}
    assert audit.rate_budgets.uses("recent", *OF) == {"c1": Use(requests=1, wait_ms=5)}
    assert audit.rate_budgets.waited_ms("recent", *OF, "c1") == 5
    assert len(audit.runs.recent(*OF)) == 3


def test_a_retried_run_begins_anew(audit: AuditDb) -> None:
    _start(audit, "run-1", *OF)
    audit.runs.finish("run-1", *OF, status="failed", rows=0, bytes_=0, error_kind="permanent", error_message="no")
    _start(audit, "run-1", *OF)
    (run,) = audit.runs.recent(*OF)
    assert (run.status, run.error_kind, run.ended_at) == ("running", None, None)


def test_a_run_whose_process_died_is_closed_by_the_next_one_of_its_table(audit: AuditDb) -> None:
    _start(audit, "run-1", *OF, holder="dead")
    _start(audit, "run-2", *OF)
    _start(audit, "run-3", "shop", "customers", holder="dead", holder_is_dead=lambda _: None)
    _start(audit, "run-4", *OF)
    four, two, one = audit.runs.recent(*OF)
    assert (one.status, one.error_kind, one.error_message) == ("failed", "transient", "its process died")
    assert one.ended_at is not None
    assert [four.status, two.status] == ["running", "running"]
    assert audit.runs.recent("shop", "customers")[0].status == "running"


def test_a_file_that_was_looked_at_is_not_taken_in_yet(audit: AuditDb) -> None:
    first = FileVersion("a.csv", "fp1", "1" * 32, lower=-(10**30), upper=9, nulls=1, rows=4)
    audit.files.put(*OF, [first])
    assert audit.files.known(*OF) == {"a.csv": first}
    assert audit.files.taken_in(*OF) == {}
    audit.tables.sync(*OF, Due(states=(_state(1),)), plan=StoredPlan("numeric 10", None), files=[first])
    assert audit.files.taken_in(*OF) == {"a.csv": replace(first, fingerprint="", rows=None)}
    second = replace(first, fingerprint="fp2", content_hash="2" * 32)
    audit.files.put(*OF, [second])
    assert audit.files.known(*OF) == {"a.csv": second}
    assert audit.files.taken_in(*OF)["a.csv"].content_hash == "1" * 32


def test_a_file_that_changes_while_an_attempt_holds_a_chunk_counts_as_changed_next_time(audit: AuditDb) -> None:
    plan = StoredPlan("numeric 10", None)
    first = FileVersion("a.csv", "fp", "1" * 32, lower=5, upper=9)
    audit.tables.sync(*OF, Due(), plan=plan, files=[first])
    busy = DueSlice(Slice(_state(1).chunk, _state(1).bounds))
    second = FileVersion("a.csv", "fp2", "2" * 32, lower=1, upper=2)
    audit.tables.sync(*OF, Due(busy=(busy,), states=(_state(2),)), plan=plan, files=[second])
    assert touched_by(audit.files.taken_in(*OF), [second]).intervals == (Interval(1, 10),)
    assert audit.files.known(*OF) == {"a.csv": second}
    assert [state.key for state in audit.chunks.states(*OF)] == ["c2"]


def test_a_plan_and_a_schema_are_remembered(audit: AuditDb) -> None:
    assert audit.tables.plan(*OF) is None
    audit.tables.sync(*OF, Due(), plan=StoredPlan("timestamp 1mo", -(10**15)))
    assert audit.tables.plan(*OF) == "timestamp 1mo"
    assert audit.tables.plans() == {OF: StoredPlan("timestamp 1mo", -(10**15))}
    schema = SourceSchema((Column("id", "bigint", False, "int8"), Column("ü", "string")), ("id",))
    audit.tables.put_schema(*OF, schema)
    assert audit.tables.schema(*OF) == schema
    assert audit.tables.schema(*OF, "with other settings") is None
    audit.tables.put_schema(*OF, schema, "with other settings")
    assert audit.tables.schema(*OF, "with other settings") == schema


def test_status_tells_the_phase_and_counts_the_newest_plan_only(audit: AuditDb) -> None:
    assert audit.status("shop")["phase"] == "planning"
    audit.chunks.save(*OF, [_state(9, generation=1), *(_state(n, generation=2) for n in range(3))])
    _load(audit, _state(0, generation=2))
    document = audit.status("shop", rate_budget=Rate(60, 60))
    assert document["phase"] == "backfilling"
    assert document["chunks"] == {"done": 1, "running": 0, "pending": 2, "failed": 0, "total": 3}
    assert (document["rate_budget"], document["rate_budget_consumed_pct"]) == ("60/min", 0)
    assert document["started_at"] is not None
    assert document["started_at"].endswith("Z")
    assert document["eta_seconds"] is not None
    assert document["throughput"]["rows_per_sec"] > 0
    for number in (1, 2):
        _load(audit, _state(number, generation=2))
    done = audit.status("shop")
    assert (done["phase"], done["eta_seconds"]) == ("streaming", 0)


def test_what_a_dead_process_has_left_behind_does_not_run(audit: AuditDb) -> None:
    audit.chunks.save(*OF, [_state(number) for number in range(4)])
    for number, (holder, ttl) in enumerate([("alive", 60), ("dead", 60), ("elsewhere", -60)]):
        state = _state(number)
        due = [DueSlice(Slice(state.chunk, state.bounds))]
        audit.chunks.claim(*OF, due, holder=holder, run_id="r", ttl_seconds=ttl, holder_is_dead=lambda _: None)

    def dead(holder: str) -> bool | None:
        return {"alive": False, "dead": True}.get(holder)

    told = audit.status("shop", holder_is_dead=dead)["chunks"]
    assert told == {"done": 0, "running": 1, "pending": 3, "failed": 0, "total": 4}


def test_a_chunk_that_was_begun_anew_says_nothing_of_how_long_a_load_takes(audit: AuditDb) -> None:
    audit.chunks.save(*OF, [_state(0)])
    _load(audit, _state(0))
    (state,) = audit.chunks.states(*OF)
    again = DueSlice(Slice(state.chunk, state.bounds), state.attempts)
    audit.chunks.claim(*OF, [again], holder="w", run_id="r", ttl_seconds=60, holder_is_dead=lambda _: False)
    assert audit.status("shop")["eta_seconds"] is None


def test_an_open_chunk_that_is_loaded_again_is_streaming(audit: AuditDb) -> None:
    audit.chunks.save(*OF, [_state(0)])
    _load(audit, _state(0))
    (state,) = audit.chunks.states(*OF)
    audit.chunks.save(*OF, [replace(state, status="pending")])
    assert audit.status("shop")["phase"] == "streaming"


def test_status_compares_the_cursor_with_the_source_as_it_was_at_the_last_look(audit: AuditDb) -> None:
    def at(hour: int) -> int:
        return to_position(datetime(2024, 3, 5, hour, tzinfo=UTC))

    loaded = ChunkState("2024-03", CursorRange(Interval(at(0), at(23))), "pending", load_id=1, cursor_committed=at(9))
    audit.tables.sync(*OF, Due(states=(loaded,)), plan=StoredPlan("timestamp 1mo", at(0), source_upper=at(12)))
    for sla, phase in (("2h", "backfilling"), ("4h", "streaming")):
        told = audit.status("shop", slas={OF[1]: Sla.of(sla, None, "UTC")})
        assert (told["phase"], told["behind_seconds"]) == (phase, 3 * 3600)
