"""Up to where a cursor is complete, by the transactions that were open when it was read."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass, field, replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hakiri_dagster.planning.horizon import (
    DEFAULT_LOOKBACK,
    DEFAULT_LOOKBACK_IDS,
    EARLIEST_STAMP,
    MARGIN,
    CursorHistory,
    Horizon,
    OpenTransaction,
    SourceTransactions,
    UnknownHorizon,
    judge_horizon,
    may_be_awaited,
)
from hakiri_dagster.planning.windows import DAY, HOUR, MINUTE

NOW = 1_800_000_000_000_000
UNKNOWN = UnknownHorizon("hidden", "GRANT")


def session(pid: int, began_at: int = NOW - MINUTE) -> OpenTransaction:
    return OpenTransaction(f"{pid}", began_at, pid, user="app")


def prepared(gid: str, began_at: int = NOW - MINUTE) -> OpenTransaction:
    return OpenTransaction(f"prepared/{gid}", began_at, user="app", prepared=gid)


def at(clock: int, *open_: OpenTransaction, unknown: UnknownHorizon | None = None) -> SourceTransactions:
    return SourceTransactions(clock, "db", open_, unknown)


def judge(before: Horizon | None, transactions: SourceTransactions, upper: int, kind: str = "numeric") -> Horizon:
    history = CursorHistory() if before is None else before.history
    return judge_horizon(history, transactions, upper, kind, saved_now=transactions.clock)  # type: ignore[arg-type]


def test_without_an_open_transaction_all_that_was_seen_is_complete() -> None:
    assert judge(None, at(NOW), 100).safe == 100


def test_what_was_seen_beside_an_open_transaction_is_complete_once_that_has_ended() -> None:
    first = judge(None, at(NOW, session(1)), 100)
    assert first.safe is None, "of a number nothing tells how far it was when the transaction began"
    second = judge(first, at(NOW + 2 * MINUTE, session(1), session(2, NOW + MINUTE)), 200)
    assert second.safe is None
    third = judge(second, at(NOW + 3 * MINUTE, session(2, NOW + MINUTE)), 300)
    assert third.safe == 100
    fourth = judge(third, at(NOW + 5 * MINUTE, session(3, NOW + 4 * MINUTE)), 400)
    assert fourth.safe == 300
    assert judge(fourth, at(NOW + 6 * MINUTE), 500).safe == 500


def test_a_backend_that_is_used_again_is_another_transaction() -> None:
    first = judge(None, at(NOW, session(1)), 100)
    again = replace(session(1, NOW + MINUTE), key="1 again")
    assert judge(first, at(NOW + 2 * MINUTE, again), 200).safe == 100


def test_one_that_says_it_began_before_a_survey_that_did_not_list_it_counts_as_open_then() -> None:
    """`COMMIT AND CHAIN`: the next transaction has the time at which the commit was asked for."""
    first = judge(None, at(NOW), 100)
    assert judge(first, at(NOW + MINUTE, session(1, NOW - 1)), 200).safe is None
    assert judge(first, at(NOW + MINUTE, session(1, NOW + 30_000_000)), 200).safe == 100


def test_a_time_is_observed_with_a_margin() -> None:
    """A transaction has taken its time a moment before it is listed, and may have ended at the next survey."""
    first = judge(None, at(NOW), NOW - 5, "timestamp")
    assert judge(first, at(NOW + HOUR, session(1, NOW + MINUTE)), NOW + HOUR, "timestamp").safe == NOW - MARGIN
    local = NOW - 5 * HOUR - 5
    first = judge_horizon(CursorHistory(), at(NOW), local, "timestamp", zoned=False)
    second = judge_horizon(first.history, at(NOW + HOUR, session(1, NOW + MINUTE)), local, "timestamp", zoned=False)
    assert second.safe == local - MARGIN


def test_a_time_is_complete_up_to_an_hour_before_the_oldest_transaction_where_nothing_was_seen_before() -> None:
    oldest = session(1, NOW - 3 * HOUR)
    assert judge(None, at(NOW, oldest, session(2)), NOW - 1, "timestamp").safe == NOW - 3 * HOUR - EARLIEST_STAMP
    waiting = prepared("x", NOW - 3 * HOUR)
    expected = NOW - 3 * HOUR - DEFAULT_LOOKBACK - EARLIEST_STAMP
    assert judge(None, at(NOW, waiting), NOW - 1, "timestamp").safe == expected


def test_a_time_of_the_last_second_is_not_complete_yet() -> None:
    """The server lists a transaction a moment after it has taken its time."""
    assert judge(None, at(NOW), NOW - 10, "timestamp").safe == NOW - MARGIN
    assert judge(None, at(NOW), NOW - HOUR, "timestamp").safe == NOW - HOUR


def test_a_transaction_that_is_prepared_after_it_was_seen_is_still_open() -> None:
    first = judge(None, at(NOW, session(1), session(2)), 100)
    second = judge(first, at(NOW + MINUTE, session(2), prepared("a", NOW + 1)), 200)
    third = judge(second, at(NOW + 2 * MINUTE, prepared("a", NOW + 1)), 300)
    assert third.safe is None
    later = (session(4, NOW + 3 * MINUTE), prepared("b", NOW + 3 * MINUTE))
    fourth = judge(third, at(NOW + 4 * MINUTE, *later), 400)
    assert fourth.safe == 300, "what is prepared now began after the third survey"


def test_of_what_was_prepared_before_the_first_survey_nobody_knows_when_it_began() -> None:
    waiting = prepared("x", NOW - HOUR)
    first = judge(None, at(NOW, waiting), NOW - 1, "timestamp")
    assert first.unknown is not None
    assert "prepared transaction 'x' of app was prepared before the first survey" in first.unknown.reason
    assert judge(None, at(NOW, waiting), 100).unknown is None, "of a number all is read again"
    seen = judge(judge(None, at(NOW - 2 * HOUR), NOW - 2 * HOUR, "timestamp"), at(NOW, waiting), NOW, "timestamp")
    assert seen.unknown is None


def test_where_open_transactions_cannot_be_listed_they_are_taken_to_last_some_minutes() -> None:
    first = judge(None, at(NOW, unknown=UNKNOWN), 100_000)
    assert first.safe == 100_000 - DEFAULT_LOOKBACK_IDS
    second = judge(first, at(NOW + DEFAULT_LOOKBACK - 1, unknown=UNKNOWN), 200_000)
    assert second.safe == 200_000 - DEFAULT_LOOKBACK_IDS
    assert judge(second, at(NOW + DEFAULT_LOOKBACK + 1, unknown=UNKNOWN), 300_000).safe == 100_000
    time = judge(None, at(NOW, unknown=UNKNOWN), NOW - 1, "timestamp")
    assert time.safe == NOW - DEFAULT_LOOKBACK


def test_what_was_seen_without_the_list_is_not_made_exact_by_a_later_list() -> None:
    first = judge(None, at(NOW, unknown=UNKNOWN), 100)
    young, old = session(9, NOW + MINUTE), session(8, NOW - HOUR)
    assert judge(first, at(NOW + MINUTE, young), 200).safe is None
    assert judge(first, at(NOW + DEFAULT_LOOKBACK + 1, young), 200).safe == 100
    assert judge(first, at(NOW + DEFAULT_LOOKBACK + 1, young, old), 200).safe is None, "it is known to be older"


def test_a_declared_lag_takes_the_place_of_the_default() -> None:
    horizon = judge_horizon(CursorHistory(), at(NOW, unknown=UNKNOWN), 100, "numeric", trusts_lag=True)
    assert horizon.safe == 100
    reread = horizon.reread(100, 30)
    assert reread is not None
    assert reread.lower == 70


def test_another_database_begins_a_history_of_its_own() -> None:
    first = judge(None, at(NOW, session(1)), 100)
    moved = dataclasses.replace(at(NOW + 1, session(5)), place="elsewhere")
    assert judge(first, moved, 200).safe is None


def test_a_clock_that_went_back_takes_back_what_may_come_there_again() -> None:
    first = judge(None, at(NOW), NOW - HOUR, "timestamp")
    later = judge_horizon(first.history, at(NOW - HOUR), NOW - HOUR, "timestamp", saved_now=NOW + 5 * MINUTE)
    assert later.clock_went_back_to == NOW - HOUR - 6 * MINUTE
    assert later.safe == NOW - HOUR - MARGIN
    again = judge_horizon(later.history, at(NOW - HOUR + 1), NOW - HOUR, "timestamp", saved_now=NOW + 5 * MINUTE + 1)
    assert again.clock_went_back_to == later.clock_went_back_to, "until it is stored what follows from it"
    replica = dataclasses.replace(at(NOW - HOUR), is_replica=True)
    assert judge(first, replica, 100, "timestamp").clock_went_back_to is None, "replicas are behind each other"


def test_a_clock_that_went_back_says_nothing_of_numbers() -> None:
    first = judge(None, at(NOW), 100)
    later = at(NOW - HOUR, session(1, NOW - HOUR - MARGIN))
    second = judge_horizon(first.history, later, 200, "numeric", saved_now=NOW + MINUTE)
    assert (second.safe, second.clock_went_back_to) == (None, None), "it may have begun before the first survey"
    third = at(NOW - HOUR + MINUTE, session(2, NOW - HOUR + 2 * MARGIN))
    assert judge_horizon(second.history, third, 300, "numeric", saved_now=NOW + 2 * MINUTE).safe == 200


def test_a_clock_that_went_back_is_noticed_after_it_has_caught_up() -> None:
    """Ours tells for how long it has run since."""
    first = judge(None, at(NOW), NOW - HOUR, "timestamp")
    later = judge_horizon(first.history, at(NOW + HOUR), NOW + HOUR, "timestamp", saved_now=NOW + 2 * HOUR)
    assert later.clock_went_back_to == NOW - HOUR - MINUTE
    drifted = judge_horizon(first.history, at(NOW + DAY), NOW, "timestamp", saved_now=NOW + DAY + 10 * MARGIN)
    assert drifted.clock_went_back_to is None


def test_a_day_is_complete_when_it_is_over_everywhere() -> None:
    midnight = NOW // DAY * DAY
    afternoon, morning = midnight + 13 * HOUR, midnight + 11 * HOUR
    assert judge(None, at(afternoon), midnight, "date").safe == midnight
    assert judge(None, at(morning), midnight, "date").safe == midnight - DAY
    assert judge(None, at(afternoon, unknown=UNKNOWN), midnight, "date").safe == midnight
    assert judge(None, at(midnight + MINUTE, session(1, midnight)), midnight, "date").safe == midnight - DAY


def test_a_local_time_may_be_shown_twice_in_autumn() -> None:
    """2026-11-01, 06:00 UTC: clocks in New York go back from 2:00 to 1:00."""
    back = 1_793_512_800_000_000

    def local(first_at: int, upper: int, now: int) -> int | None:
        first = judge_horizon(CursorHistory(), at(first_at), upper, "timestamp", zoned=False)
        later = at(now, session(1, now - MINUTE))
        return judge_horizon(first.history, later, upper + MINUTE, "timestamp", zoned=False).safe

    for upper in (back - 4 * HOUR - MINUTE, back - 4 * HOUR + MINUTE):
        safe = upper - MARGIN
        assert local(back - MINUTE, upper, back + 30 * MINUTE) == safe - HOUR
        assert local(back + 30 * MINUTE, upper, back + 60 * MINUTE) == safe - HOUR
    assert local(back + 30 * DAY, 5, back + 30 * DAY + HOUR) == 5 - MARGIN
    zoned = judge(
        judge(None, at(back - MINUTE), back - HOUR, "timestamp"), at(back + HOUR, session(1, back)), back, "timestamp"
    )
    assert zoned.safe == back - HOUR


def test_the_stretch_that_is_read_again_begins_at_what_is_complete_less_the_lag() -> None:
    horizon = judge(None, at(NOW), 100)
    assert horizon.reread(100, None) is None
    assert horizon.reread(None, 5) is None
    held_back = judge(judge(None, at(NOW, session(1)), 100), at(NOW + HOUR, session(2, NOW + MINUTE)), 200)
    reread = held_back.reread(200, 10)
    assert reread is not None
    assert (reread.lower, [one.pid for one in reread.because_of]) == (90, [2])


def test_only_transactions_that_may_end_soon_are_awaited() -> None:
    young, old = session(1, NOW - 1), session(2, NOW - HOUR)
    assert may_be_awaited(judge(None, at(NOW, young), 100), MINUTE)
    assert not may_be_awaited(judge(None, at(NOW), 100), MINUTE)
    assert not may_be_awaited(judge(None, at(NOW, young, old), 100), MINUTE)
    assert not may_be_awaited(judge(None, at(NOW, prepared("x", NOW)), 100), MINUTE)
    known = judge(judge(None, at(NOW - MINUTE), 50), at(NOW, young), 100)
    assert not may_be_awaited(known, MINUTE), "an earlier position is complete"


def test_the_history_stays_small_while_a_transaction_stays_open() -> None:
    horizon = judge(None, at(NOW, session(1)), 0)
    for minute in range(1, 500):
        now = NOW + minute * MINUTE
        horizon = judge(horizon, at(now, session(1), session(minute + 1, now - MARGIN)), minute)
    positions = [one.position for one in horizon.history.observations]
    assert len(positions) <= 24
    assert (positions[0], positions[-1]) == (0, 499)
    assert judge(horizon, at(NOW + HOUR * 24, session(499, NOW + 498 * MINUTE)), 999).safe is not None


Steps = tuple[tuple[str, int], ...]


@dataclass
class Simulation:
    """A source whose numbers are drawn in order and become visible when their transactions commit."""

    drawn: int = 0
    open: dict[int, list[int]] = field(default_factory=dict)
    began_at: dict[int, int] = field(default_factory=dict)
    prepared: dict[str, list[int]] = field(default_factory=dict)
    visible: set[int] = field(default_factory=set)
    began: int = 0
    target: dict[int, int] = field(default_factory=dict)
    mark: int = 0
    loads: int = 0
    horizon: Horizon | None = None
    clock: int = NOW

    def step(self, what: str, which: int) -> None:
        self.clock += MINUTE
        if what == "begin":
            self.began += 1
            self.open[self.began] = []
            self.began_at[self.began] = self.clock
        elif what == "load":
            self.load()
        elif what.endswith("prepared") and self.prepared:
            rows = self.prepared.pop(sorted(self.prepared)[which % len(self.prepared)])
            self.visible |= set(rows) if what == "commit prepared" else set()
        elif self.open and not what.endswith("prepared"):
            key = sorted(self.open)[which % len(self.open)]
            if what == "draw":
                self.drawn += 1
                self.open[key].append(self.drawn)
                return
            rows = self.open.pop(key)
            if what == "prepare":
                self.prepared[f"{key}"] = rows
            elif what == "commit":
                self.visible |= set(rows)

    def load(self, between: Steps = (), mistake: str = "") -> None:
        """As a run does it: the extent, the list of transactions, the rows, and then the mark."""
        upper = max(self.visible, default=None)
        if mistake != "transactions are listed after the rows were read":
            self.judge(upper)
        rows = {row for row in self.visible if row >= self.mark}
        for what, which in between:
            self.step(what, which)
        if mistake == "transactions are listed after the rows were read":
            self.judge(upper)
        self.target = {row: load for row, load in self.target.items() if row < self.mark}
        self.loads += 1
        self.target |= dict.fromkeys(rows, self.loads)
        highest = max(rows, default=self.mark)
        assert self.horizon is not None
        safe = -1 if self.horizon.safe is None else self.horizon.safe
        if mistake == "the highest cursor is trusted":
            safe = highest
        self.mark = max(self.mark, min(highest, safe))

    def judge(self, upper: int | None) -> None:
        sessions = [session(key, self.began_at[key]) for key in self.open]
        waiting = [prepared(gid, self.began_at[int(gid)]) for gid in self.prepared]
        transactions = at(self.clock, *sessions, *waiting)
        history = CursorHistory() if self.horizon is None else self.horizon.history
        self.horizon = judge_horizon(history, transactions, upper, "numeric", saved_now=self.clock)


STEPS = ("begin", "draw", "draw", "commit", "rollback", "prepare", "commit prepared", "rollback prepared")


@settings(max_examples=400)
@given(st.data())
def test_however_transactions_end_no_row_is_lost(data: st.DataObject) -> None:
    source = Simulation()
    steps = st.tuples(st.sampled_from(STEPS), st.integers(0, 5))
    for _ in range(data.draw(st.integers(1, 12))):
        for what, which in data.draw(st.lists(steps, max_size=8)):
            source.step(what, which)
        source.load(tuple(data.draw(st.lists(steps, max_size=3))))
    for what in ("commit", "commit prepared"):
        while source.open if what == "commit" else source.prepared:
            source.step(what, 0)
    source.load()
    assert set(source.target) == source.visible


@pytest.mark.parametrize(
    ("mistake", "lost"),
    [
        ("", set()),
        ("the highest cursor is trusted", {1}),
        ("transactions are listed after the rows were read", {1}),
    ],
)
def test_a_row_whose_transaction_commits_while_later_ones_are_read(mistake: str, lost: set[int]) -> None:
    source = Simulation()
    for what, which in (("begin", 0), ("draw", 0), ("begin", 0), ("draw", 1), ("commit", 1)):
        source.step(what, which)
    source.load((("commit", 0),), mistake)
    source.load()
    assert source.visible - set(source.target) == lost
