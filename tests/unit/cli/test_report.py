from __future__ import annotations

from typing import Any

import pytest

from hakiri_dagster.cli.report import report


def told(capsys: pytest.CaptureFixture[str], **table: Any) -> str:
    counted = {"chunks": {"done": 0, "failed": 0, "skipped": 0, "pending": 0}, "rows": 0}
    rest = {"table": "orders", "quarantined": 0, "hooks": 0, "warnings": [], "error": None, "duration_s": 0.0}
    report({"pipelines": [{"pipeline_id": "shop", "status": "success", "tables": [counted | rest | table]}]})
    return capsys.readouterr().out


def test_nothing_to_do_is_said_of_one_table(capsys: pytest.CaptureFixture[str]) -> None:
    assert told(capsys) == "Nothing to do: the table is converged.\n"


def test_a_run_of_hooks_alone_is_something_that_was_done(capsys: pytest.CaptureFixture[str]) -> None:
    said = told(capsys, hooks=2)
    assert "converged" not in said
    assert "shop/orders" in said


def test_who_finds_another_run_at_work_is_not_told_that_all_is_converged(capsys: pytest.CaptureFixture[str]) -> None:
    held = [f"chunk 2024-0{month}: another run holds it (host|1)" for month in range(1, 5)]
    said = told(capsys, chunks={"done": 0, "failed": 0, "skipped": 4, "pending": 0}, warnings=held)
    assert "converged" not in said
    assert "shop/orders: 4 chunks, 2024-01 to 2024-04: another run holds it (host|1)" in said
    assert said.count("another run holds it") == 1


def test_other_warnings_stay_as_they_are(capsys: pytest.CaptureFixture[str]) -> None:
    said = told(capsys, warnings=["b.csv has no `id`: NULL in its rows", "chunk full: 3 rows left out"])
    assert "b.csv has no `id`: NULL in its rows" in said
    assert "chunk full: 3 rows left out" in said
