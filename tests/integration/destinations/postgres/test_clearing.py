"""A load that leaves nobody else's rows in the target, beside open loads of others."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor, wait

import pytest

from hakiri_dagster.destinations.postgres.modes.registry import MODES
from hakiri_dagster.manifest.load_spec import LoadMode
from tests.integration.destinations.postgres.conftest import MakeShop
from tests.integration.destinations.postgres.scenario import Shop, order, window

clearing = pytest.mark.parametrize("mode", sorted(name for name, mode in MODES.items() if mode.clears_target))


def live_chunks(shop: Shop) -> set[str]:
    return {entry.chunk_key for entry in shop.destination.ledger(shop.table) if not entry.superseded}


@clearing
def test_rows_published_while_it_waits_for_the_target_are_gone_in_the_ledger_too(
    make_shop: MakeShop, mode: LoadMode
) -> None:
    shop, other = make_shop(mode), make_shop("append", pipeline_id="other")
    shop.publish([order(1)])
    theirs = other.prepare([order(50, updated_at=5)], window(0, 10))
    with ThreadPoolExecutor() as thread:
        ours = thread.submit(shop.publish, [order(2)])
        wait([ours], timeout=0.7)
        theirs.publish(5, 0)
        ours.result(30)
    assert (shop.ids(), live_chunks(shop), live_chunks(other)) == ([2], {"full"}, set())


@clearing
def test_rows_published_after_it_are_there_in_the_ledger_too(make_shop: MakeShop, mode: LoadMode) -> None:
    shop, other = make_shop(mode), make_shop("append", pipeline_id="other")
    shop.publish([order(1)])
    ours = shop.prepare([order(2)])
    with ThreadPoolExecutor() as thread:
        theirs = thread.submit(other.publish, [order(50, updated_at=5)], window(0, 10))
        wait([theirs], timeout=0.7)
        ours.publish(None, 0)
        theirs.result(30)
    kept = [50] if live_chunks(other) else []
    assert shop.ids() == [2, *kept]
    assert live_chunks(shop) == {"full"}


@clearing
def test_a_target_whose_name_reads_the_same_with_a_dot_elsewhere_is_another_one(
    make_shop: MakeShop, mode: LoadMode
) -> None:
    shop = make_shop(mode, target_schema="raw", target_name="eu.orders")
    other = make_shop("append", pipeline_id="other", target_schema="raw.eu", target_name="orders")
    other.publish([order(50, updated_at=5)], window(0, 10))
    shop.publish([order(1)])
    assert live_chunks(other) == {"0..10"}
