from __future__ import annotations

import os
import stat
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest

from hakiri_dagster.cli import postgres_commands
from hakiri_dagster.engine import embedded_postgres
from hakiri_dagster.errors import UsageError


@pytest.fixture
def started(project_dir: Path) -> Iterator[Path]:
    (project_dir / ".env").write_text("SHOP_URL=kept\nHAKIRI_DAGSTER_URL=old\n")
    assert postgres_commands.start(project_dir) == 0
    yield project_dir
    postgres_commands.stop(project_dir)


def environment_of(project: Path) -> dict[str, str]:
    return dict(line.split("=", 1) for line in (project / ".env").read_text().splitlines())


def test_start_leaves_a_server_with_all_databases_and_tells_dagster_of_it(started: Path) -> None:
    environment = environment_of(started)
    assert environment.pop("DAGSTER_HOME") == str(started / ".hakiri" / "dagster")
    url = environment.pop("HAKIRI_DAGSTER_URL")
    assert environment == {"SHOP_URL": "kept"}
    with psycopg.connect(url.replace("+psycopg2", "")) as connection:
        names = connection.execute("SELECT datname FROM pg_database").fetchall()
    assert {"warehouse", "dagster", "audit"} <= {name for (name,) in names}


def test_dagster_opened_with_that_environment_keeps_its_storage_in_the_server(started: Path) -> None:
    told = "import dagster as dg; print(type(dg.DagsterInstance.get().event_log_storage).__name__)"
    environment = {**os.environ, **environment_of(started)}
    answer = subprocess.run(
        [sys.executable, "-c", told], cwd=started, env=environment, capture_output=True, text=True, check=True
    )
    assert answer.stdout.split() == ["PostgresEventLogStorage"]


def test_the_environment_file_holds_a_password_and_is_private(started: Path) -> None:
    assert stat.S_IMODE((started / ".env").stat().st_mode) == 0o600


def test_starting_again_changes_nothing_and_stop_stops_it(started: Path, capsys: pytest.CaptureFixture[str]) -> None:
    before = environment_of(started)
    assert postgres_commands.start(started) == 0
    assert environment_of(started) == before
    assert postgres_commands.stop(started) == 0
    assert not embedded_postgres.is_running(started / ".hakiri" / "postgres")
    assert before["HAKIRI_DAGSTER_URL"].split(":")[2].split("@")[0] not in "".join(capsys.readouterr())


def test_stopping_what_never_ran_is_no_error(project_dir: Path) -> None:
    assert postgres_commands.stop(project_dir) == 0


def test_psql_opens_the_warehouse_and_answers_with_its_exit_code(
    started: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PGDATABASE", "elsewhere")
    assert postgres_commands.psql(started, ["-XAtc", "SELECT current_database(), 'Zoë'"]) == 0
    assert capfd.readouterr().out == "warehouse|Zoë\n"
    assert postgres_commands.psql(started, ["-Xc", "SELECT nothing"]) == 1


def test_psql_stops_the_server_that_it_started(project_dir: Path) -> None:
    assert postgres_commands.psql(project_dir, ["-Xc", "SELECT 1"]) == 0
    assert not embedded_postgres.is_running(project_dir / ".hakiri" / "postgres")


def test_a_folder_that_is_no_project_gets_no_server(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="is not a project"):
        postgres_commands.psql(tmp_path, [])
    assert list(tmp_path.iterdir()) == []
