from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from hakiri_dagster.audit.database import AuditDb, open_audit
from hakiri_dagster.audit.schema_log import Decided
from hakiri_dagster.cli.manifest_commands import init
from hakiri_dagster.cli.schema_commands import accept, log, note_accepted
from hakiri_dagster.errors import UsageError
from hakiri_dagster.manifest.project import load_project
from hakiri_dagster.planning.schema_diff import Change
from tests.unit.docs.pages import ROOT, blocks

SHOWN = {block.title: json.loads(block.text) for block in blocks(ROOT / "docs" / "cli.md") if block.language == "json"}
NARROWED = Change("narrowed", "a[b]c", "bigint", "integer", 1)


@pytest.fixture
def project(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Path:
    init(tmp_path / "new")
    capsys.readouterr()
    return tmp_path / "new"


@pytest.fixture
def audit(project: Path) -> Iterator[AuditDb]:
    with open_audit(None, project / ".hakiri") as opened:
        yield opened


def test_the_log_shows_each_event_and_who_permitted_what(
    project: Path, audit: AuditDb, capsys: pytest.CaptureFixture[str]
) -> None:
    table = load_project(project).pipelines[0].tables[0]
    of_table = table.pipeline_id, table.name
    audit.schemas.note(*of_table, [Decided(NARROWED, "refused")], run_id="run-1")
    note_accepted(audit, table, NARROWED, "RT-481")
    audit.schemas.note(*of_table, [Decided(NARROWED, "refused")], run_id="run-2")
    note_accepted(audit, table, NARROWED, "once more")
    assert log(project, table.pipeline_id, table.name, as_json=True) == 0
    refused, accepted = json.loads(capsys.readouterr().out)["events"]
    assert list(refused) == list(SHOWN["schema log"]["events"][0])
    assert (refused["decision"], refused["run_id"], refused["accepted_by"]) == ("refused", "run-1", None)
    assert (accepted["decision"], accepted["reason"], accepted["from"]) == ("accepted", "RT-481", "bigint")
    assert accepted["accepted_by"]
    assert log(project, None, None, as_json=False) == 0
    shown = capsys.readouterr().out
    assert "a[b]c" in shown
    assert ": RT-481" in shown


def test_a_project_without_changes_says_so(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert log(project, None, None, as_json=False) == 0
    assert "No source has changed its columns" in capsys.readouterr().out


def test_unknown_pipelines_and_tables_are_told(project: Path) -> None:
    known = load_project(project).pipelines[0].id
    with pytest.raises(UsageError, match="there is no pipeline `nope`"):
        log(project, "nope", None, as_json=False)
    with pytest.raises(UsageError, match="has no table `nope`"):
        accept(project, known, table="nope", column=None, reason=None, as_json=False)
    with pytest.raises(UsageError, match="--table needs"):
        log(project, None, "orders", as_json=False)
