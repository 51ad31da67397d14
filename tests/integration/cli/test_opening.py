"""What a command shows of the log."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

LOSES_ITS_SERVER = """
import sys
from contextlib import suppress
from pathlib import Path

import psycopg
import sqlalchemy

from hakiri_dagster.cli.opening import opened_project

def end(process):
    with psycopg.connect(sys.argv[2], autocommit=True) as other:
        other.execute("SELECT pg_terminate_backend(%s, 5000)", [process])


opened_project(Path(sys.argv[1]))
with suppress(LookupError), psycopg.connect(sys.argv[2]) as connection, connection.transaction():
    end(connection.info.backend_pid)
    raise LookupError
engine = sqlalchemy.create_engine(sys.argv[2].replace("postgresql://", "postgresql+psycopg://"))
pooled = engine.raw_connection()
(process,) = pooled.cursor().execute("SELECT pg_backend_pid()").fetchone()
end(process)
pooled.close()
"""


def logged(project: Path, url: str, level: str) -> str:
    environment = {**os.environ, "HAKIRI_LOG": level}
    command = [sys.executable, "-c", LOSES_ITS_SERVER, str(project), url]
    ran = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stderr
    return ran.stderr


def test_what_drivers_log_of_a_server_that_goes_away_is_shown_to_who_asks_for_it(
    project_dir: Path, database_url: str
) -> None:
    (project_dir / "manifests" / "hakiri.toml").write_text('[project]\nname = "p"\n')
    asked = logged(project_dir, database_url, "WARNING")
    assert "WARNING:psycopg" in asked
    assert "ERROR:sqlalchemy.pool" in asked
    assert logged(project_dir, database_url, "") == ""
