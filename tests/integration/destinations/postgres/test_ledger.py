from __future__ import annotations

import threading
from collections.abc import Iterator

import psycopg
import pytest

from hakiri_dagster.destinations.postgres import control_schema, fence
from hakiri_dagster.destinations.postgres.connection import Connections, connection_settings
from hakiri_dagster.errors import DestinationError, DestinationUnavailable, LeaseLost
from tests.integration.destinations.postgres.conftest import MakeShop
from tests.integration.destinations.postgres.scenario import WHOLE, Shop, order, window


def test_a_destination_without_a_ledger_has_no_entries_and_stays_as_it_is(make_shop: MakeShop) -> None:
    shop = make_shop()
    assert shop.destination.ledger(shop.table) == ()
    assert shop.query("SELECT to_regnamespace('hakiri')") == [(None,)]


def test_many_chunks_are_claimed_at_once(make_shop: MakeShop) -> None:
    shop = make_shop()
    keys = [f"k{number}" for number in range(300)]
    fences = shop.destination.claim(shop.table, keys, "worker-1")
    assert list(fences) == sorted(keys)
    assert len({fence.load_id for fence in fences.values()}) == 300
    again = shop.destination.claim(shop.table, keys[:2], "worker-2")
    assert [fence.token for fence in again.values()] == [2, 2]


def test_a_claim_ends_backends_of_earlier_attempts_of_its_chunks_only(make_shop: MakeShop) -> None:
    shop = make_shop()
    dead = shop.prepare([order(1)], window(0, 10))
    alive = shop.prepare([order(2, updated_at=11)], window(10, 20))
    shop.claim(window(0, 10), "worker-2")
    alive.publish(None, 0)
    with pytest.raises(LeaseLost):
        dead.publish(None, 0)
    assert shop.ids() == [2]


def test_a_claim_goes_through_though_a_hanging_publisher_holds_the_fence(make_shop: MakeShop) -> None:
    shop = make_shop()
    hanging = shop.prepare([order(1)])
    fence.check_fence(hanging.connection, hanging.load, lock=True)  # type: ignore[attr-defined] # to hang there
    shop.claim(WHOLE, "worker-2")
    with pytest.raises(LeaseLost):
        hanging.publish(None, 0)


def test_two_projects_with_the_same_ids_in_one_database_do_not_meet(make_shop: MakeShop) -> None:
    dev, prod = make_shop(target_schema="raw_dev"), make_shop(target_schema="raw_prod")
    hers = prod.prepare([order(1)])
    dev.publish([order(1)])
    assert prod.destination.ledger(prod.table) == ()
    entry = hers.publish(None, 0)
    assert prod.destination.ledger(prod.table) == (entry,)
    assert [fence.token for fence in (dev.claim(WHOLE), prod.claim(WHOLE))] == [2, 2]


def test_a_control_schema_of_an_earlier_version_is_brought_up_to_date(make_shop: MakeShop) -> None:
    shop = make_shop()
    with psycopg.connect(connection_settings(shop.url)) as connection, pytest.MonkeyPatch.context() as patch:
        patch.setattr(control_schema, "scripts", lambda scripts=control_schema.scripts: scripts()[:1])
        control_schema.ensure_control_schema(connection)
        connection.execute(
            "INSERT INTO hakiri.fence (pipeline_id, table_name, chunk_key, token, holder, load_id)"
            " VALUES ('shop', 'orders', 'full', 7, 'worker-1', 1)"
        )
    shop.publish([order(1)])
    assert shop.query("SELECT target, chunk_key FROM hakiri.fence") == [("raw.orders", "full")]
    newest = len(control_schema.scripts())
    assert shop.query("SELECT max(version) FROM hakiri.version") == [(newest,)]


def test_a_plan_can_ask_a_ledger_of_an_earlier_version(make_shop: MakeShop) -> None:
    shop = make_shop("append")
    with pytest.MonkeyPatch.context() as patch, psycopg.connect(shop.url) as connection:
        patch.setattr(control_schema, "scripts", lambda scripts=control_schema.scripts: scripts()[:9])
        control_schema.ensure_control_schema(connection)
    assert shop.destination.ledger(shop.table) == ()
    assert shop.query("SELECT max(version) FROM hakiri.version") == [(len(control_schema.scripts()),)]


