from __future__ import annotations

import io
import sys
from typing import NamedTuple

import pytest

from hakiri_dagster.cli.progress import SECONDS_BETWEEN_LINES, ProgressLines, progress_shown
from hakiri_dagster.cli.tally import Tally
from tests.integration.destinations.postgres.scenario import make_table


def test_where_there_is_no_terminal_a_long_load_tells_how_far_it_is_now_and_then() -> None:
    table, tally, told = make_table("append"), Tally(), io.StringIO()
    now = 0.0
    show = ProgressLines({table.label: 70}, tally, told, clock=lambda: now)
    for chunk in range(4):
        now = chunk * SECONDS_BETWEEN_LINES / 2
        tally.published(table, f"{chunk}", rows=1000, quarantined=0)
        show(table)
    assert told.getvalue() == f"{table.label}: 3 of 70 chunk(s), 3,000 row(s)\n"


def test_a_short_one_tells_nothing_before_its_end() -> None:
    table, tally, told = make_table("append"), Tally(), io.StringIO()
    show = ProgressLines({table.label: 1}, tally, told, clock=lambda: 0.0)
    tally.published(table, "full", rows=1, quarantined=0)
    show(table)
    assert told.getvalue() == ""


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_a_terminal_shows_a_bar_a_table_that_grows_with_each_chunk(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "120")
    monkeypatch.setattr(sys, "stderr", terminal := Terminal())
    table, tally = make_table("append"), Tally()
    with progress_shown([(table, Looked(("2024-01", "2024-02")))], tally):  # type: ignore[list-item]  # all it asks of a look
        for chunk, rows in (("2024-01", 1000), ("2024-02", 500)):
            tally.published(table, chunk, rows=rows, quarantined=0)
    shown = terminal.getvalue()
    assert table.label in shown
    assert "━" in shown
    assert "2/2" in shown
    assert "1,500 rows" in shown


class Looked(NamedTuple):
    due_keys: tuple[str, ...]
