from __future__ import annotations

import pytest

from hakiri_dagster.connectors.rest.api import Patience
from hakiri_dagster.connectors.rest.trying import MayPass, tried
from hakiri_dagster.errors import SourceThrottled, SourceUnavailable


def pauses_of(patience: Patience, *wishes: float | None, share: float = 1.0) -> list[float]:
    waited: list[float] = []
    left = list(wishes)

    def work() -> str:
        if left:
            raise MayPass("no", left.pop(0))
        return "done"

    assert tried(work, patience, pause=waited.append, draw=lambda low, high: low + share * (high - low)) == "done"
    return waited


def test_pauses_double_up_to_the_longest() -> None:
    assert pauses_of(Patience(6, 1, 10), *[None] * 6) == [1, 2, 4, 8, 10, 10]


def test_a_pause_is_drawn_from_nothing_to_its_longest() -> None:
    assert pauses_of(Patience(3, 4), None, None, share=0.0) == [0, 0]
    assert pauses_of(Patience(3, 4), None, None, share=0.25) == [1, 2]


def test_what_the_api_asks_for_is_waited_for_at_least() -> None:
    assert pauses_of(Patience(3, 1), 30.0, 5.0, share=0.0) == [30, 5]
    assert pauses_of(Patience(3, 1), 30.0) == [31]


def test_the_last_failure_is_told_with_the_number_of_tries() -> None:
    def work() -> None:
        raise MayPass("GET x: answered 500")

    for retries, times in ((0, "once"), (2, "3 times")):
        with pytest.raises(SourceUnavailable, match=f"GET x: answered 500; tried {times}"):
            tried(work, Patience(retries, 0), pause=lambda _: None)


@pytest.mark.parametrize("retries", [0, 5])
def test_who_asks_to_be_left_alone_for_longer_than_anybody_waits_is(retries: int) -> None:
    tries = []

    def work() -> None:
        tries.append(1)
        raise MayPass("GET x: answered 429", 86400.0)

    with pytest.raises(SourceThrottled, match="it asks to be left alone for 86400 s"):
        tried(work, Patience(retries, 0), pause=lambda _: None)
    assert len(tries) == 1


def test_years_of_back_off_overflow_nothing() -> None:
    assert max(Patience(5000, 1, 60).pauses()) == 60
