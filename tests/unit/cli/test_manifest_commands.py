"""The commands that need nothing but the manifests."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from hakiri_dagster.cli.dagster_files import dagster_files
from hakiri_dagster.cli.main import app
from hakiri_dagster.cli.manifest_commands import init, pipeline_list, pipeline_show, schema_export, validate
from hakiri_dagster.errors import ManifestError, UsageError
from hakiri_dagster.manifest.schema import pipeline_schema
from hakiri_dagster.orchestration.dagster_home import packaged_text
from hakiri_dagster.security import secrets
from tests.unit.manifest.samples import files_pipeline

REPOSITORY = Path(__file__).resolve().parents[3]

WRONG = """\
[[pipeline]]
id = "shop"
source = { connector = "files", config = { path = "data" } }
tables = ["orders"]
schedul = "every 15m"
[context]
path = "x"
"""


@pytest.fixture
def project(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Path:
    init(tmp_path / "new")
    capsys.readouterr()
    return tmp_path / "new"


def break_it(project: Path) -> None:
    (project / "manifests" / "hakiri.toml").write_text(WRONG)


def test_init_says_what_it_wrote_and_what_comes_next(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert init(tmp_path / "new", {"dagster.yaml": ""}) == 0
    out = capsys.readouterr().out
    assert "manifests/hakiri.toml" in out
    assert "dagster.yaml" in out
    assert f"next: hakiri --project {tmp_path / 'new'} plan" in out


def test_the_init_command_also_writes_what_a_plain_dagster_dev_needs(tmp_path: Path) -> None:
    told = CliRunner().invoke(app, ["init", str(tmp_path / "new")])
    assert told.exit_code == 0
    for name in ("dagster.yaml", "workspace.yaml"):
        assert (tmp_path / "new" / name).read_text() == packaged_text(name)
        assert name in told.output


def test_the_repositorys_own_dagster_files_are_those_of_new_projects() -> None:
    """The repository is a project, too."""
    for name, text in dagster_files().items():
        assert (REPOSITORY / name).read_text() == text


def test_a_valid_project_is_called_valid(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert validate(project, as_json=False) == 0
    captured = capsys.readouterr()
    assert (captured.out, captured.err) == ("valid: 2 pipelines\n", "")


def test_errors_and_warnings_go_to_stderr_with_their_place(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    break_it(project)
    assert validate(project, as_json=False) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.splitlines() == [
        "manifests/hakiri.toml:7:1: warning: `path` has no effect: the embedded PostgreSQL lives in `.hakiri/`",
        "manifests/hakiri.toml:5:1: error: unknown key `schedul`",
        "  hint: did you mean `schedule`?",
        "1 error",
    ]


def test_validate_answers_json_in_the_promised_shape(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    break_it(project)
    assert validate(project, as_json=True) == 2
    captured = capsys.readouterr()
    assert captured.err == ""
    assert json.loads(captured.out) == {
        "ok": False,
        "pipelines": ["shop", "catalogue"],
        "errors": [
            {
                "file": "manifests/hakiri.toml",
                "line": 5,
                "column": 1,
                "pipeline_id": "shop",
                "message": "unknown key `schedul`",
                "hint": "did you mean `schedule`?",
            }
        ],
        "warnings": [
            {
                "file": "manifests/hakiri.toml",
                "line": 7,
                "column": 1,
                "pipeline_id": None,
                "message": "`path` has no effect: the embedded PostgreSQL lives in `.hakiri/`",
                "hint": None,
            }
        ],
    }


def test_schema_export_writes_the_schema_and_prints_its_path(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert schema_export(project) == 0
    path = project / ".hakiri" / "schema" / "pipeline.json"
    assert capsys.readouterr().out == f"{path}\n"
    assert json.loads(path.read_text(encoding="utf-8")) == pipeline_schema()


def test_a_schema_that_cannot_be_written_is_told(project: Path) -> None:
    (project / "file").write_text("")
    with pytest.raises(UsageError, match="cannot be written"):
        schema_export(project / "file")


def test_the_schemas_that_a_new_project_names_are_there(project: Path) -> None:
    catalogue = project / "manifests" / "pipelines" / "catalogue.json"
    assert (catalogue.parent / json.loads(catalogue.read_text())["$schema"]).is_file()
    directive = (project / "manifests" / "hakiri.toml").read_text().splitlines()[0].removeprefix("#:schema ")
    assert (project / "manifests" / directive).is_file()


def test_pipelines_are_listed(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert pipeline_list(project, as_json=False) == 0
    assert "customers, orders" in capsys.readouterr().out
    assert pipeline_list(project, as_json=True) == 0
    listed = json.loads(capsys.readouterr().out)["pipelines"]
    assert [(p["id"], p["tables"], p["file"], p["line"]) for p in listed] == [
        ("shop", ["customers", "orders"], "manifests/hakiri.toml", 21),
        ("catalogue", ["products"], "manifests/pipelines/catalogue.json", 1),
    ]


def test_a_pipeline_is_shown_resolved_and_without_passwords(
    project: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SHOP_URL", "postgresql://app:sh0wn-never@db.example.com/shop")
    text = 'id = "db"\nsource = { connector = "postgres", config = { url = "${SHOP_URL}" } }\ntables = ["a"]\n'
    (project / "manifests" / "pipelines" / "db.toml").write_text(text)
    assert pipeline_show(project, "db", as_json=True) == 0
    out = capsys.readouterr().out
    assert "sh0wn-never" not in out
    shown = json.loads(out)
    assert shown["source"]["config"]["url"] == "postgresql://app@db.example.com/shop"
    assert [(t["table"], t["target"], t["mode"]) for t in shown["tables"]] == [("a", "public.a", "append")]
    assert pipeline_show(project, "db", as_json=False) == 0
    out = capsys.readouterr().out
    assert "sh0wn-never" not in out
    assert "a → public.a  append" in out


def test_an_unknown_pipeline_and_a_wrong_project_end_with_exit_code_2(project: Path) -> None:
    with pytest.raises(UsageError, match="no pipeline `shpo`") as refused:
        pipeline_show(project, "shpo", as_json=True)
    assert refused.value.exit_code == 2
    break_it(project)
    with pytest.raises(ManifestError) as wrong:
        pipeline_list(project, as_json=True)
    assert wrong.value.exit_code == 2


def test_neither_dagster_nor_spark_nor_a_driver_is_imported_for_them() -> None:
    code = (
        "import sys, hakiri_dagster.cli.manifest_commands;"
        "print([m for m in ('dagster', 'pyspark', 'psycopg', 'psycopg2', 'sqlalchemy', 'pyarrow') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60)
    assert done.stdout.strip() == "[]"


def test_the_url_and_the_secret_of_a_webhook_are_not_shown(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(secrets, "_secrets", frozenset())
    monkeypatch.setattr(secrets, "_pattern", None)
    monkeypatch.setenv("HOOK_SECRET", "s3cret-of-a-receiver")
    folder = tmp_path / "manifests" / "pipelines"
    folder.mkdir(parents=True)
    hook = '{ type = "webhook", url = "https://hooks.example.com/t0ken-in-the-path", secret = "${HOOK_SECRET}" }'
    (folder / "shop.toml").write_text(files_pipeline(more=f"load.post_hook = {hook}\n"))
    pipeline_show(tmp_path, "shop", as_json=True)
    pipeline_show(tmp_path, "shop", as_json=False)
    shown = capsys.readouterr().out
    assert '"webhook"' in shown
    assert "t0ken" not in shown
    assert "s3cret" not in shown


def test_an_api_is_shown_by_its_url_and_without_its_token(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GITHUB_TOKEN", "gh-s3cret-token")
    folder = tmp_path / "manifests" / "pipelines"
    folder.mkdir(parents=True)
    source = 'source = { connector = "github", config = { repo = "a/b", token = "${GITHUB_TOKEN}" } }'
    (folder / "gh.toml").write_text(f'id = "gh"\ntables = ["issues"]\n{source}\n')
    pipeline_show(tmp_path, "gh", as_json=False)
    pipeline_show(tmp_path, "gh", as_json=True)
    shown = capsys.readouterr().out
    assert "from      github https://api.github.com" in shown
    assert '"connector": "github"' in shown
    assert "gh-s3cret-token" not in shown
