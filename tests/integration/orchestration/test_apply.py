"""From manifest to rows, through Dagster, as `hakiri apply` does it."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from functools import partial

import dagster as dg
import psycopg
import pytest
from sqlalchemy import Table, select

from hakiri_dagster.audit.chunks import ChunkStore
from hakiri_dagster.audit.database import open_audit
from hakiri_dagster.audit.schema import PASS_PLACE, PIPELINE_CHUNKS
from hakiri_dagster.engine.process_identity import ProcessIdentity
from hakiri_dagster.errors import AuditUnavailable
from tests.acceptance.command_line import eventually
from tests.integration.orchestration.conftest import ShopProject

Declare = Callable[..., ShopProject]

HEADER = "order_id,placed_at,total\n"


def order_lines(*rows: tuple[object, object, object]) -> str:
    return HEADER + "".join(f"{a},{b},{c}\n" for a, b, c in rows)


def materialized(shop: ShopProject, table: str = "orders") -> set[str]:
    return set(shop.instance.get_materialized_partitions(dg.AssetKey(["shop", table])))


def ledger(shop: ShopProject) -> list[tuple[str, int]]:
    rows = shop.rows("SELECT chunk_key, rows FROM hakiri.ledger ORDER BY load_id")
    return [(str(key), int(count)) for key, count in rows]


class TestFilesAsChunks:
    def test_every_file_is_a_chunk_and_a_second_apply_finds_nothing_to_do(self, csv_shop: Declare) -> None:
        shop = csv_shop(path="data/orders/")
        shop.file("data/orders/a.csv", order_lines((1, "2024-01-01", "9.50")))
        shop.file("data/orders/b.csv", order_lines((2, "2024-01-02", "1.00"), (3, "2024-01-03", "2.00")))
        first, second = shop.apply()["orders"], shop.apply()["orders"]
        assert (first["chunks"]["done"], first["rows"], first["error"]) == (2, 3, None)
        assert (second["chunks"]["done"], second["rows"]) == (0, 0)
        assert shop.column("orders", "order_id") == [1, 2, 3]
        assert len(materialized(shop)) == 2

    def test_settings_that_were_wrong_leave_no_trace_once_they_are_mended(self, csv_shop: Declare) -> None:
        shop = csv_shop(path="data/orders/", load={"mode": "truncate"})
        shop.file("data/orders/a.csv", "1,Tea\n")
        shop.file("data/orders/b.csv", "2,2\n")
        assert "the header names `2` more than once" in shop.apply()["orders"]["error"]
        csv_shop({"header": False}, path="data/orders/", load={"mode": "truncate"})
        told = shop.apply()["orders"]
        assert (told["rows"], told["error"]) == (2, None)
        assert shop.column("orders", "column_2") == ["2", "Tea"]

    def test_a_rewritten_file_replaces_its_own_rows_and_no_others(self, csv_shop: Declare) -> None:
        shop = csv_shop(path="data/orders/")
        shop.file("data/orders/a.csv", order_lines((1, "2024-01-01", "9.50"), (2, "2024-01-01", "1")))
        shop.file("data/orders/b.csv", order_lines((3, "2024-01-03", "2.00")))
        shop.apply()
        shop.file("data/orders/a.csv", order_lines((1, "2024-01-01", "10.00")))
        assert shop.apply()["orders"]["rows"] == 1
        assert shop.column("orders", "order_id") == [1, 3]

    def test_a_rotated_log_keeps_the_rows_of_all_its_files(self, csv_shop: Declare) -> None:
        shop = csv_shop(path="data/orders/")
        latest = shop.file("data/orders/latest.csv", order_lines((1, "2024-01-01", "9.50")))
        shop.apply()
        latest.rename(latest.with_name("2024-01-01.csv"))
        shop.file("data/orders/latest.csv", order_lines((2, "2024-01-02", "1.00")))
        assert shop.apply()["orders"]["rows"] == 1
        assert shop.column("orders", "order_id") == [1, 2]

    def test_a_line_that_cannot_be_parsed_is_kept_with_its_text_and_the_others_are_loaded(
        self, csv_shop: Declare
    ) -> None:
        shop = csv_shop(columns={"order_id": "integer"})
        shop.file("data/orders.csv", order_lines((1, "2024-01-01", "1"), ("x", "2024-01-02", "2")))
        told = shop.apply()["orders"]
        assert (told["rows"], told["quarantined"], told["error"]) == (1, 1, None)
        (warning,) = told["warnings"]
        assert warning.endswith(
            "1 row(s) set aside, kept in hakiri.quarantine_shop_orders; the first: `order_id` is no integer"
        )
        kept = shop.rows('SELECT "ruleId", "row"->>\'line\' FROM hakiri.quarantine_shop_orders')
        assert kept == [("malformed", "x,2024-01-02,2")]

    def test_set_aside_rows_fail_the_asset_check_without_failing_the_run(self, csv_shop: Declare) -> None:
        shop = csv_shop(columns={"order_id": "integer"})
        shop.file("data/orders.csv", order_lines((1, "2024-01-01", "1"), ("x", "2024-01-02", "2")))
        shop.apply()
        key = dg.AssetCheckKey(dg.AssetKey(["shop", "orders"]), "no_rows_set_aside")
        record = shop.instance.get_latest_asset_check_evaluation_record(key)
        assert record is not None
        assert record.event is not None
        evaluation = record.event.asset_check_evaluation
        assert (evaluation.passed, evaluation.severity) == (False, dg.AssetCheckSeverity.WARN)
        assert evaluation.metadata["rows_set_aside"].value == 1

    def test_bad_rows_that_must_stop_the_run_do_and_say_what_they_are(self, csv_shop: Declare) -> None:
        shop = csv_shop(columns={"order_id": "integer"}, load={"bad_rows": "abort"})
        shop.file("data/orders.csv", order_lines((1, "2024-01-01", "1"), ("x", "2024-01-02", "2")))
        told = shop.apply()["orders"]
        assert told["chunks"] == {"done": 0, "failed": 1, "skipped": 0, "pending": 0}
        assert "1 row(s) cannot be loaded" in told["error"]
        assert shop.column("orders", "order_id") == []
        assert len(shop.rows("SELECT 1 FROM hakiri.quarantine_shop_orders")) == 1

    def test_a_broken_file_does_not_stop_the_others(self, shop: ShopProject) -> None:
        import pyarrow as pa
        import pyarrow.parquet as pq

        shop.manifest(
            {
                "id": "shop",
                "source": {"connector": "files", "config": {"path": "data", "format": "parquet"}},
                "tables": [{"name": "orders", "path": "data/orders/"}],
            }
        )
        for first, name in enumerate(("a", "b", "c")):
            path = shop.file(f"data/orders/{name}.parquet", b"")
            numbers = list(range(first * 5000, first * 5000 + 5000))
            pq.write_table(pa.table({"order_id": numbers}), path, compression="gzip", use_dictionary=False)
        whole = (shop.root / "data/orders/b.parquet").read_bytes()
        (shop.root / "data/orders/b.parquet").write_bytes(whole[:100] + b"\xff" * 3000 + whole[3100:])
        told = shop.apply()["orders"]
        assert (told["chunks"]["done"], told["chunks"]["failed"], told["rows"]) == (2, 1, 10000)
        assert "b.parquet" in told["error"]


class TestWindows:
    MONTHS = order_lines((1, "2024-01-05", "1"), (2, "2024-02-05", "2"), (3, "2024-03-05", "3"), (4, "", "4"))

    def test_windows_are_committed_one_by_one_and_rows_without_a_cursor_come_along(self, csv_shop: Declare) -> None:
        shop = csv_shop(incremental="placed_at")
        shop.file("data/orders.csv", self.MONTHS)
        told = shop.apply()["orders"]
        assert (told["rows"], told["error"]) == (4, None)
        assert sorted(ledger(shop)) == [("2024-01", 1), ("2024-02", 1), ("2024-03", 1), ("null", 1)]
        assert {"2024-01", "2024-02", "2024-03"} <= materialized(shop)
        assert shop.apply()["orders"]["chunks"]["done"] == 0

    def test_a_new_file_owes_only_the_windows_that_it_reaches(self, csv_shop: Declare) -> None:
        shop = csv_shop(path="data/orders/", incremental="placed_at")
        shop.file("data/orders/a.csv", self.MONTHS)
        shop.apply()
        shop.file("data/orders/b.csv", order_lines((9, "2024-02-20", "5")))
        told = shop.apply()["orders"]
        assert told["chunks"]["done"] == 1
        assert shop.column("orders", "order_id") == [1, 2, 3, 4, 9]

    @pytest.mark.parametrize("window", ["1d", "1q", "30d", "1y"])
    def test_another_window_neither_loses_nor_doubles_rows(self, csv_shop: Declare, window: str) -> None:
        shop = csv_shop(incremental="placed_at")
        shop.file("data/orders.csv", self.MONTHS)
        shop.apply()
        csv_shop(incremental="placed_at", backfill={"window": window})
        assert shop.apply()["orders"]["error"] is None
        assert shop.column("orders", "order_id") == [1, 2, 3, 4]
        assert shop.apply()["orders"]["chunks"]["done"] == 0

    def test_rows_dated_in_the_future_are_loaded_in_a_chunk_of_their_own(self, csv_shop: Declare) -> None:
        shop = csv_shop(incremental="placed_at")
        shop.file("data/orders.csv", order_lines((1, "2026-01-05", "1"), (2, "2199-01-01", "2")))
        told = shop.apply()["orders"]
        assert told["rows"] == 2
        assert any("outside" in warning for warning in told["warnings"])
        assert shop.apply()["orders"]["chunks"]["done"] == 0

    def test_chunks_asked_for_by_name_are_loaded_again_and_replace_their_rows(self, csv_shop: Declare) -> None:
        shop = csv_shop(incremental="placed_at")
        shop.file("data/orders.csv", self.MONTHS)
        shop.apply()
        shop.again("orders", "2024-02")
        assert shop.column("orders", "order_id") == [1, 2, 3, 4]
        assert [key for key, _ in ledger(shop)].count("2024-02") == 2
        assert [key for key, _ in ledger(shop)].count("null") == 1


class TestWholeTables:
    def test_a_truncated_table_holds_what_the_files_hold_and_is_due_only_when_they_change(
        self, csv_shop: Declare
    ) -> None:
        shop = csv_shop(load={"mode": "truncate"})
        shop.file("data/orders.csv", order_lines((1, "2024-01-05", "1"), (2, "2024-01-05", "1")))
        assert shop.apply()["orders"]["rows"] == 2
        assert shop.apply()["orders"]["chunks"]["done"] == 0
        shop.file("data/orders.csv", order_lines((7, "2024-01-05", "1")))
        assert shop.apply()["orders"]["rows"] == 1
        assert shop.column("orders", "order_id") == [7]

    def test_an_empty_source_leaves_the_target_alone_and_says_how_to_allow_it(self, csv_shop: Declare) -> None:
        shop = csv_shop(load={"mode": "truncate"})
        shop.file("data/orders.csv", order_lines((1, "2024-01-05", "1")))
        shop.apply()
        shop.file("data/orders.csv", HEADER)
        assert (
            "the source returned 0 rows; load mode truncate would leave the target empty, so nothing was "
            "changed. Set fail_on_empty_source = false to allow it."
        ) in shop.apply()["orders"]["error"]
        assert shop.column("orders", "order_id") == [1]


class TestCrashesAndRivals:
    def test_a_crash_between_publish_and_audit_is_repaired_without_loading_again(
        self, csv_shop: Declare, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        shop = csv_shop()
        shop.file("data/orders.csv", order_lines((1, "2024-01-05", "1")))

        def dies(*_args: object) -> None:
            raise AuditUnavailable("the audit DB went away")

        with monkeypatch.context() as patch:
            patch.setattr(ChunkStore, "done", dies)
            assert shop.apply()["orders"]["error"] is not None
        assert shop.apply()["orders"]["chunks"]["done"] == 0
        assert len(ledger(shop)) == 1
        assert shop.column("orders", "order_id") == [1]

    def test_a_lost_audit_db_is_rebuilt_from_the_ledger(self, csv_shop: Declare) -> None:
        shop = csv_shop(incremental="placed_at")
        shop.file("data/orders.csv", TestWindows.MONTHS)
        shop.apply()
        for path in shop.root.glob(".hakiri/audit.sqlite*"):
            path.unlink()
        shop.apply()
        assert shop.column("orders", "order_id") == [1, 2, 3, 4]

    def test_a_dropped_target_is_made_and_loaded_anew(self, csv_shop: Declare) -> None:
        shop = csv_shop(incremental="placed_at")
        shop.file("data/orders.csv", TestWindows.MONTHS)
        shop.apply()
        shop.execute("DROP TABLE raw.orders")
        assert shop.apply()["orders"]["rows"] == 4
        assert shop.column("orders", "order_id") == [1, 2, 3, 4]

    @pytest.mark.parametrize("incremental", ["placed_at", None])
    def test_what_a_warehouse_lost_when_it_was_restored_is_loaded_again(
        self, csv_shop: Declare, incremental: str | None
    ) -> None:
        shop = csv_shop(path="data/orders/", **({"incremental": incremental} if incremental else {}))
        shop.file("data/orders/a.csv", order_lines((1, "2024-01-05", "1"), (2, "2024-02-05", "2")))
        shop.apply()
        tables = {"raw.orders": "dump.orders", "hakiri.ledger": "dump.ledger", "hakiri.fence": "dump.fence"}
        shop.execute("CREATE SCHEMA dump")
        for table, copy in tables.items():
            shop.execute(f"CREATE TABLE {copy} AS TABLE {table}")
        shop.file("data/orders/b.csv", order_lines((3, "2024-02-06", "3"), (4, "2024-03-05", "4")))
        shop.apply()
        for table, copy in tables.items():
            shop.execute(f"TRUNCATE {table}; INSERT INTO {table} SELECT * FROM {copy}")
        shop.execute("SELECT setval('hakiri.ledger_load_id_seq', (SELECT max(load_id) FROM hakiri.fence))")
        told = shop.apply()["orders"]
        assert (told["rows"], told["error"]) == (3 if incremental else 2, None)
        assert shop.column("orders", "order_id") == [1, 2, 3, 4]
        assert shop.apply()["orders"]["chunks"]["done"] == 0

    @pytest.mark.parametrize("incremental", ["placed_at", None])
    def test_a_table_that_lands_elsewhere_now_is_loaded_there_and_knows_its_rows_when_it_comes_back(
        self, csv_shop: Declare, incremental: str | None
    ) -> None:
        settings = {"incremental": incremental} if incremental else {}
        shop = csv_shop(path="data/orders/", **settings)
        shop.file("data/orders/a.csv", order_lines((1, "2024-01-05", "1"), (2, "2024-02-05", "2")))
        shop.apply()
        shop.execute("CREATE TABLE raw.sales (LIKE raw.orders)")
        csv_shop(path="data/orders/", target="sales", **settings)
        with shop.runtime() as runtime:
            (planned,) = runtime.plan(runtime.project.tables, look_for_gaps=True).plan.tables
        assert [(gap.owed, gap.published_to) for gap in planned.gaps] == [(True, "raw.orders")] * len(planned.loads)
        assert shop.apply()["orders"]["rows"] == 2
        assert shop.column("sales", "order_id") == [1, 2]
        shop.file("data/orders/a.csv", order_lines((1, "2024-01-05", "1"), (3, "2024-02-05", "2")))
        shop.apply()
        assert shop.column("sales", "order_id") == [1, 3]
        csv_shop(path="data/orders/", **settings)
        assert shop.apply()["orders"]["error"] is None
        assert shop.column("orders", "order_id") == [1, 3]
        assert shop.apply()["orders"]["chunks"]["done"] == 0

    def test_a_chunk_that_a_living_worker_holds_is_skipped_with_a_reason(self, csv_shop: Declare) -> None:
        shop = csv_shop()
        shop.file("data/orders.csv", order_lines((1, "2024-01-05", "1")))
        self._claimed_by(shop, str(ProcessIdentity("elsewhere", "boot", 1, "1")))
        told = shop.apply()["orders"]
        assert (told["chunks"]["done"], told["chunks"]["skipped"], told["error"]) == (0, 1, None)
        assert "another run holds it" in told["warnings"][0]

    def test_the_lease_of_a_worker_that_died_here_is_taken_over_at_once(self, csv_shop: Declare) -> None:
        shop = csv_shop()
        shop.file("data/orders.csv", order_lines((1, "2024-01-05", "1")))
        here = ProcessIdentity.current()
        self._claimed_by(shop, str(ProcessIdentity(here.host, here.boot_id, here.pid, "0")))
        assert shop.apply()["orders"]["chunks"]["done"] == 1

    def test_leases_and_the_place_of_a_pass_are_renewed_for_as_long_as_a_load_takes(self, csv_shop: Declare) -> None:
        shop = csv_shop()
        shop.file("data/orders.csv", order_lines((1, "2024-01-05", "1")))
        shop.apply()
        shop.file("data/orders.csv", order_lines((2, "2024-01-06", "2")))
        shop.settings = replace(shop.settings, lease_ttl_seconds=3)

        def leased_until(table: Table) -> datetime | None:
            with open_audit(None, shop.root / ".hakiri") as audit:
                held = select(table.c.leased_until).where(table.c.leased_until.is_not(None))
                until: datetime | None = audit._transactions.read(lambda c: c.execute(held).scalar())
                return until

        def later(first: datetime, table: Table) -> bool:
            return (leased_until(table) or first) > first

        with ThreadPoolExecutor(1) as pool, psycopg.connect(shop.url) as other:
            other.execute("LOCK TABLE raw.orders")
            applied = pool.submit(shop.apply)
            try:
                for table in (PIPELINE_CHUNKS, PASS_PLACE):
                    assert eventually(partial(leased_until, table))
                    first = leased_until(table)
                    assert first is not None
                    assert eventually(partial(later, first, table))
            finally:
                other.rollback()
            assert applied.result()["orders"]["chunks"]["done"] == 1

    @staticmethod
    def _claimed_by(shop: ShopProject, holder: str) -> None:
        from hakiri_dagster.pipeline.remembering import remember

        with shop.runtime() as runtime:
            (table,) = runtime.project.tables
            survey = runtime.survey(table)
            remember(runtime.audit, survey, survey.due)
            claims = runtime.audit.chunks.claim(
                "shop",
                "orders",
                survey.due.slices,
                holder=holder,
                run_id="other",
                ttl_seconds=600,
                holder_is_dead=lambda _holder: None,
            )
            assert len(claims.claimed) == 1

    def test_chunks_that_dagster_was_never_told_of_show_as_done(self, csv_shop: Declare) -> None:
        shop = csv_shop(incremental="placed_at")
        shop.file("data/orders.csv", TestWindows.MONTHS)
        shop.apply()
        with dg.DagsterInstance.ephemeral() as fresh:
            replaced = ShopProject(shop.root, shop.url, fresh)
            replaced.again("orders", "2024-03")
            assert {"2024-01", "2024-02", "2024-03"} <= materialized(replaced)


class TestPostgresSources:
    def test_a_target_that_was_dropped_and_made_anew_by_a_run_that_died_gets_every_row(self, shop: ShopProject) -> None:
        shop.execute("CREATE SCHEMA app; CREATE TABLE app.orders (id int PRIMARY KEY, placed_at timestamptz)")
        shop.execute(
            "INSERT INTO app.orders SELECT n, '2026-04-01'::timestamptz + n * interval '1 hour'"
            " FROM generate_series(1, 1000) n"
        )
        for mode in ("append", "upsert"):
            shop.manifest(
                {
                    "id": mode,
                    "source": {"connector": "postgres", "config": {"url": shop.url, "schema": "app"}},
                    "tables": [{"name": "orders", "target": mode, "load": {"mode": mode}, "primary_key": ["id"]}],
                    "incremental": "placed_at",
                }
            )
            shop.apply(mode)
            shop.execute(f"DROP TABLE raw.{mode}")
            with shop.runtime() as runtime:
                (table,) = (t for t in runtime.project.tables if t.pipeline_id == mode)
                survey = runtime.survey(table)
                runtime.destination(table).ensure_target(table, survey.schema, with_file_hash=False)
            assert shop.apply(mode)["orders"]["rows"] == 1000
            assert len(shop.column(mode, "id")) == 1000

    @pytest.mark.parametrize("index", ["CREATE INDEX ON app.orders (placed_at)", "SELECT 1"])
    def test_a_new_row_without_a_cursor_is_seen_though_their_number_is_the_same(
        self, shop: ShopProject, index: str
    ) -> None:
        shop.execute("CREATE SCHEMA app; CREATE TABLE app.orders (id int, placed_at timestamptz)")
        shop.execute(index)
        shop.execute("INSERT INTO app.orders VALUES (1, '2026-05-01'), (2, NULL)")
        shop.manifest(
            {
                "id": "shop",
                "source": {"connector": "postgres", "config": {"url": shop.url, "schema": "app"}},
                "tables": [{"name": "orders", "load": {"mode": "append"}}],
                "incremental": "placed_at",
            }
        )
        shop.apply()
        shop.execute("UPDATE app.orders SET placed_at = '2026-05-02' WHERE id = 2")
        shop.execute("INSERT INTO app.orders VALUES (3, NULL)")
        shop.apply()
        assert shop.column("orders", "id") == [1, 2, 3]
        assert shop.apply()["orders"]["rows"] == 0

    def test_new_rows_of_the_open_window_are_loaded_without_losing_or_doubling_ties(self, shop: ShopProject) -> None:
        now = datetime.now(UTC).replace(microsecond=0)
        shop.execute(
            "CREATE SCHEMA app; CREATE TABLE app.orders (id int PRIMARY KEY, placed_at timestamptz, note text)"
        )
        shop.execute(f"INSERT INTO app.orders VALUES (1, '{now - timedelta(days=70)}', ''), (2, '{now}', 'tie')")
        shop.manifest(
            {
                "id": "shop",
                "source": {"connector": "postgres", "config": {"url": shop.url, "schema": "app"}},
                "tables": [{"name": "orders", "load": {"mode": "append"}}],
                "incremental": "placed_at",
            }
        )
        assert shop.apply()["orders"]["rows"] == 2
        assert shop.apply()["orders"]["chunks"]["done"] == 0
        shop.execute(f"INSERT INTO app.orders VALUES (3, '{now}', 'a late tie')")
        shop.apply()
        assert shop.column("orders", "id") == [1, 2, 3]
        assert shop.column("orders", "note") == ["", "a late tie", "tie"]
