from __future__ import annotations

import json
from pathlib import Path

import pytest

from hakiri_dagster.audit.alerts import Alert
from hakiri_dagster.audit.database import open_audit
from hakiri_dagster.cli.alerts_command import alerts
from hakiri_dagster.cli.manifest_commands import init
from hakiri_dagster.errors import UsageError
from hakiri_dagster.manifest.project import load_project


@pytest.fixture
def root(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Path:
    init(tmp_path / "new")
    capsys.readouterr()
    return tmp_path / "new"


def raise_(root: Path, pipeline: str, message: str) -> None:
    with open_audit(None, root / ".hakiri") as audit:
        audit.alerts.raise_(pipeline, "orders", Alert("empty_source", message, details={"n": 1}), "run-1")


def show(
    root: Path, capsys: pytest.CaptureFixture[str], pipeline: str | None = None, *, everything: bool = False
) -> str:
    assert alerts(root, pipeline, as_json=False, acknowledged_too=everything, acknowledge=()) == 0
    return capsys.readouterr().out


def test_a_project_without_alerts_says_so_and_gets_no_audit_db(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert show(root, capsys) == "No alert is open.\n"
    assert not (root / ".hakiri" / "audit.sqlite").exists()


def test_open_alerts_are_listed_until_they_are_acknowledged(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    raise_(root, "gone-pipeline", "nobody [there]")
    assert "nobody [there]" in show(root, capsys)
    alerts(root, None, as_json=False, acknowledged_too=False, acknowledge=[1])
    assert capsys.readouterr().out == "No alert is open.\n"
    assert "warning: empty_source (acknowledged)" in show(root, capsys, everything=True)
    with pytest.raises(UsageError, match="there is no alert 7"):
        alerts(root, None, as_json=False, acknowledged_too=False, acknowledge=[7])


def test_one_pipeline_is_asked_for_by_its_id(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pipeline = load_project(root).pipelines[0].id
    raise_(root, pipeline, "mine")
    raise_(root, "another", "theirs")
    assert "theirs" in show(root, capsys)
    assert "theirs" not in show(root, capsys, pipeline)
    with pytest.raises(UsageError, match="there is no pipeline"):
        show(root, capsys, "nonsense")


def test_the_document_is_json(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    raise_(root, "shop", "empty")
    alerts(root, None, as_json=True, acknowledged_too=False, acknowledge=())
    (alert,) = json.loads(capsys.readouterr().out)["alerts"]
    assert (alert["id"], alert["message"], alert["details"], alert["acknowledged_at"]) == (1, "empty", {"n": 1}, None)
