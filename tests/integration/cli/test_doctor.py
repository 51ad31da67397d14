from __future__ import annotations

import json
from pathlib import Path

import pytest

from hakiri_dagster.cli.doctor_command import doctor
from hakiri_dagster.cli.manifest_commands import init


def of_the_webhook(root: Path, capsys: pytest.CaptureFixture[str]) -> list[dict[str, object]]:
    capsys.readouterr()
    doctor(root, as_json=True)
    return [check for check in json.loads(capsys.readouterr().out) if check["name"] == "alert webhook"]


def test_a_webhook_for_alerts_is_judged_and_never_shown(
    project_dir: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    init(project_dir)
    (project_dir / "manifests" / "hakiri.toml").write_text('[project]\nname = "shop"\n')
    assert of_the_webhook(project_dir, capsys) == []
    monkeypatch.setenv("HAKIRI_ALERT_WEBHOOK_URL", "https://hooks.example.com/T0K3N")
    (check,) = of_the_webhook(project_dir, capsys)
    assert (check["ok"], check["found"]) == (
        True, "alerts are sent there, not signed: HAKIRI_ALERT_WEBHOOK_SECRET is not set",
    )  # fmt: skip
    monkeypatch.setenv("HAKIRI_ALERT_WEBHOOK_URL", "https://10.0.0.1/T0K3N")
    (check,) = of_the_webhook(project_dir, capsys)
    assert check["ok"] is False
    assert check["cure"]
    assert "T0K3N" not in json.dumps(check)
