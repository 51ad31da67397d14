from __future__ import annotations

import heapq
from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import count
from typing import Literal

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from hakiri_dagster.manifest.rates import Rate
from hakiri_dagster.planning import rate_window
from hakiri_dagster.planning.rate_window import (
    DOUBT,
    LEASE,
    LONGEST_WAIT,
    SECOND,
    Given,
    RateWindow,
    Wait,
    measured,
    span,
)

Fate = Literal["answered", "no answer", "not sent", "killed before", "killed after", "killed elsewhere"]

RATE = Rate(3, 1)


def asked(window: RateWindow, now: int, holder: str = "a", *, rate: Rate = RATE) -> tuple[RateWindow, Given | Wait]:
    return rate_window.ask(window, rate, now, holder)


def filled(now: int, rate: Rate = RATE) -> RateWindow:
    window = RateWindow()
    for _ in range(rate.count):
        window, given_ = asked(window, now, rate=rate)
        window = rate_window.ended(window, rate, now, given_.number)
    return window


def test_as_many_as_the_rate_says_are_given_at_once_and_then_one_waits_for_the_first_of_them() -> None:
    window, waits = asked(filled(0), SECOND // 4)
    assert waits == Wait(waits.number, span(RATE) - SECOND // 4)
    _, given_ = rate_window.ask(window, RATE, span(RATE), "a", number=waits.number)
    assert given_ == Given(waits.number)


def test_a_request_counts_from_its_permit_until_a_window_after_its_end() -> None:
    one = Rate(1, 1)
    window, first = asked(RateWindow(), 0, rate=one)
    long_after = 50 * SECOND
    window, waits = asked(window, long_after, "b", rate=one)
    assert waits == Wait(waits.number, span(one))  # the soonest that can be: it has not ended yet
    window = rate_window.ended(window, one, long_after, first.number)
    _, still = rate_window.ask(window, one, long_after + span(one) - 1, "b", number=waits.number)
    assert still == Wait(waits.number, 1)


def test_who_waits_is_served_in_turn_and_told_of_a_moment_of_its_own() -> None:
    rate = Rate(2, 1)
    window = RateWindow()
    for now in (0, SECOND // 2):
        window, given_ = asked(window, now, rate=rate)
        window = rate_window.ended(window, rate, now, given_.number)
    told = []
    for holder in "abcde":
        window, answer = asked(window, SECOND * 3 // 4, holder, rate=rate)
        told.append(answer.microseconds if isinstance(answer, Wait) else None)
    first, second = span(rate) - SECOND * 3 // 4, span(rate) - SECOND // 4
    assert told == [first, second, first + span(rate), second + span(rate), first + 2 * span(rate)]


def test_nobody_overtakes_who_waits() -> None:
    window, waits = asked(filled(0), 0, "first")
    window, late = asked(window, span(RATE), "second")
    assert isinstance(late, Given)  # there is room for both
    window, _ = asked(window, span(RATE), "third")
    window, refused = asked(window, span(RATE), "fourth")
    assert isinstance(refused, Wait)
    _, served = rate_window.ask(window, RATE, span(RATE) + SECOND, "first", number=waits.number)
    assert isinstance(served, Given)


def test_a_place_is_kept_no_longer_than_its_holder_may_be_late() -> None:
    one = Rate(1, 1)
    window, _ = asked(filled(0, one), 0, "gone", rate=one)
    window, waits = asked(window, span(one) + rate_window.LATENESS + 1, "b", rate=one)
    assert isinstance(waits, Given)


def test_who_is_dead_neither_waits_nor_holds_a_permit_for_long() -> None:
    one = Rate(1, 1)
    window, _ = asked(RateWindow(), 0, "dead", rate=one)
    window, _ = asked(window, 0, "dead too", rate=one)
    window, waits = rate_window.ask(window, one, SECOND, "b", dead={"dead", "dead too"})
    assert waits.microseconds == LONGEST_WAIT
    window, given_ = rate_window.ask(window, one, SECOND + measured(DOUBT) + span(one), "b", number=waits.number)
    assert given_ == Given(waits.number)


def test_a_permit_of_which_nothing_is_heard_counts_until_its_lease_is_over() -> None:
    one = Rate(1, 1)
    window, _ = asked(RateWindow(), 0, "gone", rate=one)
    assert isinstance(asked(window, LEASE + span(one) - 1, "b", rate=one)[1], Wait)
    assert isinstance(asked(window, LEASE + span(one), "b", rate=one)[1], Given)


def test_a_request_without_an_answer_may_still_arrive() -> None:
    one = Rate(1, 1)
    window, given_ = asked(RateWindow(), 0, rate=one)
    window = rate_window.in_doubt(window, SECOND, given_.number)
    assert isinstance(asked(window, SECOND + measured(DOUBT) + span(one) - 1, rate=one)[1], Wait)
    assert isinstance(asked(window, SECOND + measured(DOUBT) + span(one), rate=one)[1], Given)


def test_a_permit_that_was_not_used_counts_no_more() -> None:
    one = Rate(1, 1)
    window, given_ = asked(RateWindow(), 0, rate=one)
    assert isinstance(asked(rate_window.unused(window, given_.number), 1, rate=one)[1], Given)


def test_a_clock_that_is_put_back_makes_nobody_wait_for_it_to_come_around() -> None:
    hour = 3600 * SECOND
    window, waits = asked(filled(2 * hour), hour)
    assert waits == Wait(waits.number, span(RATE))
    assert isinstance(rate_window.ask(window, RATE, hour + span(RATE), "a", number=waits.number)[1], Given)


def test_a_lowered_rate_counts_what_the_higher_one_let_through() -> None:
    _, waits = asked(filled(0, Rate(10, 1)), 0, rate=RATE)
    assert waits == Wait(waits.number, span(RATE))


def test_what_is_remembered_stays_small() -> None:
    rate = Rate(5000, 60)
    window = RateWindow()
    for moment in range(5000):
        window, given_ = asked(window, moment * 10_000, rate=rate)
        window = rate_window.ended(window, rate, moment * 10_000, given_.number)
    assert len(window.spent) <= 257
    assert window.used == 5000
    for later in range(1, 50 * SECOND, SECOND // 3):  # and nothing is forgotten too early
        still = 5000 - 1 - later // 10_000
        assert still <= rate_window.seen_at(window, rate, span(rate) + later).used <= still + 5000 // 64
    assert rate_window.seen_at(window, rate, span(rate) + 50 * SECOND).used == 0


@dataclass
class Source:
    """Workers that send requests through a window, and a source that counts them by a clock of its own."""

    rate: Rate
    offset: int
    speed: float
    window: RateWindow = field(default_factory=RateWindow)
    arrivals: list[int] = field(default_factory=list)
    served: dict[str, int] = field(default_factory=dict)
    _events: list[tuple[int, int, Callable[[int], None]]] = field(default_factory=list)
    _ties: count[int] = field(default_factory=count)
    _dead: set[str] = field(default_factory=set)

    def at(self, moment: int, event: Callable[[int], None]) -> None:
        heapq.heappush(self._events, (moment, next(self._ties), event))

    def run(self) -> None:
        while self._events:
            moment, _, event = heapq.heappop(self._events)
            event(moment)

    def clock(self, moment: int) -> int:
        """The audit DB's."""
        return self.offset + round(moment * self.speed)

    def send(self, holder: str, delays: tuple[int, int, int], fate: Fate) -> Callable[[int], None]:
        def ask(moment: int, number: int | None = None) -> None:
            self.window, answer = rate_window.ask(
                self.window, self.rate, self.clock(moment), holder, number=number, dead=self._dead
            )
            if isinstance(answer, Wait):
                self.at(moment + answer.microseconds + 1, lambda later: ask(later, answer.number))
            else:
                self.served[holder] = self.served.get(holder, 0) + 1
                self._go_on(moment, holder, answer.number, delays, fate)

        return ask

    def _go_on(self, moment: int, holder: str, number: int, delays: tuple[int, int, int], fate: Fate) -> None:
        on_its_way, answering, telling = delays
        arrival = moment + on_its_way
        if fate in ("not sent", "killed before"):
            self.at(arrival, lambda m: self._heard(m, holder, number, fate))
            return
        self.at(arrival, self.arrivals.append)
        if fate in ("killed after", "no answer"):  # the request is still under way
            self.at(max(arrival - DOUBT + 1, moment), lambda m: self._heard(m, holder, number, fate))
        elif fate == "answered":
            self.at(arrival + answering + telling, lambda m: self._heard(m, holder, number, fate))

    def _heard(self, moment: int, holder: str, number: int, fate: Fate) -> None:
        now = self.clock(moment)
        match fate:
            case "answered":
                self.window = rate_window.ended(self.window, self.rate, now, number)
            case "no answer":
                self.window = rate_window.in_doubt(self.window, now, number)
            case "not sent":
                self.window = rate_window.unused(self.window, number)
            case "killed before" | "killed after":
                self._dead.add(holder)
            case "killed elsewhere":
                pass

    def most_in_a_window(self) -> int:
        times, width = sorted(self.arrivals), self.rate.seconds * SECOND
        first, most = 0, 0
        for last, moment in enumerate(times):
            while moment - times[first] > width:
                first += 1
            most = max(most, last - first + 1)
        return most


DELAYS = st.one_of(st.integers(0, SECOND // 10), st.integers(0, 30 * SECOND), st.integers(0, LEASE // 4))
FATES = st.sampled_from(
    ["answered"] * 6 + ["no answer", "not sent", "killed before", "killed after", "killed elsewhere"]
)
REQUESTS = st.lists(
    st.tuples(st.integers(0, 20 * SECOND), st.tuples(DELAYS, DELAYS, DELAYS), FATES), min_size=1, max_size=60
)


@example(1, 1, -SECOND, [(0, (60_015_002, 0, 0), "no answer"), (0, (0, 0, 0), "answered")])
@given(st.integers(1, 7), st.sampled_from([1, 2, 60]), st.sampled_from([-SECOND, 0, 10**15]), REQUESTS)
def test_no_source_ever_sees_more_than_the_rate_in_any_window(
    limit: int, seconds: int, offset: int, requests: list[tuple[int, tuple[int, int, int], Fate]]
) -> None:
    for speed in (0.9975, 1.0, 1.0025):
        source = Source(Rate(limit, seconds), offset, speed)
        for index, (moment, delays, fate) in enumerate(requests):
            source.at(moment, source.send(f"worker {index}", delays, fate))
        source.run()
        assert source.most_in_a_window() <= limit
        assert len(source.served) == len(requests)  # and everybody comes to their turn


@given(st.integers(1, 5), st.lists(st.integers(0, SECOND), min_size=2, max_size=40))
def test_whoever_comes_first_is_served_first(limit: int, moments: list[int]) -> None:
    source = Source(Rate(limit, 1), 0, 1.0)
    moments = sorted(moments)
    for index, moment in enumerate(moments):
        source.at(moment, source.send(f"worker {index}", (0, 0, 0), "answered"))
    source.run()
    assert list(source.served) == [f"worker {index}" for index in range(len(moments))]


@pytest.mark.parametrize("fate", ["killed before", "killed elsewhere", "no answer"])
def test_what_is_lost_comes_back(fate: Fate) -> None:
    source = Source(Rate(2, 1), 0, 1.0)
    for index in range(10):
        source.at(index, source.send(f"worker {index}", (0, 0, 0), fate))
    source.run()
    assert len(source.served) == 10


def test_a_clock_that_runs_fast_lets_no_more_through() -> None:
    source = Source(Rate(3, 60), 0, 1.0025)
    for index in range(30):
        source.at(index, source.send(f"worker {index}", (0, 0, 0), "answered"))
    source.run()
    assert source.most_in_a_window() == 3
