from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from hakiri_dagster.audit import pass_places
from hakiri_dagster.audit.database import AuditDb
from hakiri_dagster.audit.pass_places import PassOf, PassPlaceStore, Turn
from tests.integration.audit.conftest import OpenAudit

WORKERS = 8


def of(pipeline: str = "shop", holder: str = "worker-1", *, parallelism: int = 1, most: int | None = None) -> PassOf:
    return PassOf(pipeline, "orders", holder, parallelism, most)


def ask(
    store: PassPlaceStore, asks: PassOf, number: int | None = None, *, dead: str = "", ttl_seconds: float = 600
) -> Turn:
    return store.ask(asks, lambda holder: holder == dead, number=number, ttl_seconds=ttl_seconds)


def test_who_waits_begins_when_another_one_has_ended(audit: AuditDb) -> None:
    store = audit.pass_places
    first, second = ask(store, of()), ask(store, of(holder="worker-2"))
    assert (first.begins, second.begins) == (True, False)
    assert ask(store, of(holder="worker-2"), second.number) == Turn(second.number, begins=False)
    store.give_back(first.number)
    assert ask(store, of(holder="worker-2"), second.number) == Turn(second.number, begins=True)


def test_another_pipeline_does_not_wait_unless_all_have_too_many(audit: AuditDb) -> None:
    store = audit.pass_places
    assert ask(store, of(most=2)).begins
    assert not ask(store, of(most=2)).begins
    assert ask(store, of("other", most=2)).begins
    assert not ask(store, of("third", most=2)).begins


def test_the_dead_lose_their_place_at_once(audit: AuditDb) -> None:
    store = audit.pass_places
    ask(store, of(holder="dead"))
    ask(store, of(holder="dead"))
    assert not ask(store, of(holder="worker-2")).begins
    assert ask(store, of(holder="worker-3"), dead="dead").begins is False  # behind worker-2
    assert ask(store, of(holder="worker-2", parallelism=1), 3, dead="dead").begins


def test_a_lease_that_has_ended_keeps_no_place(audit: AuditDb, monkeypatch: pytest.MonkeyPatch) -> None:
    store = audit.pass_places
    first = ask(store, of(), ttl_seconds=0)
    monkeypatch.setattr(pass_places, "_WAITS_SECONDS", 0)
    second = ask(store, of(holder="worker-2"))
    monkeypatch.undo()
    assert not second.begins
    third = ask(store, of(holder="worker-3"))
    assert third.begins
    store.heartbeat(of(), first.number, 600)  # it is still at work, and counts again
    assert not ask(store, of("other", most=2)).begins
    store.give_back(third.number)
    assert not ask(store, of(holder="worker-4")).begins


def test_a_place_in_the_queue_is_found_again(audit: AuditDb) -> None:
    store = audit.pass_places
    first = ask(store, of())
    second = ask(store, of(holder="worker-2"))
    store.give_back(second.number)  # as if its lease had ended
    third = ask(store, of(holder="worker-3"))
    assert ask(store, of(holder="worker-2"), second.number) == Turn(second.number, begins=False)
    store.give_back(first.number)
    assert not ask(store, of(holder="worker-3"), third.number).begins
    assert ask(store, of(holder="worker-2"), second.number).begins


def test_never_are_more_at_work_than_may_be(open_again: OpenAudit) -> None:
    """All ask at once, again and again."""
    stores = [open_again().pass_places for _ in range(WORKERS)]
    at_once = threading.Barrier(WORKERS)
    begun: list[list[int]] = [[] for _ in range(10)]

    def work(number: int) -> None:
        for numbers in begun:
            at_once.wait()
            turn = ask(stores[number], of(f"pipeline {number % 3}", f"worker-{number}", parallelism=2, most=3))
            if turn.begins:
                numbers.append(number)
            at_once.wait()
            stores[number].give_back(turn.number)

    with ThreadPoolExecutor(WORKERS) as threads:
        for ended in [threads.submit(work, number) for number in range(WORKERS)]:
            ended.result()
    assert [len(numbers) for numbers in begun] == [3] * len(begun)
