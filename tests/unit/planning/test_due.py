from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime
from itertools import count

from hypothesis import given, settings
from hypothesis import strategies as st

from hakiri_dagster.planning.chunks import CursorRange, Interval
from hakiri_dagster.planning.windows import DAY, HOUR, to_position
from tests.unit.planning.simulated_table import Crash, Row, SimulatedTable

NOON = to_position(datetime(2026, 11, 18, 12, tzinfo=UTC))
WINDOWS = ("1d", "1w", "30d", "1mo", "1q", "5mo", "1y")


def _ids(*, window: int = 10, cursors: range | tuple[int, ...] = range(25)) -> SimulatedTable:
    table = SimulatedTable("numeric", now=0, window=window)
    table.source = [Row(f"r{n}", cursor) for n, cursor in enumerate(cursors)]
    return table


def _days(window: str = "1d", ago: tuple[float, ...] = (2, 1, 0.25)) -> SimulatedTable:
    table = SimulatedTable("timestamp", now=NOON, window=window)
    table.source = [Row(f"r{n}", NOON - round(days * DAY)) for n, days in enumerate(ago)]
    return table


def _owed(table: SimulatedTable) -> list[tuple[str, int | None, int | None]]:
    return [
        (due.key, due.slice.bounds.interval.lower, due.slice.bounds.interval.upper)
        for due in table.plan().slices
        if isinstance(due.slice.bounds, CursorRange)
    ]


def test_a_converged_table_owes_nothing() -> None:
    table = _ids()
    assert len(table.apply().slices) == 3
    assert not table.plan().slices
    assert table.plan().states == ()


def test_the_open_window_owes_only_what_is_new_since_its_mark() -> None:
    table = _ids()
    table.converge()
    table.source.append(Row("new", 26))
    assert _owed(table) == [("id-0000000020..0000000030", 24, 30)]


def test_ties_at_the_mark_are_noticed_and_not_doubled() -> None:
    table = _ids()
    table.converge()
    table.source.append(Row("tie", 24))
    assert _owed(table) == [("id-0000000020..0000000030", 24, 30)]
    table.converge()
    table.assert_equal_to_source()


def test_a_window_that_closed_since_is_due_from_its_mark() -> None:
    table = _ids()
    table.converge()
    table.source += [Row("late", 28), Row("next", 31)]
    assert _owed(table) == [("id-0000000020..0000000030", 24, 30), ("id-0000000030..0000000040", 30, 40)]


def test_a_larger_window_carries_over_what_is_published() -> None:
    table = _ids(window=10, cursors=range(100))
    table.converge()
    table.window = 50
    due = table.plan()
    assert due.slices == ()
    assert due.carried_over == ("id-0000000000..0000000050", "id-0000000050..0000000100")
    first = next(state for state in due.states if state.key == due.carried_over[0])
    assert first.carried_from == (1, 2, 3, 4, 5)


def test_a_mark_of_a_smaller_plan_does_not_vouch_for_rows_beyond_it() -> None:
    table = _ids(window=10, cursors=(3, 19))
    table.apply(crashes=["no", "before publish"])
    table.window = 20
    assert _owed(table) == [("id-0000000000..0000000020", 10, 20)]


def test_a_partly_covered_chunk_owes_its_remainder() -> None:
    table = _ids(window=10, cursors=range(25))
    table.apply(crashes=["no", "before publish"])
    table.window = 100
    assert _owed(table) == [("id-0000000000..0000000100", 10, 100)]


def test_an_earlier_start_owes_only_what_lies_before_the_old_one() -> None:
    table = _ids(window=10, cursors=range(45))
    table.start_from = 25
    table.converge()
    table.start_from = 13
    assert _owed(table) == [("id-0000000010..0000000020", 13, 20), ("id-0000000020..0000000030", 20, 25)]
    table.converge()
    table.assert_equal_to_source()


def test_a_start_after_all_rows_that_is_taken_back_comes_to_rest() -> None:
    """The mark of a slice without rows is its own beginning, beyond which nothing was found."""
    table = SimulatedTable("timestamp", now=NOON, window="1mo")
    table.source += [Row("first", NOON - 3), Row("slip", NOON + 40 * DAY)]
    table.converge()
    table.source.append(Row("second", NOON - 2))
    table.start_from = NOON
    table.converge()
    table.start_from = NOON - DAY
    table.converge()
    table.assert_equal_to_source()


