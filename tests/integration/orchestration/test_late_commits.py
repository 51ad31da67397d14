"""Rows of transactions that were open while a load read: whatever stamped them, the next load brings them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, ExitStack
from dataclasses import dataclass, replace
from typing import Any

import psycopg
import pytest
from psycopg import Connection

from hakiri_dagster.cli.explain import document, explain
from hakiri_dagster.connectors.postgres import table as postgres_table
from hakiri_dagster.planning.horizon import SourceTransactions
from hakiri_dagster.planning.windows import HOUR

from .conftest import ShopProject

MODES: dict[str, dict[str, Any]] = {
    "append": {"incremental": "created_at", "load": {"mode": "append"}},
    "by_id": {"incremental": "id", "load": {"mode": "append"}, "backfill": {"window": 3}},
    "watermark": {"load": {"mode": "incremental_watermark", "watermark_column": "id"}},
    "upsert": {"incremental": "created_at", "primary_key": ["id"], "load": {"mode": "upsert"}},
    "history": {"incremental": "created_at", "primary_key": ["id"], "load": {"mode": "scd2"}},
}
TABLE = """
CREATE TABLE src.{name} (
    id bigserial PRIMARY KEY, created_at timestamptz NOT NULL DEFAULT now(), body text);
CREATE INDEX ON src.{name} (created_at);
INSERT INTO src.{name} (created_at, body) SELECT now() - n * interval '1 day', 'old' FROM generate_series(1, 5) n;
"""


@dataclass
class Busy:
    shop: ShopProject
    sessions: ExitStack

    def session(self) -> Connection:
        return self.sessions.enter_context(psycopg.connect(self.shop.url))

    def write(self, connection: Connection, body: str) -> None:
        for name in MODES:
            connection.execute(f"INSERT INTO src.{name} (body) VALUES (%s)".encode(), (body,))

    def differences(self) -> dict[str, tuple[Any, ...]]:
        """What the target lacks, and what it has beyond the source, by table."""
        found = {}
        for name in MODES:
            current = " WHERE is_current" if name == "history" else ""
            source = self.shop.rows(f"SELECT id, created_at, body FROM src.{name}")
            target = self.shop.rows(f"SELECT id, created_at, body FROM raw.{name}{current}")
            if sorted(source) != sorted(target):
                found[name] = (set(source) - set(target), set(target) - set(source), len(target))
        return found


@pytest.fixture
def busy(shop: ShopProject) -> Iterator[Busy]:
    shop.execute("CREATE SCHEMA src")
    for name in MODES:
        shop.execute(TABLE.format(name=name))
    shop.manifest(
        {
            "id": "shop",
            "source": {"connector": "postgres", "config": {"url": shop.url, "schema": "src"}},
            "tables": [{"name": name, **declared} for name, declared in MODES.items()],
        }
    )
    with ExitStack() as sessions:
        yield Busy(shop, sessions)


def loaded(told: dict[str, Any]) -> dict[str, int]:
    return {name: table["chunks"]["done"] for name, table in told.items() if table["chunks"]["done"]}


def test_a_transaction_that_commits_after_later_ones_were_read_is_not_lost(busy: Busy) -> None:
    shop = busy.shop
    early, rolled_back = busy.session(), busy.session()
    busy.write(early, "early")
    busy.write(rolled_back, "never")
    late = busy.session()
    busy.write(late, "late")
    late.commit()
    shop.apply()
    assert set(busy.differences()) == set(), "what is open is not there yet, on both sides"
    early.commit()
    rolled_back.rollback()
    assert set(loaded(shop.apply())) == set(MODES)
    assert busy.differences() == {}
    shop.apply()
    assert loaded(shop.apply()) == {}, "once all have ended, nothing is read again"
    assert busy.differences() == {}


def test_a_transaction_that_ends_before_it_is_listed_is_read_with_the_rows(
    busy: Busy, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Lost if the rows were read as of a moment before: it is not open any more, and was not visible then."""
    transaction, listed = postgres_table.source_transaction, postgres_table.list_transactions
    open_now: list[Connection] = []

    def end_all() -> None:
        while open_now:
            open_now.pop().commit()

    def begun(*args: Any) -> AbstractContextManager[Connection]:
        """Before the extent is read, which has the later row, and not the one before it."""
        end_all()
        early, late = busy.session(), busy.session()
        busy.write(early, "early")
        busy.write(late, "late")
        late.commit()
        open_now.append(early)
        return transaction(*args)

    def ended(*args: Any, **kwargs: Any) -> SourceTransactions:
        end_all()
        return listed(*args, **kwargs)

    with monkeypatch.context() as patched:
        patched.setattr(postgres_table, "source_transaction", begun)
        patched.setattr(postgres_table, "list_transactions", ended)
        busy.shop.apply()
    end_all()
    busy.shop.apply()
    assert busy.differences() == {}


