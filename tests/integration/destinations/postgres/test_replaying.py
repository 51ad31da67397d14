"""The destination's half of a replay: rows are in the quarantine or in the target, and in one of them only, whenever
the worker is killed and whoever else is at work."""

from __future__ import annotations

import json
import signal
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import pytest

from hakiri_dagster.destinations.contract import BadRow, LedgerEntry
from hakiri_dagster.destinations.quarantine_contract import KeptChoice, Replay, Verdict
from hakiri_dagster.errors import DestinationUnavailable, LeaseLost
from hakiri_dagster.manifest.load_spec import LoadMode
from hakiri_dagster.manifest.tables import Table
from tests.integration.destinations.postgres.conftest import MakeShop
from tests.integration.destinations.postgres.killing_proxy import KillingProxy
from tests.integration.destinations.postgres.scenario import Shop, order, wait_until_nobody_is_at_work, window
from tests.integration.destinations.postgres.workers import WORKERS

WINDOW = window(0, 20, "chunk")
PLACE = "hakiri.quarantine_shop_orders"
KEPT = f'SELECT ("row"->>\'id\')::int, "ruleId", "onFail" FROM {PLACE} ORDER BY 1, 3'
IN_ORDER: dict[str, Any] = {"load": {"watermark_column": "updated_at"}}


@dataclass
class Told:
    """Rows 2 and 4 pass, with a warning of 4; 3 does not; 5 was read again."""

    ids: dict[int, int]

    def tried(self) -> Iterator[int]:
        return iter(self.ids.values())

    def told(self) -> Iterator[Verdict]:
        if 3 in self.ids:
            yield Verdict(self.ids[3], "new_rule", "it is still\0 bad", "skip")
        if 4 in self.ids:
            yield Verdict(self.ids[4], "warning", "loaded all the same", "warn")

    def overtaken(self) -> Iterator[int]:
        return iter([self.ids[5]] if 5 in self.ids else [])


def set_aside(shop: Shop) -> None:
    load = shop.load(WINDOW)
    rows = (BadRow("old_rule", "bad", json.dumps({"id": n, "updated_at": 5}), None) for n in (2, 3, 4, 5))
    shop.destination.quarantine(load, rows)
    candidate = shop.candidate(load, [order(1, updated_at=1)])
    shop.destination.prepare(load, candidate).publish(candidate.cursor_max, 0)


def replay(shop: Shop) -> LedgerEntry | None:
    beside = frozenset(one.load_id for one in shop.destination.live_loads(shop.table, WINDOW.bounds))
    loads = [k.load_id for k in shop.destination.kept_by_load(shop.table, KeptChoice()) if k.load_id]
    ids = {json.loads(one.row)["id"]: one.id for one in shop.destination.kept_lines(shop.table, KeptChoice(), loads)}
    load = shop.load(WINDOW)
    load = replace(load, replay=Replay(beside, beside))
    passing = {n: ids[n] for n in (2, 4) if n in ids}
    if not passing:
        shop.destination.note_verdicts(load, Told(ids), ())
        return None
    candidate = shop.candidate(load, [order(n, updated_at=5) for n in passing], kept_ids=list(passing.values()))
    return shop.destination.prepare_replay(load, candidate, Told(ids)).publish(None, candidate.bytes)


def replayed_elsewhere(url: str, table: Table) -> None:
    shop = Shop(url, table)
    replay(shop)
    shop.close()


def killed_at(shop: Shop, statement: int) -> str | None:
    with KillingProxy(shop.url, statement) as proxy:
        worker = WORKERS.Process(target=replayed_elsewhere, args=(proxy.proxied_url, shop.table))
        worker.start()
        assert worker.pid is not None
        proxy.kill(worker.pid)
        worker.join()
        assert worker.exitcode == (0 if proxy.killed_at is None else -signal.SIGKILL)
        wait_until_nobody_is_at_work(shop)  # what it was killed at has reached the server, which may still be at it
        return proxy.killed_at


