from __future__ import annotations

import pickle
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from hakiri_dagster.audit import address as audit_addresses
from hakiri_dagster.audit.address import AuditAddress
from hakiri_dagster.audit.database import SQLITE_FILE, AuditDb, audit_address, open_audit
from hakiri_dagster.audit.rate_budgets import BudgetOf, RateBudgetStore, Use, User
from hakiri_dagster.connectors import permits as permits_module
from hakiri_dagster.connectors.network import FreePermits
from hakiri_dagster.connectors.permits import SharedPermits
from hakiri_dagster.engine.postgres_settings import free_port
from hakiri_dagster.errors import AuditError, AuditFull, AuditUnavailable, HeldBack
from hakiri_dagster.manifest.rates import Rate
from hakiri_dagster.planning import rate_window
from hakiri_dagster.planning.rate_window import Given, Wait, span
from tests.integration.connectors.counting_server import counting_server

OF = BudgetOf("shop")
USER = User("run", "orders")
WORKERS = 16
TURNS = 6
RATE = Rate.parse("40/s")
ONE = Rate.parse("1/s")


@pytest.fixture(params=["sqlite", "postgres"])
def address(request: pytest.FixtureRequest, tmp_path: Path) -> AuditAddress:
    url = str(request.getfixturevalue("database_url")) if request.param == "postgres" else None
    return audit_address(url, tmp_path)


@pytest.fixture
def audit(address: AuditAddress, tmp_path: Path) -> Iterator[AuditDb]:
    with open_audit(address.url, tmp_path) as audit:
        yield audit


@pytest.fixture
def file(tmp_path: Path) -> Iterator[AuditAddress]:
    """An audit DB that is a file."""
    with open_audit(None, tmp_path):
        yield audit_address(None, tmp_path)


def sent_by_all(folder: Path, address: AuditAddress, port: int, *fates: str) -> list[int]:
    """How each of the workers ended."""
    pickled = folder / "permits.pickle"
    pickled.write_bytes(pickle.dumps(SharedPermits(OF, RATE, address, USER)))
    script = Path(__file__).with_name("many_requests.py")
    command = [sys.executable, str(script), str(pickled), str(port), str(WORKERS), str(TURNS), *fates]
    ended = subprocess.run(command, check=True, capture_output=True, text=True)
    assert ended.stderr == ""
    return [int(code) for code in ended.stdout.split()]


def test_no_window_of_the_source_sees_more_than_the_budget(
    address: AuditAddress, audit: AuditDb, tmp_path: Path
) -> None:
    with counting_server(slow=True) as server:
        assert set(sent_by_all(tmp_path, address, server.port)) == {0}
        assert len(server.arrivals) == TURNS * WORKERS
        assert server.most_in_a_window(1) <= RATE.count
    uses = audit.rate_budgets.uses("run", "shop", "orders")
    assert {chunk: use.requests for chunk, use in uses.items()} == {f"chunk {n}": TURNS for n in range(WORKERS)}
    assert sum(use.wait_ms for use in uses.values()) > 0