def test_while_a_transaction_stays_open_nothing_is_read_again_without_a_change(busy: Busy) -> None:
    shop = busy.shop
    early = busy.session()
    busy.write(early, "early")
    late = busy.session()
    busy.write(late, "late")
    late.commit()
    shop.apply()
    assert loaded(shop.apply()) == {}
    busy.write(late, "later")
    late.commit()
    assert set(loaded(shop.apply())) == set(MODES)
    early.commit()
    shop.apply()
    assert busy.differences() == {}


def test_what_a_clock_that_went_back_stamps_a_second_time_is_read(busy: Busy) -> None:
    shop = busy.shop
    stamped = "INSERT INTO src.{} (created_at, body) VALUES (now() - %s::interval, 'stamped')"
    session = busy.session()

    def write(ago: str) -> None:
        for name in MODES:
            session.execute(stamped.format(name).encode(), (ago,))
        session.commit()

    write("20 seconds")
    shop.apply()
    with shop.runtime() as runtime:
        for name in MODES:  # as if the source's clock had been an hour ahead then
            history = runtime.audit.cursor_history.of_table("shop", name)
            assert history.clock is not None
            runtime.audit.cursor_history.save("shop", name, replace(history, clock=history.clock + HOUR))
    write("40 seconds")
    assert set(loaded(shop.apply())) == set(MODES)
    assert busy.differences() == {}
    with shop.runtime() as runtime:
        assert runtime.audit.cursor_history.of_table("shop", "append").went_back_to is None
    shop.apply()
    assert loaded(shop.apply()) == {}


def test_a_row_that_moves_back_while_it_is_read_again_ends_as_the_source_has_it(busy: Busy) -> None:
    """Of two transactions that change a row, the one that began first may be the one that commits last."""
    shop = busy.shop
    first, second = busy.session(), busy.session()
    first.execute("SELECT now()")  # its time is taken
    second.execute("SELECT pg_sleep(0.01)")
    change = "UPDATE src.{} SET body = %s, created_at = now() WHERE id = 3"
    for name in ("upsert", "history"):
        second.execute(change.format(name).encode(), ("second",))
    second.commit()
    shop.apply()
    assert busy.differences() == {}
    for name in ("upsert", "history"):
        first.execute(change.format(name).encode(), ("first",))
    first.commit()
    shop.apply()
    assert busy.differences() == {}
    versions = shop.rows("SELECT body, valid_to IS NULL FROM raw.history WHERE id = 3 ORDER BY valid_from")
    assert versions == [("first", True)]


def declare_days(shop: ShopProject, name: str, key: list[str], **load: Any) -> None:
    """One table of the source, in windows of a day."""
    table = {"name": name, "incremental": "at", "primary_key": key, "load": load, "backfill": {"window": "1d"}}
    source = {"connector": "postgres", "config": {"url": shop.url, "schema": "src"}}
    shop.manifest({"id": "shop", "source": source, "tables": [table]})