def replayed_after_a_kill(shop: Shop) -> None:
    for tries_left in (2, 1, 0):
        try:
            replay(shop)
        except DestinationUnavailable:
            if not tries_left:
                raise
        else:
            return


BEFORE = [(2, "old_rule", "skip"), (3, "old_rule", "skip"), (4, "old_rule", "skip"), (5, "old_rule", "skip")]
AFTER = [(3, "new_rule", "skip"), (4, "warning", "warn")]


@pytest.mark.parametrize("mode", ["upsert", "incremental_watermark"])
def test_a_replay_that_is_killed_at_any_statement_is_made_good_by_the_next(make_shop: MakeShop, mode: LoadMode) -> None:
    shop = make_shop(mode, **(IN_ORDER if mode == "incremental_watermark" else {}))
    statement = 1
    while True:
        set_aside(shop)
        if mode == "upsert":
            shop.query("DELETE FROM raw.orders WHERE id > 1")
        mark = shop.destination.mark(shop.table)
        if (place := killed_at(shop, statement)) is None:
            break
        assert (shop.ids(), shop.query(KEPT)) in (([1], BEFORE), ([1, 2, 4], AFTER)), place
        replayed_after_a_kill(shop)
        assert (shop.ids(), shop.query(KEPT)) == ([1, 2, 4], AFTER), place
        assert shop.destination.mark(shop.table) == mark, place
        (entry,) = shop.destination.ledger(shop.table)
        assert (entry.rows, entry.cursor_committed) == (1, 1), place  # the chunk is what it was
        statement += 1
    assert statement > 10


def test_a_load_of_the_chunk_that_comes_in_between_stops_the_replay(make_shop: MakeShop) -> None:
    shop = make_shop()
    set_aside(shop)
    beside = frozenset(one.load_id for one in shop.destination.live_loads(shop.table, WINDOW.bounds))
    other = window(0, 10, "another cut")
    shop.publish([order(7, updated_at=3)], other)
    load = shop.load(WINDOW)
    load = replace(load, replay=Replay(beside, beside))
    prepared = shop.destination.prepare_replay(load, shop.candidate(load, []), Told({}))
    with pytest.raises(DestinationUnavailable, match="a slice that overlaps this one was published meanwhile"):
        prepared.publish(None, 0)


def test_a_replay_that_comes_in_between_is_replaced_by_the_load_that_is_tried_again(make_shop: MakeShop) -> None:
    shop = make_shop()
    set_aside(shop)
    other = window(0, 20, "another cut")
    load = shop.load(other)
    prepared = shop.destination.prepare(load, shop.candidate(load, [order(2, updated_at=5)]))
    assert replay(shop) is not None
    with pytest.raises(DestinationUnavailable, match="published meanwhile"):
        prepared.publish(5, 0)
    shop.publish([order(2, updated_at=5)], other)
    assert shop.ids() == [2]


def test_rows_that_somebody_else_took_meanwhile_are_not_loaded(make_shop: MakeShop) -> None:
    shop = make_shop()
    set_aside(shop)
    beside = frozenset(one.load_id for one in shop.destination.live_loads(shop.table, WINDOW.bounds))
    load = shop.load(WINDOW)
    load = replace(load, replay=Replay(beside, beside))
    with pytest.raises(DestinationUnavailable, match="to be loaded, and 0 of them are still there"):
        shop.destination.prepare_replay(load, shop.candidate(load, [order(2)], kept_ids=[999]), Told({2: 999}))
    assert (shop.ids(), shop.query(KEPT)) == ([1], BEFORE)


def test_a_later_claim_of_the_chunk_leaves_the_replay_nothing_to_publish(make_shop: MakeShop) -> None:
    shop = make_shop()
    set_aside(shop)
    load = shop.load(WINDOW)
    shop.claim(WINDOW, "worker-2")
    load = replace(load, replay=Replay(frozenset(), frozenset()))
    with pytest.raises(LeaseLost):
        shop.destination.prepare_replay(load, shop.candidate(load, [order(2)], kept_ids=[2]), Told({}))