def test_killed_workers_and_lost_answers_let_no_more_through(
    address: AuditAddress, audit: AuditDb, tmp_path: Path
) -> None:
    with counting_server(slow=True, drops_each=20) as server:
        codes = sent_by_all(tmp_path, address, server.port, "fates")
        assert codes == [0, -9, 0, -9] * (WORKERS // 4)
        assert len(server.arrivals) == 8 * TURNS + 4 * 1 + 4 * 2
        assert server.most_in_a_window(1) <= RATE.count


def test_what_a_killed_worker_held_comes_back_at_once(
    address: AuditAddress, audit: AuditDb, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rate_window, "DOUBT", 0)
    held = subprocess.Popen(
        [
            sys.executable,
            "-c",
            "import pickle, sys; pickle.load(sys.stdin.buffer)._given(); print(flush=True); input()",
        ],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    assert held.stdin is not None
    assert held.stdout is not None
    held.stdin.write(pickle.dumps(SharedPermits(OF, ONE, address, USER)))
    held.stdin.flush()
    held.stdout.readline()
    held.kill()
    held.communicate()
    with SharedPermits(OF, ONE, address, USER).permit() as wait_ms:
        assert wait_ms >= 1000  # the budget's window, instead of a lease


def test_a_request_without_an_answer_stays_in_doubt(address: AuditAddress, audit: AuditDb) -> None:
    permits = SharedPermits(OF, ONE, address, USER)
    with pytest.raises(TimeoutError), permits.permit("2024-01"):
        raise TimeoutError
    answer, _ = audit.rate_budgets.ask(OF, ONE, "host|boot|1|2")
    assert isinstance(answer, Wait)
    assert answer.microseconds > 2 * span(ONE)
    assert audit.rate_budgets.uses("run", "shop", "orders") == {"2024-01": Use(requests=1)}


def test_what_is_used_up_of_a_budget_is_told(address: AuditAddress, audit: AuditDb) -> None:
    rate = Rate.parse("4/h")
    assert audit.rate_budgets.consumed_pct(OF, rate) == 0
    for _ in range(3):
        with SharedPermits(OF, rate, address, USER).permit() as wait_ms:
            assert wait_ms < 60_000
    assert audit.rate_budgets.consumed_pct(OF, rate) == 75
    assert audit.rate_budgets.consumed_pct(BudgetOf("shop", "writes"), rate) == 0
    assert audit.status("shop", rate)["rate_budget_consumed_pct"] == 75


def test_pipelines_do_not_share_their_budgets(address: AuditAddress, audit: AuditDb) -> None:
    for pipeline in ("a", "b"):
        answer, _ = audit.rate_budgets.ask(BudgetOf(pipeline), ONE, "host|boot|1|2")
        assert isinstance(answer, Given)


def test_whoever_was_interrupted_while_it_waited_leaves_the_queue(
    address: AuditAddress, audit: AuditDb, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupt(_permits: SharedPermits, _seconds: float) -> None:
        raise KeyboardInterrupt

    audit.rate_budgets.ask(OF, ONE, "host|boot|1|2")
    monkeypatch.setattr(SharedPermits, "_sleep", interrupt)
    with pytest.raises(KeyboardInterrupt), SharedPermits(OF, ONE, address, USER).permit():
        pass
    _, others = audit.rate_budgets.ask(OF, ONE, "host|boot|3|4")
    assert others == {"host|boot|1|2", "host|boot|3|4"}


def test_whoever_cannot_wait_so_long_is_told_until_when_and_leaves_the_queue(
    address: AuditAddress, audit: AuditDb, monkeypatch: pytest.MonkeyPatch
) -> None:
    rate = Rate.parse("1/d")
    audit.rate_budgets.ask(OF, rate, "host|boot|1|2")
    hurried = pickle.loads(pickle.dumps(SharedPermits(OF, rate, address, USER, longest_wait=5)))
    with pytest.raises(HeldBack, match=r"the budget of 1/d requests is used up until about \d\d:"), hurried.permit():
        pass
    answer, others = audit.rate_budgets.ask(OF, rate, "host|boot|3|4")
    assert others == {"host|boot|1|2", "host|boot|3|4"}
    assert isinstance(answer, Wait)
    assert answer.freed_in > 86_000 * 1_000_000


def test_a_permit_that_came_too_late_is_given_back(
    address: AuditAddress, audit: AuditDb, monkeypatch: pytest.MonkeyPatch
) -> None:
    given_back: list[int] = []
    unused = RateBudgetStore.unused

    def in_time_from_now_on(store: RateBudgetStore, budget: BudgetOf, number: int) -> None:
        monkeypatch.setattr(permits_module, "_STALE_SECONDS", 60.0)
        given_back.append(number)
        unused(store, budget, number)

    monkeypatch.setattr(permits_module, "_STALE_SECONDS", -1.0)
    monkeypatch.setattr(RateBudgetStore, "unused", in_time_from_now_on)
    with SharedPermits(OF, Rate.parse("1/d"), address, USER).permit():
        assert len(given_back) == 1


def test_sparks_workers_use_it(spark: SparkSession, file: AuditAddress, tmp_path: Path) -> None:
    permits = SharedPermits(OF, RATE, file, USER)

    def read(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for number in batch.column(0).to_pylist():
                with permits.permit(f"part {number}"):
                    yield pa.RecordBatch.from_pydict({"id": [number]})

    assert spark.range(0, 4, 1, 4).mapInArrow(read, "id long").count() == 4
    with open_audit(None, tmp_path) as audit:
        uses = audit.rate_budgets.uses("run", "shop", "orders")
    assert {chunk: use.requests for chunk, use in uses.items()} == {f"part {number}": 1 for number in range(4)}


class TestTrouble:
    def test_an_audit_db_that_is_locked_is_waited_for(
        self, file: AuditAddress, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        assert file.file is not None
        monkeypatch.setattr(audit_addresses, "_LOCK_SECONDS", 0)
        with sqlite3.connect(file.file, isolation_level=None) as other:
            other.execute("BEGIN IMMEDIATE")
            slept: list[float] = []

            def let_go(seconds: float) -> None:
                slept.append(seconds)
                if len(slept) == 6:  # the store's own tries are over
                    other.execute("ROLLBACK")

            monkeypatch.setattr(permits_module.time, "sleep", let_go)
            with SharedPermits(OF, ONE, file, USER).permit():
                assert len(slept) >= 6

    def test_a_connection_that_is_lost_is_made_again(self, database_url: str, tmp_path: Path) -> None:
        open_audit(database_url, tmp_path).close()
        permits = SharedPermits(OF, RATE, audit_address(database_url, tmp_path), USER)
        with permits.permit():
            pass
        with psycopg.connect(database_url, autocommit=True) as other:
            other.execute(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
                " WHERE datname = current_database() AND pid <> pg_backend_pid()"
            )
        with permits.permit():
            pass

    def test_one_that_is_gone_for_long_is_an_error(self, tmp_path: Path) -> None:
        address = AuditAddress(f"postgresql://me:pa55word@127.0.0.1:{free_port(None)}/audit", None)
        with (
            pytest.raises(AuditUnavailable, match=r"does not answer, for 0 s, and nothing goes without a permit") as e,
            SharedPermits(OF, ONE, address, USER, patience_seconds=0).permit(),
        ):
            pass
        assert "pa55word" not in str(e.value)

    def test_one_that_is_full_is_an_error_at_once(self, file: AuditAddress, monkeypatch: pytest.MonkeyPatch) -> None:
        def full(*_: object, **__: object) -> None:
            raise AuditFull("the audit DB cannot grow: the disk is full")

        monkeypatch.setattr(RateBudgetStore, "ask", full)
        with pytest.raises(AuditFull), SharedPermits(OF, ONE, file, USER).permit():
            pass

    def test_a_file_is_never_made(self, tmp_path: Path) -> None:
        address = AuditAddress(None, str(tmp_path / SQLITE_FILE))
        with pytest.raises(AuditError, match="cannot be opened"), SharedPermits(OF, ONE, address, USER).permit():
            pass
        assert list(tmp_path.iterdir()) == []

    def test_a_file_of_another_machine_is_refused(self, file: AuditAddress) -> None:
        permits = pickle.loads(pickle.dumps(SharedPermits(OF, ONE, file, USER, machine="another")))
        with pytest.raises(AuditError, match="a file of another machine"), permits.permit():
            pass


def test_secrets_are_not_shown() -> None:
    address = AuditAddress("postgresql://me:pa55word@host/audit", None)
    assert "pa55word" not in repr(address) + repr(SharedPermits(OF, ONE, address, USER))


def test_without_a_budget_nobody_waits() -> None:
    with pickle.loads(pickle.dumps(FreePermits())).permit("2024-01") as wait_ms:
        assert wait_ms == 0