def test_a_window_that_an_earlier_plan_has_covered_in_its_middle_comes_to_rest() -> None:
    table = SimulatedTable("timestamp", now=NOON, window="1mo")
    table.source.append(Row("first", NOON))
    table.apply()
    table.now += 14 * DAY
    table.source.append(Row("slip", table.now + DAY))
    table.apply()
    table.window = "30d"
    table.source.append(Row("later slip", table.now + 2 * DAY))
    table.converge(most=2)
    table.assert_equal_to_source()


def test_rows_without_a_cursor_are_due_when_their_number_changes() -> None:
    table = _ids()
    table.source.append(Row("null", None))
    table.converge()
    assert not table.plan().slices
    table.source.remove(Row("null", None))
    assert [due.key for due in table.plan().slices] == ["null"]
    table.converge()
    table.assert_equal_to_source()


def test_a_row_dated_in_the_future_hides_no_newer_row_and_does_not_stay_due() -> None:
    table = _days()
    table.source.append(Row("slip", NOON + 5000 * DAY))
    table.converge(most=2)
    table.source.append(Row("today", NOON))
    assert [due.key for due in table.plan().slices] == ["2026-11-18"]
    table.converge()
    table.assert_equal_to_source()


def test_a_source_that_cannot_look_behind_a_future_row_is_read_again_and_says_so() -> None:
    table = _days()
    table.tells_upper_by_now = False
    table.source.append(Row("slip", NOON + 5000 * DAY))
    table.apply()
    due = table.plan()
    assert [d.key for d in due.slices] == ["2026-11-18"]
    assert "dated after now" in due.warnings[0]


def test_a_running_chunk_is_busy_and_left_as_it_is() -> None:
    table = _ids()
    table.apply(crashes=["before publish"])
    due = table.plan()
    assert [d.key for d in due.busy] == ["id-0000000000..0000000010"]
    assert [d.key for d in due.slices] == ["id-0000000010..0000000020", "id-0000000020..0000000030"]
    assert due.states == ()


def test_a_running_chunk_that_left_the_plan_is_named_so_that_it_can_be_fenced() -> None:
    table = _ids()
    table.apply(crashes=["before publish"])
    table.window = 7
    assert table.plan().overtaken == ("id-0000000000..0000000010",)


def test_a_chunk_that_left_the_plan_before_it_was_loaded_is_retired() -> None:
    table = _ids()
    table.apply(crashes=["before publish"])
    table.window = 7
    table.apply()
    assert table.states["id-0000000010..0000000020"].status == "retired"


def test_a_crash_after_the_publish_costs_no_second_load() -> None:
    table = _ids()
    table.apply(crashes=["after publish"])
    table.converge()
    assert table.loads == 3


def test_a_lost_audit_db_is_rebuilt_from_the_ledger() -> None:
    table = _ids()
    table.converge()
    table.states.clear()
    table.planned_as = None
    table.converge()
    assert table.loads == 4, "closed windows are known; the open one is asked once whether it has ties"
    table.assert_equal_to_source()


def test_a_rewound_stretch_is_owed_again_chunk_by_whole_chunk() -> None:
    table = _ids(cursors=range(50))
    table.converge()
    table.rewind(Interval(12, 22))
    assert _owed(table) == [("id-0000000010..0000000020", 10, 20), ("id-0000000020..0000000030", 20, 30)]
    assert {state.generation for state in table.states.values()} == {2}


def test_a_rewound_stretch_does_not_count_as_published_in_older_plans() -> None:
    table = _ids(window=10, cursors=range(50))
    table.converge()
    table.window = 25
    table.converge()
    table.rewind(Interval(0, 1))
    table.window = 10
    assert [key for key, *_ in _owed(table)] == [
        "id-0000000000..0000000010",
        "id-0000000010..0000000020",
        "id-0000000020..0000000030",
    ]


def test_a_rewound_stretch_that_a_crash_has_published_is_known_before_it_is_taken_back() -> None:
    table = _ids()
    table.apply(crashes=["after publish"])
    table.rewind(Interval(0, 5))
    assert ("id-0000000000..0000000010", 0, 10) in _owed(table)
    assert table.states["id-0000000000..0000000010"].is_rewound


