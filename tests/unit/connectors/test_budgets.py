"""How many requests a source may see, where the operator says it and where its connector does."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import pytest

from hakiri_dagster.connectors import registry
from hakiri_dagster.connectors.budgets import request_budget
from hakiri_dagster.manifest.project import load_project
from hakiri_dagster.manifest.tables import Pipeline, Table
from hakiri_dagster.planning.backfill_hint import BackfillHint

TOLD = {"issues": "5000/h", "comments": "10/s", "labels": None}


def pipeline(tmp_path: Path, backfill: str = "") -> Pipeline:
    manifest = f"""
id = "forge"
tables = ["issues", "comments", "labels"]
{backfill}
[source]
connector = "rest"
config = {{ base_url = "https://api.forge.example", pagination = {{ type = "link" }} }}
"""
    (tmp_path / "manifests" / "pipelines").mkdir(parents=True)
    (tmp_path / "manifests" / "pipelines" / "forge.toml").write_text(manifest)
    (found,) = load_project(tmp_path, env={}).pipelines
    return found


@pytest.fixture(autouse=True)
def _connectors_tell(monkeypatch: pytest.MonkeyPatch) -> None:
    def told(table: Table) -> SimpleNamespace:
        return SimpleNamespace(hint=BackfillHint(rate_budget=TOLD[table.name]))

    monkeypatch.setattr(registry, "source_table", told)


def test_of_what_the_tables_connectors_tell_the_least_holds(tmp_path: Path) -> None:
    assert str(request_budget(pipeline(tmp_path))) == "5000/h"


def test_what_the_operator_says_holds_before_it(tmp_path: Path) -> None:
    assert str(request_budget(pipeline(tmp_path, '[backfill]\nrate_budget = "60/min"'))) == "60/min"