@pytest.mark.parametrize("mode", ["upsert", "scd2"])
def test_a_row_that_moves_back_to_a_window_that_is_loaded_by_itself_ends_as_the_source_has_it(
    shop: ShopProject, mode: str
) -> None:
    shop.execute("CREATE SCHEMA src")
    shop.execute("CREATE TABLE src.orders (id int PRIMARY KEY, at timestamptz, body text)")
    shop.execute("INSERT INTO src.orders SELECT n, '2024-01-08'::date + n, 'old' FROM generate_series(1, 3) n")
    declare_days(shop, "orders", ["id"], mode=mode)
    shop.apply()
    shop.execute("UPDATE src.orders SET at = '2024-01-09 23:59:59+00', body = 'first' WHERE id = 3")
    shop.again("orders", "2024-01-09")
    current = " WHERE is_current" if mode == "scd2" else ""
    expected = shop.rows("SELECT * FROM src.orders ORDER BY 1")
    for key in ("2024-01-11", "2024-01-10"):
        assert shop.rows(f"SELECT id, at, body FROM raw.orders{current} ORDER BY 1") == expected
        shop.again("orders", key)
    assert shop.rows(f"SELECT id, at, body FROM raw.orders{current} ORDER BY 1") == expected


@pytest.mark.parametrize("mode", ["upsert", "scd2"])
def test_of_several_rows_of_a_key_the_highest_cursor_counts_however_chunks_are_loaded(
    shop: ShopProject, mode: str
) -> None:
    """The source has no key of its own, so that a lower cursor says nothing of a higher one."""
    shop.execute("CREATE SCHEMA src")
    shop.execute("CREATE TABLE src.events (account int, at timestamptz, body text)")
    shop.execute("INSERT INTO src.events SELECT 1, '2024-01-08'::date + n, n::text FROM generate_series(1, 3) n")
    declare_days(shop, "events", ["account"], mode=mode)
    shop.apply()
    shop.execute("UPDATE src.events SET body = 'changed' WHERE body = '1'")
    shop.again("events", "2024-01-09")
    current = " WHERE is_current" if mode == "scd2" else ""
    assert shop.rows(f"SELECT body FROM raw.events{current}") == [("3",)]


def test_rows_that_are_merged_by_another_key_than_the_sources_are_several_rows_of_a_key(shop: ShopProject) -> None:
    shop.execute("CREATE SCHEMA src")
    shop.execute("CREATE TABLE src.events (id int PRIMARY KEY, account int NOT NULL, at timestamptz, body text)")
    shop.execute("INSERT INTO src.events SELECT n, 1, '2024-01-08'::date + n, n::text FROM generate_series(1, 3) n")
    declare_days(shop, "events", ["id"], mode="upsert", upsert_key=["account"])
    shop.apply()
    shop.execute("UPDATE src.events SET body = 'changed' WHERE id = 1")
    shop.again("events", "2024-01-09")
    assert shop.rows("SELECT body FROM raw.events") == [("3",)]


def test_an_unknown_horizon_is_told_also_when_nothing_is_to_be_loaded(shop: ShopProject) -> None:
    shop.execute("CREATE SCHEMA src")
    shop.execute("CREATE TABLE src.orders (id bigint GENERATED ALWAYS AS IDENTITY (CACHE 50), body text)")
    shop.execute("INSERT INTO src.orders (body) VALUES ('one')")
    shop.manifest(
        {
            "id": "shop",
            "source": {"connector": "postgres", "config": {"url": shop.url, "schema": "src"}},
            "incremental": "id",
            "tables": ["orders"],
        }
    )
    shop.apply()
    with shop.runtime() as runtime:
        plan = runtime.plan(runtime.project.tables).plan
    assert plan.is_converged
    warning = "the sequence src.orders_id_seq of id has CACHE 50, so its numbers are not drawn in their order"
    assert f"warning: {warning}" in explain(plan)
    assert "run `ALTER SEQUENCE src.orders_id_seq CACHE 1` at the source" in explain(plan)
    assert "at first the last 10,000 ids" in explain(plan)


