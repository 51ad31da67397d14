"""Comparisons with the source in Dagster: their schedules, and the results of their check."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import pytest

from hakiri_dagster.definitions import project_definitions
from hakiri_dagster.manifest.project import load_project
from hakiri_dagster.manifest.tables import Project
from hakiri_dagster.orchestration.requests import ChunkRange
from hakiri_dagster.orchestration.verify_events import verification_results
from hakiri_dagster.pipeline.verification import Verification
from hakiri_dagster.planning.verification import ChunkDifference
from hakiri_dagster.settings import Settings


def project(root: Path, text: str) -> Project:
    (root / "manifests").mkdir()
    (root / "manifests" / "hakiri.toml").write_text(
        '[[pipeline]]\nid = "shop"\nsource = { connector = "postgres", config = { url = "postgresql://h/d" } }\n' + text
    )
    return load_project(root)


def test_tables_are_compared_together_unless_they_have_a_cadence_of_their_own(tmp_path: Path) -> None:
    loaded = project(
        tmp_path,
        'timezone = "Asia/Tokyo"\nverify = { every = "6h" }\ntables = ["a", { name = "b", verify = { every = "1w" } },'
        ' { name = "c", verify = false }, { name = "d", verify = { digest = true } }]',
    )
    schedules = project_definitions(loaded, Settings()).schedules or ()
    found = {one.name: (one.cron_schedule, one.execution_timezone, one.description) for one in schedules}  # type: ignore[union-attr]  # none is unresolved
    assert found == {
        "_verify_shop": ("0 */6 * * *", "Asia/Tokyo", "Compares a, d with the source, every 6h."),
        "_verify__load__shop__b": ("0 0 * * 0", "Asia/Tokyo", "Compares b with the source, every 1w."),
    }


def test_runs_of_loads_do_not_plan_the_check(tmp_path: Path) -> None:
    a, b = project(tmp_path, 'tables = ["a", { name = "b", verify = {} }]').tables
    (of_a, of_b) = (ChunkRange(table, "x", "x", 1).run_request("o", "streaming") for table in (a, b))
    assert of_a.asset_check_keys is None
    assert [key.name for key in of_b.asset_check_keys or ()] == ["no_rows_set_aside"]


@pytest.mark.parametrize(
    ("drifted", "expected"),
    [
        ([], [(None, True), ("a", True), ("b", True), ("c", True)]),
        (["b"], [(None, False), ("a", True), ("c", True), ("b", False)]),
        (["null"], [(None, False), ("a", True), ("b", True), ("c", False)]),
        (["a", "null"], [(None, False), ("b", True), ("c", True), ("a", False)]),
    ],
)
def test_the_last_result_fails_where_anything_drifted(
    tmp_path: Path, drifted: list[str], expected: list[tuple[str | None, bool]]
) -> None:
    (table,) = project(tmp_path, 'tables = [{ name = "a", verify = { on_drift = "warn" } }]').tables
    chunks = tuple(ChunkDifference(key, 2, 1, missing=int(key in drifted)) for key in ("a", "b", "c", "null"))
    found = Verification(SimpleNamespace(table=table), chunks, 0)  # type: ignore[arg-type]  # only its table is read
    results = list(verification_results(found, None, {"a", "b", "c"}))
    assert [(one.partition, one.passed) for one in results] == expected
    assert ("null/observed" in results[-1].metadata) is ("null" in drifted)
    assert {one.severity.value for one in results} == {"WARN"}
