"""`hakiri postgres start|stop|prune|psql`: the project's server for as long as the operator wants it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import typer

from hakiri_dagster.engine import embedded_postgres
from hakiri_dagster.engine.postgres_account import reachable_binaries
from hakiri_dagster.engine.postgres_cluster import SUPERUSER
from hakiri_dagster.engine.postgres_home import write_private
from hakiri_dagster.engine.postgres_location import orphaned_folders, remove_orphaned_folder
from hakiri_dagster.engine.state_folder import report_file_errors
from hakiri_dagster.errors import UsageError
from hakiri_dagster.manifest.project import read_project
from hakiri_dagster.orchestration.dagster_home import URL_VARIABLE, psycopg2_url, write_home
from hakiri_dagster.pipeline.runtime import embedded_storage_url

WAREHOUSE = "warehouse"
DATABASES = (WAREHOUSE, "dagster", "audit")

_MIB = 1 << 20


def start(project_dir: Path) -> int:
    """Also writes what a plain `dagster dev` in the project reads."""
    project = _project(project_dir)
    known = read_project(project).project  # its manifests may be wrong today
    server = embedded_postgres.start(server_directory(project), None if known is None else known.name)
    for database in DATABASES:
        server.ensure_database(database)
    with report_file_errors(project):
        home = write_home(project, None if known is None else known.max_parallel_chunks)
        write_environment(
            project / ".env", {URL_VARIABLE: psycopg2_url(embedded_storage_url(server)), "DAGSTER_HOME": str(home)}
        )
    print(f"PostgreSQL answers on 127.0.0.1:{server.port}; `hakiri postgres stop` stops it.", file=sys.stderr)
    print(f"{project / '.env'} tells `dagster dev` where it is.", file=sys.stderr)
    return os.EX_OK


def stop(project_dir: Path) -> int:
    holders = embedded_postgres.stop(server_directory(project_dir.absolute()))
    if holders:
        pids = ", ".join(str(holder.pid) for holder in holders)
        print(f"PostgreSQL stops when the processes that use it end: {pids}.", file=sys.stderr)
    else:
        print("PostgreSQL is stopped.", file=sys.stderr)
    return os.EX_OK


def prune(*, confirmed: bool) -> int:
    """A folder whose server runs stays, whatever was confirmed."""
    orphaned = orphaned_folders()
    if not orphaned:
        print("Every data folder outside of a project belongs to one.")
        return os.EX_OK
    for folder in orphaned:
        state = ", running" if folder.is_running else ""
        print(f"{folder.path}  {folder.size / _MIB:,.0f} MiB  of the project in {folder.owner.root}{state}")
    if not confirmed:
        if not sys.stdin.isatty():
            raise UsageError("nothing was removed: this needs a confirmation", hint="--yes removes what is listed")
        if not typer.confirm("Remove these folders with all their data?", err=True):
            return 1
    outcomes = {folder: remove_orphaned_folder(folder.path) for folder in orphaned}
    for folder, outcome in outcomes.items():
        if outcome == "running":
            stop_it = f"`hakiri --project {folder.owner.root} postgres stop`"
            print(f"{folder.path} is left: its server runs. {stop_it} stops it.", file=sys.stderr)
        elif outcome == "in use":
            print(f"{folder.path} is left: its project exists again.", file=sys.stderr)
        else:
            print(f"{folder.path} is removed.")
    return 1 if "running" in outcomes.values() else os.EX_OK


def psql(project_dir: Path, arguments: Sequence[str]) -> int:
    """The wheel's own psql, so that one can look at one's rows on a machine that has none."""
    project = _project(project_dir)
    known = read_project(project).project
    name = None if known is None else known.name
    with embedded_postgres.hold(server_directory(project), project=name) as server:
        server.ensure_database(WAREHOUSE)
        command = [str(reachable_binaries(server.home.account) / "psql"), *arguments]
        before = signal.signal(signal.SIGINT, lambda *_: None)  # Ctrl-C cancels a query of psql's, and does not end it
        try:
            return subprocess.run(command, env=_connection_variables(server), check=False).returncode
        finally:
            signal.signal(signal.SIGINT, before)


def _project(folder: Path) -> Path:
    """A server in a folder that somebody entered by mistake would be found by nobody."""
    if not (folder / "manifests").is_dir():
        raise UsageError(
            "this folder is not a project: it has no `manifests`",
            where=str(folder.absolute()),
            hint="run `hakiri init` to begin one, or name another folder with `--project`",
        )
    return folder.absolute()


def _connection_variables(server: embedded_postgres.Server) -> dict[str, str]:
    """In the environment: a command line, with its password, is open to all."""
    others = {name: value for name, value in os.environ.items() if not name.startswith("PG")}
    return {
        **others,
        "PGHOST": "127.0.0.1",
        "PGPORT": str(server.port),
        "PGUSER": SUPERUSER,
        "PGPASSWORD": server.home.password,
        "PGDATABASE": WAREHOUSE,
        "PGCLIENTENCODING": "UTF8",
    }


def server_directory(project: Path) -> Path:
    return project / ".hakiri" / "postgres"


def write_environment(path: Path, values: dict[str, str]) -> None:
    """Replaces these lines and leaves the operator's own as they are."""
    kept = [line for line in _lines(path) if line.partition("=")[0].strip() not in values]
    ours = [f"{name}={value}" for name, value in values.items()]
    write_private(path, "".join(f"{line}\n" for line in [*kept, *ours]))


def _lines(path: Path) -> list[str]:
    return path.read_text().splitlines() if path.exists() else []