def test_a_rewound_chunk_that_other_chunks_have_published_since_is_rewound_no_longer() -> None:
    table = _ids(cursors=range(40))
    table.converge()
    table.rewind(Interval(0, 10))
    table.window = 20
    table.converge()
    table.window = 10
    table.converge()
    assert not any(state.is_rewound for state in table.states.values())
    assert table.loads == 5, "what was taken back, once"


def test_a_rewound_stretch_of_which_the_source_has_lost_its_rows_is_loaded_when_it_has_some_there_again() -> None:
    table = _ids(cursors=range(30))
    table.converge()
    table.source = table.source[:15]
    table.rewind(Interval(10, 30))
    assert [key for key, *_ in _owed(table)] == ["id-0000000010..0000000020"]
    table.converge()
    assert {row.cursor for row in table.target} == {*range(15), *range(20, 30)}, "rows of no chunk are left alone"
    table.source += [Row(f"again{n}", n) for n in range(15, 27)]
    table.converge()
    table.assert_equal_to_source()


def test_a_rewritten_file_makes_the_windows_of_both_its_versions_owed() -> None:
    table = SimulatedTable("numeric", now=0, window=10, files={})
    _write(table, "a", "a1", (1, 2))
    _write(table, "b", "b1", (15, 25))
    table.converge()
    _write(table, "a", "a2", (28,))
    assert sorted(_owed(table)) == [("id-0000000000..0000000010", 1, 3), ("id-0000000020..0000000030", 28, 29)]
    table.converge()
    table.assert_equal_to_source()


def test_a_file_that_is_gone_is_named_when_its_rows_would_vanish() -> None:
    table = SimulatedTable("numeric", now=0, window=10, files={})
    _write(table, "a", "a1", (1, 5))
    _write(table, "b", "b1", (3,))
    table.converge()
    assert table.files is not None
    del table.files["a"]
    assert not table.plan().slices
    _write(table, "b", "b2", (4,))
    assert table.plan().warnings == ("a is gone: its rows vanish from the windows that are loaded again",)


def _write(table: SimulatedTable, path: str, version: str, cursors: tuple[int | None, ...]) -> None:
    assert table.files is not None
    table.files[path] = [Row(f"{version}:{n}", cursor) for n, cursor in enumerate(cursors)]
    table.versions[path] = version


def test_what_a_restored_target_has_lost_is_loaded_again_and_no_more() -> None:
    table = _days()
    table.converge()
    dumped = table.dump()
    table.source.append(Row("later", NOON))
    table.converge()
    table.restore(dumped)
    assert len(table.plan().slices) == 1
    table.converge()
    table.assert_equal_to_source()


def test_a_window_that_was_loaded_again_since_the_dump_is_owed_whole_though_the_dump_holds_its_first_load() -> None:
    table = SimulatedTable("numeric", now=0, window=10, files={})
    _write(table, "a", "a1", (1, 15))
    table.converge()
    dumped = table.dump()
    _write(table, "b", "b1", (2,))
    table.converge()
    table.restore(dumped)
    assert [key for key, *_ in _owed(table)] == ["id-0000000000..0000000010"]
    table.converge()
    table.assert_equal_to_source()


def test_another_target_is_owed_everything_whatever_the_window_was() -> None:
    table = _days()
    empty = table.dump()
    table.converge()
    table.window = "1mo"
    table.converge()
    table.restore(empty)
    table.converge()
    table.assert_equal_to_source()


CRASHES: st.SearchStrategy[list[Crash]] = st.lists(
    st.sampled_from(["no", "no", "before publish", "after publish"]), max_size=4
)