class TestATransactionThatStaysOpenForLong:
    @pytest.fixture
    def held_back(self, shop: ShopProject) -> Iterator[ShopProject]:
        shop.execute("CREATE SCHEMA src")
        shop.execute(TABLE.format(name="orders"))
        with psycopg.connect(shop.url, application_name="report") as session:
            session.execute("INSERT INTO src.orders (body) VALUES ('early'); SELECT pg_sleep(1.1)")
            shop.execute("INSERT INTO src.orders (body) VALUES ('late')")
            yield shop
            session.commit()

    def declare(self, shop: ShopProject, on_max_lag: str) -> None:
        shop.manifest(
            {
                "id": "shop",
                "source": {"connector": "postgres", "config": {"url": shop.url, "schema": "src"}},
                "incremental": "created_at",
                "backfill": {"window": "1d"},
                "load": {"mode": "append", "max_lag": "1s", "on_max_lag": on_max_lag},
                "tables": ["orders"],
            }
        )

    def plan(self, shop: ShopProject) -> tuple[str, dict[str, Any]]:
        with shop.runtime() as runtime:
            plan = runtime.plan(runtime.project.tables).plan
            return explain(plan), document(plan)["pipelines"][0]["tables"][0]

    def test_is_named_in_the_plan_the_status_and_an_alert_and_loads_go_on(self, held_back: ShopProject) -> None:
        shop = held_back
        self.declare(shop, "warn")
        shop.apply()
        assert "late" in shop.column("orders", "body")
        text, told = self.plan(shop)
        assert "has been in a transaction at the source for 0:00:" in text
        (transaction,) = told["reread"]["because_of"]
        assert (transaction["application"], transaction["state"]) == ("report", "idle in transaction")
        with shop.runtime() as runtime:
            (alert,) = runtime.audit.alerts.newest()
            assert (alert.kind, alert.details["application"]) == ("long_transaction", "report")
            assert alert.details["pid"] == transaction["pid"]
            reread = runtime.audit.cursor_history.of_table("shop", "orders").reread
            assert reread is not None
            assert [one.pid for one in reread.because_of] == [transaction["pid"]]

    def test_may_be_waited_for(self, held_back: ShopProject) -> None:
        shop = held_back
        self.declare(shop, "wait")
        shop.apply()
        assert set(shop.column("orders", "body")) == {"old"}, "windows that are complete are loaded"
        text, told = self.plan(shop)
        assert "wait for its end" in text
        assert "~ 1 chunk(s) wait for transactions at the source to end: " in text
        assert (told["verdict"], len(told["waiting"]), told["chunks"]["pending"]) == ("wait", 1, 1)
        assert shop.apply()["orders"]["chunks"]["pending"] == 1


@pytest.mark.parametrize(
    ("cursor", "kind"), [("id", "bigint"), ("at", "timestamptz"), ("at", "timestamp"), ("at", "date")]
)
def test_a_quarantined_row_that_is_read_again_is_quarantined_once(shop: ShopProject, cursor: str, kind: str) -> None:
    at = "bigint" if cursor == "id" else kind
    shop.execute(
        f"CREATE SCHEMA src; CREATE TABLE src.orders (id bigint, at {'date' if cursor == 'id' else at}, body text)"
    )
    shop.execute("INSERT INTO src.orders VALUES (1, '2024-01-01', 'good'), (2, '2024-01-02', 'bad')")
    shop.manifest(
        {
            "id": "shop",
            "source": {"connector": "postgres", "config": {"url": shop.url, "schema": "src"}},
            "incremental": cursor,
            "load": {"mode": "append"},
            "validate": {"rowLevel": [{"type": "oneOf", "field": "body", "values": ["good"], "onFail": "skip"}]},
            "tables": ["orders"],
        }
    )
    shop.apply()
    shop.execute("INSERT INTO src.orders VALUES (3, '2024-01-03', 'good'), (4, '2024-01-04', 'bad')")
    shop.apply()
    assert shop.column("orders", "id") == [1, 3]
    assert shop.rows("SELECT \"row\" ->> 'id' FROM hakiri.quarantine_shop_orders ORDER BY 1") == [("2",), ("4",)]
