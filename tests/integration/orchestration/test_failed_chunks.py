"""A chunk that fails stops no other chunk."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime
from itertools import count

import dagster as dg
import pytest

from hakiri_dagster.destinations.contract import Candidate, LedgerEntry, Load, PreparedLoad
from hakiri_dagster.destinations.postgres.destination import PostgresDestination
from hakiri_dagster.destinations.postgres.loading import OpenLoad
from hakiri_dagster.errors import DestinationUnavailable
from hakiri_dagster.orchestration.apply import Applier
from hakiri_dagster.settings import Settings
from tests.integration.orchestration.conftest import ShopProject

Declare = Callable[..., ShopProject]

ORDERS = dg.AssetKey(["shop", "orders"])


def orders(*rows: tuple[object, object]) -> str:
    return "order_id,placed_at\n" + "".join(f"{number},{day}\n" for number, day in rows)


@pytest.fixture
def deferred_key(csv_shop: Declare) -> ShopProject:
    """A table of somebody else's, whose key PostgreSQL would look at when the transaction commits. Rows that it refuses
    stop their chunk."""
    shop = csv_shop(incremental="placed_at", load={"bad_rows": "abort"})
    shop.execute(
        "CREATE SCHEMA raw;"
        "CREATE TABLE raw.orders (order_id int UNIQUE DEFERRABLE INITIALLY DEFERRED, placed_at timestamp)"
    )
    return shop


def test_a_chunk_that_fails_does_not_stop_those_after_it(deferred_key: ShopProject) -> None:
    shop = deferred_key
    shop.file(
        "data/orders.csv",
        orders((1, "2024-01-05"), (2, "2024-02-05"), (3, "2024-03-05"), (3, "2024-03-06"), (4, "2024-04-05"), (5, "")),
    )
    told = shop.apply()["orders"]
    assert told["chunks"] == {"done": 4, "failed": 1, "skipped": 0, "pending": 0}
    assert "chunk 2024-03: 1 row(s) cannot be loaded" in told["error"]
    assert "duplicate key value violates unique constraint" in told["error"]
    assert shop.column("orders", "order_id") == [1, 2, 4, 5]
    assert dg.DagsterRunStatus.FAILURE in {run.status for run in shop.instance.get_runs()}
    assert shop.rows("SELECT count(*) FROM hakiri.ledger") == [(4,)]


def test_rows_without_a_cursor_are_loaded_though_the_only_window_fails(deferred_key: ShopProject) -> None:
    shop = deferred_key
    shop.file("data/orders.csv", orders((3, "2024-03-05"), (3, "2024-03-06"), (5, "")))
    told = shop.apply()["orders"]
    assert (told["chunks"]["done"], told["chunks"]["failed"]) == (1, 1)
    assert shop.column("orders", "order_id") == [5]


def test_a_run_of_failed_chunks_names_them_all(deferred_key: ShopProject) -> None:
    shop = deferred_key
    shop.file("data/orders.csv", orders(*((month, f"2024-0{month}-0{day}") for month in (1, 2) for day in (1, 2))))
    shop.apply()
    (run,) = shop.instance.get_runs()
    (failure,) = shop.instance.get_records_for_run(run.run_id, of_type=dg.DagsterEventType.STEP_FAILURE).records
    event = failure.event_log_entry.dagster_event
    assert event is not None
    assert event.step_failure_data.user_failure_data is not None
    assert "2 chunk(s) failed: 2024-01, 2024-02" in (event.step_failure_data.user_failure_data.description or "")


class TestRowsThatComeAlongWithTheOpenWindow:
    THIS_MONTH = datetime.now(UTC).strftime("%Y-%m")

    def test_they_do_not_make_a_failed_partition_show_as_done(self, deferred_key: ShopProject) -> None:
        shop = deferred_key
        shop.file("data/orders.csv", orders((3, f"{self.THIS_MONTH}-01"), (3, f"{self.THIS_MONTH}-01"), (5, "")))
        told = shop.apply()["orders"]
        assert (told["chunks"]["done"], told["chunks"]["failed"]) == (1, 1)
        assert shop.instance.get_materialized_partitions(ORDERS) == set()
        (seen,) = shop.instance.fetch_observations(ORDERS, limit=10).records
        assert seen.asset_observation is not None
        assert seen.partition_key == self.THIS_MONTH
        assert seen.asset_observation.metadata["chunk"].value == "null"

    def test_they_do_not_stand_for_the_numbers_of_the_window(self, csv_shop: Declare) -> None:
        shop = csv_shop(incremental="placed_at")
        day = f"{self.THIS_MONTH}-01"
        shop.file("data/orders.csv", orders((3, day), (4, day), (5, "")))
        shop.apply()
        (window,) = shop.instance.fetch_materializations(ORDERS, limit=10).records
        (along,) = shop.instance.fetch_observations(ORDERS, limit=10).records
        assert window.partition_key == along.partition_key == self.THIS_MONTH
        assert window.asset_materialization is not None
        assert along.asset_observation is not None
        assert window.asset_materialization.metadata["dagster/row_count"].value == 2
        assert along.asset_observation.metadata["rows"].value == 1
        assert "dagster/row_count" not in along.asset_observation.metadata

    def test_they_do_not_hide_that_rows_of_the_window_were_set_aside(self, csv_shop: Declare) -> None:
        shop = csv_shop(incremental="placed_at")
        shop.execute("CREATE SCHEMA raw; CREATE TABLE raw.orders (order_id text, placed_at timestamp, note varchar(3))")
        day = f"{self.THIS_MONTH}-01"
        shop.file("data/orders.csv", f"order_id,placed_at,note\na,{day},far too long\nb,{day},\nc,,\n")
        told = shop.apply()["orders"]
        assert (told["chunks"]["done"], told["rows"], told["quarantined"]) == (2, 2, 1)
        record = shop.instance.get_latest_asset_check_evaluation_record(dg.AssetCheckKey(ORDERS, "no_rows_set_aside"))
        assert record is not None
        assert record.event is not None
        assert not record.event.asset_check_evaluation.passed


def test_a_chunk_that_passes_does_not_hide_that_an_earlier_one_of_the_run_did_not(csv_shop: Declare) -> None:
    shop = csv_shop(incremental="placed_at")
    shop.execute("CREATE SCHEMA raw; CREATE TABLE raw.orders (placed_at timestamp, note varchar(3))")
    shop.file("data/orders.csv", "placed_at,note\n2024-01-05,too long\n2024-01-06,a\n2024-02-05,b\n2024-03-05,c\n")
    told = shop.apply()["orders"]
    assert (told["chunks"]["done"], told["quarantined"]) == (3, 1)
    record = shop.instance.get_latest_asset_check_evaluation_record(dg.AssetCheckKey(ORDERS, "no_rows_set_aside"))
    assert record is not None
    assert record.event is not None
    assert not record.event.asset_check_evaluation.passed


def lose_the_next_commit(monkeypatch: pytest.MonkeyPatch, shop: ShopProject, meanwhile: str) -> None:
    """And have somebody else do something by then."""

    def publish(load: OpenLoad, *_args: object) -> LedgerEntry:
        monkeypatch.undo()
        load.undo()
        shop.execute(meanwhile)
        raise DestinationUnavailable("the connection was lost")

    monkeypatch.setattr(OpenLoad, "publish", publish)


def test_what_warns_anew_is_told_of_a_chunk_that_a_gate_stops_when_it_is_prepared_anew(
    csv_shop: Declare, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Somebody writes into the target before the commit, which fails and is tried again."""
    shop = csv_shop(
        dataset_level={
            "row_count": {"scope": "table", "max": 1},
            "accepted_values": {"scope": "table", "column": "name", "values": ["ann"], "on_fail": "warn"},
        }
    )
    shop.file("data/orders.csv", "id,name\n1,ann\n")
    lose_the_next_commit(monkeypatch, shop, "INSERT INTO raw.orders VALUES (2, 'eve')")
    told = shop.apply()["orders"]
    assert "table_row_count: 2 row(s)" in told["error"]
    assert any("validator table_accepted_values_name: 1 of 2 row(s)" in text for text in told["warnings"])