class _History:
    """Random lives of a table. Rows arrive in cursor order, with ties; all else may come at any moment."""

    def __init__(self, table: SimulatedTable, data: st.DataObject) -> None:
        self.table, self.data, self._numbers = table, data, count()
        self._dumped = table.dump()

    def arrive(self) -> None:
        for _ in range(self.data.draw(st.integers(1, 3))):
            self.table.source.append(Row(f"n{next(self._numbers)}", self.table.now))

    def pass_time(self) -> None:
        step = self.data.draw(st.integers(1, 40))
        self.table.now += step if self.table.kind == "numeric" else step * 7 * HOUR

    def arrive_without_cursor(self) -> None:
        self.table.source.append(Row(f"n{next(self._numbers)}", None))

    def slip_into_the_future(self) -> None:
        ahead = self.data.draw(st.integers(1, 90)) * DAY
        self.table.source.append(Row(f"n{next(self._numbers)}", self.table.now + ahead))

    def change_window(self) -> None:
        windows = st.integers(1, 60) if self.table.kind == "numeric" else st.sampled_from(WINDOWS)
        self.table.window = self.data.draw(windows)

    def change_start(self) -> None:
        back = self.data.draw(st.integers(0, 200))
        self.table.start_from = self.table.now - (back if self.table.kind == "numeric" else back * DAY)

    def rewind(self) -> None:
        lower = self.table.now - self.data.draw(st.integers(0, 100)) * self._unit
        self.table.rewind(Interval(lower, lower + 10 * self._unit))

    def correct(self) -> None:
        """A row becomes another at the source, which nothing but a rewind tells."""
        rows = [row for row in self.table.source if row.cursor is not None and self.table.is_owed(row)]
        if not rows:
            return
        row = self.data.draw(st.sampled_from(rows))
        self.table.source[self.table.source.index(row)] = replace(row, origin=f"n{next(self._numbers)}")
        self.table.corrected.append(row)
        assert row.cursor is not None
        self.table.rewind(Interval(row.cursor, row.cursor + 1))

    def dump(self) -> None:
        self._dumped = self.table.dump()

    def restore(self) -> None:
        self.table.restore(self._dumped)

    def apply(self) -> None:
        crashes = self.data.draw(CRASHES)
        self.table.apply(crashes, meanwhile=self.data.draw(st.sampled_from([_nothing, self._grow])))

    def _grow(self) -> None:
        self.pass_time()
        self.arrive()

    @property
    def _unit(self) -> int:
        return 1 if self.table.kind == "numeric" else DAY

    def live(self) -> None:
        steps: list[Callable[[], None]] = [
            self.arrive, self.pass_time, self.arrive_without_cursor, self.change_window, self.change_start,
            self.rewind, self.correct, self.apply, self.apply, self.apply, self.dump, self.restore,
        ]  # fmt: skip
        if self.table.kind == "timestamp":
            steps.append(self.slip_into_the_future)
        for step in self.data.draw(st.lists(st.sampled_from(steps), max_size=14)):
            step()


def _nothing() -> None:
    pass


@settings(max_examples=400)
@given(st.data())
def test_whatever_happens_ids_end_up_in_the_target_exactly_once(data: st.DataObject) -> None:
    table = SimulatedTable("numeric", now=0, window=10, tells_ties=True)
    _History(table, data).live()
    table.converge()
    table.assert_equal_to_source()
    assert table.plan().states == ()


@settings(max_examples=400)
@given(st.data())
def test_whatever_happens_times_end_up_in_the_target_exactly_once(data: st.DataObject) -> None:
    table = SimulatedTable("timestamp", now=NOON, window="1mo")
    history = _History(table, data)
    history.live()
    table.converge()
    table.now += 400 * DAY  # what slipped into the future and was hidden by something later is seen by then
    history.arrive()
    table.converge()
    table.assert_equal_to_source()
    assert table.plan().states == ()


def test_a_new_file_is_loaded_though_a_load_after_a_changed_window_found_nothing_before_its_rows() -> None:
    table = SimulatedTable("numeric", now=10**9, window=10, files={})
    _write(table, "b", "v0", (12,))
    table.converge()
    table.window = 7
    table.converge()
    _write(table, "a", "v1", (11,))
    table.converge()
    table.assert_equal_to_source()


@settings(max_examples=300)
@given(st.data())
def test_whatever_happens_to_files_their_rows_end_up_in_the_windows_exactly_once(data: st.DataObject) -> None:
    table = SimulatedTable("numeric", now=10**9, window=10, files={})
    numbers = count()
    cursors = st.lists(st.integers(0, 60) | st.none(), max_size=5)
    dumped = table.dump()
    steps = ["write", "write", "apply", "apply", "window", "dump", "restore"]
    for step in data.draw(st.lists(st.sampled_from(steps), max_size=14)):
        match step:
            case "dump":
                dumped = table.dump()
            case "restore":
                table.restore(dumped)
            case "write":
                path = data.draw(st.sampled_from("abc"))
                _write(table, path, f"v{next(numbers)}", tuple(data.draw(cursors)))
            case "apply":
                table.apply(data.draw(CRASHES))
            case "window":
                table.window = data.draw(st.integers(1, 40))
    table.converge()
    table.assert_equal_to_source()
    assert table.plan().states == ()