def test_two_processes_may_create_the_control_schema_at_once(make_shop: MakeShop) -> None:
    shops = [make_shop() for _ in range(6)]
    failures: list[BaseException] = []

    def claim(shop: Shop) -> None:
        try:
            shop.claim(WHOLE)
        except DestinationError as error:
            failures.append(error)

    threads = [threading.Thread(target=claim, args=(shop,)) for shop in shops]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(20)
    assert failures == []
    assert shops[0].query("SELECT token FROM hakiri.fence") == [(6,)]


def test_a_control_schema_of_a_newer_version_is_refused(make_shop: MakeShop) -> None:
    shop = make_shop()
    shop.claim(WHOLE)
    shop.query("INSERT INTO hakiri.version VALUES (99)")
    with pytest.raises(DestinationError, match="newer hakiri"):
        make_shop().claim(WHOLE)


def test_a_target_that_was_dropped_and_made_anew_has_no_published_slices(make_shop: MakeShop) -> None:
    shop = make_shop()
    shop.publish([order(1)])
    shop.query("DROP TABLE raw.orders")
    shop.ensure()
    assert shop.destination.ledger(shop.table) == ()


def test_loads_that_are_asked_for_are_known_after_they_were_replaced_but_not_when_the_target_is_gone(
    make_shop: MakeShop,
) -> None:
    shop = make_shop()
    first, second = shop.publish([order(1)]), shop.publish([order(2)])
    told = shop.destination.ledger(shop.table, [first.load_id, second.load_id, 999])
    assert [(entry.load_id, entry.superseded) for entry in told] == [(second.load_id, False), (first.load_id, True)]
    shop.query("DROP TABLE raw.orders")
    shop.ensure()
    assert shop.destination.ledger(shop.table, [first.load_id, second.load_id]) == ()


@pytest.fixture
def breaks_at_commit(make_shop: MakeShop) -> Iterator[tuple[Shop, list[str]]]:
    """A commit that ends with the backend's death: before the ledger row is durable, or after."""
    shop = make_shop()
    shop.publish([order(1)])
    when: list[str] = []
    original = psycopg.Connection.commit

    def commit(connection: psycopg.Connection[object]) -> None:
        name = connection.execute("SELECT current_setting('application_name')").fetchone()
        if when and isinstance(name, tuple) and str(name[0]).startswith("hakiri:"):
            moment = when.pop()
            if moment == "after":
                original(connection)
            pid = connection.info.backend_pid
            with psycopg.connect(shop.url, autocommit=True) as killer:
                killer.execute("SELECT pg_terminate_backend(%s, 5000)", (pid,))
        original(connection)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(psycopg.Connection, "commit", commit)
        yield shop, when


def test_a_commit_whose_answer_was_lost_counts_if_the_ledger_has_it(
    breaks_at_commit: tuple[Shop, list[str]],
) -> None:
    shop, when = breaks_at_commit
    prepared = shop.prepare([order(1), order(2)])
    when.append("after")
    entry = prepared.publish(None, 0)
    assert entry in shop.destination.ledger(shop.table)
    assert shop.ids() == [1, 2]


def test_a_commit_that_was_lost_is_told_as_unpublished(breaks_at_commit: tuple[Shop, list[str]]) -> None:
    shop, when = breaks_at_commit
    prepared = shop.prepare([order(1), order(2)])
    when.append("before")
    with pytest.raises(DestinationUnavailable, match="nothing was published"):
        prepared.publish(None, 0)
    assert shop.ids() == [1]


def test_a_long_table_name_fits_the_name_of_a_backend(make_shop: MakeShop) -> None:
    shop = make_shop(name="n" * 80, pipeline_id="é" * 80)
    prepared = shop.prepare([order(1)])
    names = shop.query("SELECT application_name FROM pg_stat_activity WHERE application_name LIKE 'hakiri:%'")
    assert len(names) == 1
    assert len(names[0][0]) == 63
    prepared.undo()


def test_the_password_is_in_no_representation(database_url: str) -> None:
    connections = Connections(database_url, label="warehouse")
    password = str(psycopg.conninfo.conninfo_to_dict(database_url)["password"])
    assert password not in connections.where
    assert password not in repr(connections)