class TestServerThatGoesAwayAtTheCommit:
    """And is away still when the chunk is prepared anew."""

    @pytest.fixture(autouse=True)
    def away(self, monkeypatch: pytest.MonkeyPatch) -> None:
        prepare, tries = PostgresDestination.prepare, count(1)

        def publish(load: OpenLoad, *_args: object) -> LedgerEntry:
            monkeypatch.undo()
            monkeypatch.setattr(PostgresDestination, "prepare", prepare_again)
            load.undo()
            raise DestinationUnavailable("the server closed the connection")

        def prepare_again(destination: PostgresDestination, load: Load, candidate: Candidate) -> PreparedLoad:
            if next(tries) == 1:
                raise DestinationUnavailable("the server does not answer")
            return prepare(destination, load, candidate)

        monkeypatch.setattr(OpenLoad, "publish", publish)

    @pytest.fixture
    def two_months(self, csv_shop: Declare) -> ShopProject:
        shop = csv_shop(incremental="placed_at")
        shop.file("data/orders.csv", orders((1, "2024-01-05"), (2, "2024-02-05")))
        return shop

    def test_it_is_tried_again_as_often_as_any_other_work(self, two_months: ShopProject) -> None:
        patient = replace(two_months, settings=Settings(retries=2, retry_base_seconds=0.01))
        told = patient.apply()["orders"]
        assert (told["chunks"]["done"], told["chunks"]["failed"], told["error"]) == (2, 0, None)
        assert patient.column("orders", "order_id") == [1, 2]

    def test_the_chunk_that_met_it_is_recorded_as_failed_and_the_next_is_loaded(self, two_months: ShopProject) -> None:
        told = two_months.apply()["orders"]
        assert (told["chunks"]["done"], told["chunks"]["failed"]) == (1, 1)
        assert "the server does not answer" in told["error"]
        with two_months.runtime() as runtime:
            states = {state.key: state.status for state in runtime.audit.chunks.states("shop", "orders")}
        assert states == {"2024-01": "failed", "2024-02": "done"}


