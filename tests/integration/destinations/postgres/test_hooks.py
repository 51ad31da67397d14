"""Where the SQL of hooks runs, and what a publish remembers of hooks that are owed."""

from __future__ import annotations

import threading
from collections.abc import Callable

import psycopg
import pytest

from hakiri_dagster.destinations.hooks_contract import Attempt
from hakiri_dagster.destinations.postgres import hook_session
from hakiri_dagster.errors import DestinationError, DestinationUnavailable, HooksBusy, UnsafeSql
from hakiri_dagster.planning.hooks import HookName
from tests.integration.destinations.postgres.scenario import WHOLE, Shop, order, window

MakeShop = Callable[..., Shop]

TOLD, COUNTED = HookName("a" * 32, "webhook https://example.com"), HookName("b" * 32, "sql ANALYZE")
RAW_ORDERS = ("raw", "orders")


def publish(shop: Shop, lower: int, *owes: HookName) -> int:
    load = shop.load(window(lower, lower + 10))
    candidate = shop.candidate(load, [order(lower, updated_at=lower + 1)])
    return shop.destination.prepare(load, candidate).publish(None, 0, owes).load_id


def test_a_publish_and_what_it_owes_are_remembered_together_or_not_at_all(make_shop: MakeShop) -> None:
    shop = make_shop()
    assert shop.destination.owed_hooks(shop.table) == (), "nothing is there yet, not even our schema"
    load = shop.load(WHOLE)
    open_load = shop.destination.prepare(load, shop.candidate(load, [order(1)]))
    shop.claim(WHOLE)  # by another worker
    with pytest.raises(Exception, match="taken over"):
        open_load.publish(None, 0, [TOLD])
    assert shop.destination.owed_hooks(shop.table) == ()
    first = publish(shop, 0, TOLD, COUNTED)
    assert {hook.name: hook.load_ids for hook in shop.destination.owed_hooks(shop.table)} == {
        TOLD: (first,),
        COUNTED: (first,),
    }


def test_what_was_published_while_a_hook_ran_still_owes_it(make_shop: MakeShop) -> None:
    shop = make_shop()
    first = publish(shop, 0, TOLD, COUNTED)
    (told,) = (hook for hook in shop.destination.owed_hooks(shop.table) if hook.name == TOLD)
    second = publish(shop, 20, TOLD)
    shop.destination.settle_hook(shop.table, told)
    assert {hook.name: hook.load_ids for hook in shop.destination.owed_hooks(shop.table)} == {
        TOLD: (second,),
        COUNTED: (first,),
    }


def test_each_statement_is_in_a_transaction_of_its_own_and_a_setting_stays(make_shop: MakeShop) -> None:
    shop = make_shop()
    shop.publish([order(1)])
    with shop.destination.hook_session(shop.table, None) as session:
        session.execute("SET work_mem = '77MB'", RAW_ORDERS)
        session.execute("VACUUM (ANALYZE) {table}", RAW_ORDERS)
        session.execute("REINDEX TABLE CONCURRENTLY {table}", RAW_ORDERS)
        lines = session.execute("EXPLAIN (SETTINGS) SELECT * FROM {table}", RAW_ORDERS)
    assert "work_mem = '77MB'" in lines[-1]
    with shop.destination.hook_session(shop.table, None) as session:
        assert "77MB" not in session.execute("EXPLAIN (SETTINGS) SELECT 1", RAW_ORDERS)[-1]


@pytest.mark.parametrize("name", ['or"ders', "or'ders; DROP TABLE x", "Orders", "bestellungen.ä", "x" * 63, "a--b"])
def test_a_table_of_any_name_is_a_name_and_nothing_else(make_shop: MakeShop, name: str) -> None:
    shop = make_shop(target_name=name)
    load = shop.load(WHOLE)
    shop.destination.prepare(load, shop.candidate(load, [order(1)])).publish(None, 0)
    with shop.destination.hook_session(shop.table, None) as session:
        session.execute("ANALYZE {table}", ("raw", name))
    assert shop.query("SELECT relname FROM pg_stat_user_tables WHERE last_analyze IS NOT NULL") == [(name,)]


def test_what_a_hook_may_not_hold_is_not_run_here_either(make_shop: MakeShop) -> None:
    shop = make_shop()
    shop.publish([order(1)])
    with shop.destination.hook_session(shop.table, None) as session, pytest.raises(UnsafeSql):
        session.execute("DELETE FROM {table}", RAW_ORDERS)
    assert shop.ids() == [1]


def test_only_one_run_at_a_time_settles_what_a_table_owes(make_shop: MakeShop, monkeypatch: pytest.MonkeyPatch) -> None:
    shop = make_shop()
    shop.ensure()
    monkeypatch.setattr(hook_session, "_PATIENCE", "50ms")
    with shop.destination.hook_session(shop.table, None) as holder:
        with pytest.raises(HooksBusy, match="another run"), shop.destination.hook_session(shop.table, None):
            pass
        with shop.destination.hook_session(shop.table, Attempt("full", 1)) as before_a_load:
            before_a_load.execute("ANALYZE", RAW_ORDERS)
        holder.execute("ANALYZE", RAW_ORDERS)
    with shop.destination.hook_session(shop.table, None):
        pass


def test_a_statement_that_takes_too_long_is_not_tried_again(
    make_shop: MakeShop, monkeypatch: pytest.MonkeyPatch
) -> None:
    shop = make_shop()
    shop.publish([order(1)])
    monkeypatch.setattr(hook_session, "_STATEMENT_TIMEOUT", "100ms")
    with psycopg.connect(shop.url) as reader:
        reader.execute("LOCK TABLE raw.orders IN ACCESS EXCLUSIVE MODE")
        with (
            shop.destination.hook_session(shop.table, None) as session,
            pytest.raises(DestinationError, match="statement timeout") as told,
        ):
            session.execute("ANALYZE {table}", RAW_ORDERS)
    assert told.value.kind == "permanent"
    assert "SET statement_timeout" in str(told.value.hint)


def test_a_session_that_was_ended_may_be_had_again(make_shop: MakeShop) -> None:
    shop = make_shop()
    shop.publish([order(1)])
    with shop.destination.hook_session(shop.table, None) as session:
        shop.query(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name LIKE 'hakiri:hooks:%'"
        )
        with pytest.raises(DestinationUnavailable):
            session.execute("ANALYZE {table}", RAW_ORDERS)


def test_a_later_claim_ends_what_the_hooks_of_an_attempt_have_at_work(make_shop: MakeShop) -> None:
    shop = make_shop()
    shop.publish([order(1)])
    fence = shop.claim(WHOLE)
    failures: list[BaseException] = []
    waiting = "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND query LIKE 'ANALYZE%'"

    def maintain() -> None:
        with shop.destination.hook_session(shop.table, Attempt("full", fence.token)) as session:
            try:
                session.execute("ANALYZE {table}", RAW_ORDERS)
            except DestinationUnavailable as error:
                failures.append(error)

    with psycopg.connect(shop.url) as reader:
        reader.execute("LOCK TABLE raw.orders IN ACCESS EXCLUSIVE MODE")
        worker = threading.Thread(target=maintain)
        worker.start()
        while shop.query(waiting) == [(0,)]:
            assert worker.is_alive()
        shop.claim(WHOLE, "worker-2")
        worker.join(30)
    assert len(failures) == 1
