"""When the next request may be sent, so that in no window of its rate does the source see more than the rate allows.

A permit counts from the moment it is given until one window after its request has ended, for by then it has reached the
source. So nothing needs to be known of networks. Whoever waits has a place in a queue, and is told when to ask again.
All moments are microseconds of one clock, that of the audit DB.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, replace
from itertools import groupby
from typing import Final

from hakiri_dagster.manifest.rates import Rate

SECOND: Final = 1_000_000
LEASE: Final = 600 * SECOND
"""A request of which nothing was heard for so long is taken to have ended: its worker is gone, on another host."""
DOUBT: Final = 60 * SECOND
"""A request that ended without an answer, or with its worker, may reach the source so much later."""
LONGEST_WAIT: Final = 60 * SECOND
"""Whoever waits shows that often that it is still there."""
LATENESS: Final = 5 * SECOND
"""So long a place in the queue is kept for somebody who does not ask again when told to."""

_CLOCKS_DIFFER: Final = 200
"""Clocks of a source and of an audit DB may run apart by one part in so many."""
_CLOCK_STEP: Final = 10_000
_MOST_MOMENTS: Final = 256


@dataclass(frozen=True, slots=True)
class Held:
    """A permit, until it is known to be used up. `until`: no later does its request reach the source. Without a holder
    nothing more will be heard of it."""

    number: int
    holder: str
    until: int


@dataclass(frozen=True, slots=True)
class Waiter:
    """Somebody who waits, in the order of the numbers; forgotten after `until`."""

    number: int
    holder: str
    until: int


@dataclass(frozen=True, slots=True)
class RateWindow:
    """`spent`: by what moment how many requests had reached the source, in the order of time."""

    spent: tuple[tuple[int, int], ...] = ()
    held: tuple[Held, ...] = ()
    queue: tuple[Waiter, ...] = ()
    next_number: int = 1

    @property
    def used(self) -> int:
        return sum(count for _, count in self.spent) + len(self.held)

    @property
    def holders(self) -> frozenset[str]:
        return frozenset({*(one.holder for one in self.held), *(one.holder for one in self.queue)} - {""})


@dataclass(frozen=True, slots=True)
class Given:
    number: int


@dataclass(frozen=True, slots=True)
class Wait:
    """To be asked again under this number, so many microseconds later. `freed_in`: when, at the soonest, a permit is
    given."""

    number: int
    freed_in: int

    @property
    def microseconds(self) -> int:
        return min(self.freed_in, LONGEST_WAIT)


def measured(microseconds: int) -> int:
    """By the audit DB's clock: a little longer, for clocks never run quite alike."""
    return microseconds + microseconds // _CLOCKS_DIFFER + _CLOCK_STEP


def span(rate: Rate) -> int:
    return measured(rate.seconds * SECOND)


def ask(
    window: RateWindow, rate: Rate, now: int, holder: str, *, number: int | None = None, dead: Collection[str] = ()
) -> tuple[RateWindow, Given | Wait]:
    """`number`: of the wait that is over. `dead`: holders that are known to have ended."""
    window = seen_at(window, rate, now, dead)
    if number is None:
        number, window = window.next_number, replace(window, next_number=window.next_number + 1)
    others = tuple(one for one in window.queue if one.number != number)
    before = sum(one.number < number for one in others)
    short = window.used + before + 1 - rate.count
    if short <= 0:
        held = (*window.held, Held(number, holder, now + LEASE))
        return replace(window, held=held, queue=others), Given(number)
    wait = Wait(number, max(_freed(window, rate, now, short) - now, 1))
    waiter = Waiter(number, holder, now + wait.microseconds + LATENESS)
    queue = sorted((*others, waiter), key=lambda one: one.number)
    return replace(window, queue=tuple(queue)), wait


def ended(window: RateWindow, rate: Rate, now: int, number: int) -> RateWindow:
    """The source has answered the request, so it had reached it by now."""
    return replace(_without(window, number), spent=_in_order([*window.spent, (now, 1)], rate))


def in_doubt(window: RateWindow, now: int, number: int) -> RateWindow:
    """The request ended without an answer."""
    rest = _without(window, number)
    return replace(rest, held=(*rest.held, Held(number, "", now + measured(DOUBT))))


def unused(window: RateWindow, number: int) -> RateWindow:
    """No request was sent, nor will be."""
    return _without(window, number)


def gone(window: RateWindow, number: int) -> RateWindow:
    """It waits no more."""
    return replace(window, queue=tuple(one for one in window.queue if one.number != number))


def seen_at(window: RateWindow, rate: Rate, now: int, dead: Collection[str] = ()) -> RateWindow:
    """What still counts. Where the clock was put back, what it says of later than now was before it."""
    held = tuple(_judged(one, now, dead) for one in window.held)
    over = ((one.until, 1) for one in held if one.until <= now)
    spent = ((min(moment, now), count) for moment, count in window.spent)
    since = now - span(rate)
    return replace(
        window,
        spent=_in_order((one for one in (*spent, *over) if one[0] > since), rate),
        held=tuple(one for one in held if one.until > now),
        queue=tuple(one for one in window.queue if one.holder not in dead and now < one.until <= _latest_return(now)),
    )


def _judged(one: Held, now: int, dead: Collection[str]) -> Held:
    if one.holder in dead or not one.holder:
        return Held(one.number, "", min(one.until, now + measured(DOUBT)))
    return replace(one, until=min(one.until, now + LEASE))


def _latest_return(now: int) -> int:
    return now + LONGEST_WAIT + LATENESS


def _freed(window: RateWindow, rate: Rate, now: int, short: int) -> int:
    """When, at the soonest, so many more requests are allowed. What has not ended yet counts a window from now, and so
    does what is not used yet, for those who come before."""
    places = max(rate.count, window.used)  # a rate that was lowered leaves more in use than it allows
    rounds, left = divmod(short - 1, places)
    under_way = [(now if one.holder else one.until, 1) for one in window.held]
    for moment, count in sorted([*window.spent, *under_way, (now, places - window.used)]):
        left -= count
        if left < 0:
            return moment + span(rate) * (rounds + 1)
    return now + span(rate) * (rounds + 1)


def _without(window: RateWindow, number: int) -> RateWindow:
    return replace(window, held=tuple(one for one in window.held if one.number != number))


def _in_order(moments: Iterable[tuple[int, int]], rate: Rate) -> tuple[tuple[int, int], ...]:
    ordered = sorted(moments)
    return tuple(ordered if len(ordered) <= _MOST_MOMENTS else _merged(ordered, span(rate)))


def _merged(moments: list[tuple[int, int]], window: int) -> Iterator[tuple[int, int]]:
    """Moments that lie close together become one, the latest: they count a little longer."""
    step = 2 * window // _MOST_MOMENTS
    for _, group in groupby(moments, key=lambda one: one[0] // step):
        together = list(group)
        yield together[-1][0], sum(count for _, count in together)