class TestConnectionThatIsLostAtTheCommit:
    """And meanwhile somebody else has written into the target: checks tell what held at the last try."""

    @pytest.fixture(autouse=True)
    def lost(self, monkeypatch: pytest.MonkeyPatch, shop: ShopProject) -> None:
        lose_the_next_commit(monkeypatch, shop, "INSERT INTO raw.orders (order_id) VALUES (7), (8)")

    @pytest.fixture
    def small(self, csv_shop: Declare) -> Callable[[str], ShopProject]:
        """At most two rows in the table, of which the load brings one."""

        def declare(on_fail: str) -> ShopProject:
            shop = csv_shop(dataset_level={"row_count": {"scope": "table", "max": 2, "on_fail": on_fail}})
            shop.file("data/orders.csv", orders((1, "2024-01-05")))
            return shop

        return declare

    def test_a_gate_that_fails_then_shows_as_failed(self, small: Callable[[str], ShopProject]) -> None:
        shop = small("abort")
        told = shop.apply()["orders"]
        assert "table_row_count: 3 row(s)" in told["error"]
        assert self.told(shop) == (False, 3)
        assert shop.column("orders", "order_id") == [7, 8]

    def test_a_warning_is_told_of_the_rows_that_were_published(self, small: Callable[[str], ShopProject]) -> None:
        shop = small("warn")
        told = shop.apply()["orders"]
        assert (told["chunks"]["done"], told["error"]) == (1, None)
        assert any("validator table_row_count: 3 row(s)" in text for text in told["warnings"])
        assert self.told(shop) == (False, 3)

    def told(self, shop: ShopProject) -> tuple[bool, object]:
        """Of the validator, at last."""
        record = shop.instance.get_latest_asset_check_evaluation_record(dg.AssetCheckKey(ORDERS, "table_row_count"))
        assert record is not None
        assert record.event is not None
        found = record.event.asset_check_evaluation
        return found.passed, found.metadata["rows"].value


def test_an_interrupt_at_a_publish_gives_all_chunks_back_at_once(
    csv_shop: Declare, monkeypatch: pytest.MonkeyPatch
) -> None:
    shop = csv_shop(incremental="placed_at")
    shop.file("data/orders.csv", orders((1, "2024-01-05"), (2, "2024-02-05")))

    def interrupted(load: OpenLoad, *_args: object) -> LedgerEntry:
        load.undo()
        raise KeyboardInterrupt

    monkeypatch.setattr(OpenLoad, "publish", interrupted)
    with shop.runtime() as runtime:
        (table,) = runtime.project.tables
        with pytest.raises(KeyboardInterrupt):
            Applier(runtime, shop.instance).load_due(table, runtime.survey(table))
        (record,) = runtime.audit.runs.recent("shop", "orders")
        assert (record.status, record.error_message) == (
            "failed",
            "shop/orders: the run was interrupted\n  hint: apply again",
        )
        assert {state.status for state in runtime.audit.chunks.states("shop", "orders")} == {"pending"}
