"""The project's own server survives whatever happens to it and to those who use it, and never outlives its use."""

from __future__ import annotations

import multiprocessing
import os
import pwd
import shutil
import socket
import stat
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import psutil
import psycopg
import pytest

from hakiri_dagster.engine import embedded_postgres, postgres_account, postgres_cluster
from hakiri_dagster.engine.embedded_postgres import Server, hold
from hakiri_dagster.engine.process_identity import ProcessIdentity
from hakiri_dagster.errors import EngineError
from tests.integration.engine.conftest import copy_programs

HOLDER = """
import sys
from pathlib import Path
from hakiri_dagster.engine.embedded_postgres import hold
with hold(Path(sys.argv[1]), durable=False) as server:
    print(server.port, flush=True)
    sys.stdin.read()
"""


@pytest.fixture
def directory(open_folder: Path) -> Iterator[Path]:
    folder = Path(tempfile.mkdtemp(prefix="server-", dir=open_folder))
    folder.chmod(0o755)
    yield folder / "postgres"
    with suppress(EngineError):
        embedded_postgres.stop(folder / "postgres")
    shutil.rmtree(folder)


@contextmanager
def another_holder(directory: Path) -> Iterator[subprocess.Popen[str]]:
    holder = start_holder(directory)
    assert holder.stdout is not None
    assert holder.stdout.readline()
    yield holder
    holder.communicate()


def start_holder(directory: Path) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", HOLDER, str(directory)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )


def select(server: Server, query: str = "SELECT 1") -> object:
    with psycopg.connect(server.url("postgres"), autocommit=True) as connection:
        row = connection.execute(query.encode()).fetchone()
        return row[0] if row else None


def kill_postmaster(server: Server) -> None:
    postmaster = psutil.Process(int((server.home.data / "postmaster.pid").read_text().split()[0]))
    postmaster.kill()
    while postmaster.is_running() and postmaster.status() != psutil.STATUS_ZOMBIE:
        os.sched_yield()


def test_the_last_holder_to_leave_stops_the_server(directory: Path) -> None:
    with hold(directory, durable=False) as server:
        with another_holder(directory):
            pass
        assert select(server) == 1
    assert not embedded_postgres.is_running(directory)


def test_a_holder_that_leaves_first_does_not_stop_it_for_the_others(directory: Path) -> None:
    with another_holder(directory):
        with hold(directory, durable=False):
            pass
        assert embedded_postgres.is_running(directory)
    assert not embedded_postgres.is_running(directory)


def test_one_process_may_hold_it_twice(directory: Path) -> None:
    with hold(directory, durable=False) as server:
        with hold(directory, durable=False):
            pass
        assert select(server) == 1


def test_a_killed_starter_neither_stops_the_server_nor_keeps_it_up(directory: Path) -> None:
    with another_holder(directory) as starter:
        with hold(directory, durable=False) as server:
            starter.kill()
            starter.wait()
            assert select(server) == 1
        assert not embedded_postgres.is_running(directory)


def test_when_its_only_holder_is_killed_it_is_stopped_though_nobody_comes_again(directory: Path) -> None:
    holder = start_holder(directory)
    assert holder.stdout is not None
    assert holder.stdout.readline()
    postmaster = psutil.Process(int((directory / "data" / "postmaster.pid").read_text().split()[0]))
    holder.kill()
    holder.communicate()
    while postmaster.is_running() and postmaster.status() != psutil.STATUS_ZOMBIE:
        os.sched_yield()
    assert "database system is shut down" in (directory / "server.log").read_text()


@pytest.mark.parametrize("seconds", [0.2, 0.35, 0.5, 0.7])
def test_a_starter_killed_at_any_moment_of_the_first_start_leaves_nothing_in_the_way(
    directory: Path, seconds: float
) -> None:
    starter = start_holder(directory)
    with suppress(subprocess.TimeoutExpired):
        starter.wait(seconds)
    starter.kill()
    starter.communicate()
    with hold(directory, durable=False) as server:
        assert select(server) == 1
    assert not embedded_postgres.is_running(directory)


def test_a_killed_server_is_started_again_with_all_that_was_committed(directory: Path) -> None:
    with hold(directory, durable=False) as server:
        with psycopg.connect(server.url("postgres")) as connection:
            connection.execute("CREATE TABLE kept AS SELECT 7 AS n")
        kill_postmaster(server)
        with hold(directory, durable=False) as again:
            assert select(again, "SELECT n FROM kept") == 7


def test_a_holder_gets_a_killed_server_back_by_itself(directory: Path) -> None:
    with hold(directory, durable=False) as server:
        kill_postmaster(server)
        server.ensure_running()
        assert select(server) == 1


def test_a_server_that_is_kept_running_comes_back_though_nobody_asks(directory: Path) -> None:
    with hold(directory, durable=False) as server, server.kept_running():
        for _ in range(2):
            kill_postmaster(server)
            while postgres_cluster.is_gone(server.home):
                os.sched_yield()
            server.ensure_running()  # waits until it answers
            assert select(server) == 1


def test_a_backend_that_computes_on_without_its_postmaster_does_not_block_the_next_start(directory: Path) -> None:
    with hold(directory, durable=False) as server:
        connection = psycopg.connect(server.url("postgres"), autocommit=True)
        backend = psutil.Process(connection.info.backend_pid)
        connection.pgconn.send_query(b"DO $$ BEGIN LOOP PERFORM 1; END LOOP; END $$")
        kill_postmaster(server)
        server.ensure_running()
        assert select(server) == 1
        assert not backend.is_running() or backend.status() == psutil.STATUS_ZOMBIE
        connection.close()


def test_ten_who_enter_at_once_share_one_server(directory: Path) -> None:
    holders = [start_holder(directory) for _ in range(10)]
    ports = {holder.stdout.readline() for holder in holders if holder.stdout}
    assert len(ports) == 1
    for holder in holders:
        holder.communicate()
    assert [holder.returncode for holder in holders] == [0] * 10
    assert not embedded_postgres.is_running(directory)
    log = (directory / "server.log").read_text()
    assert log.count("starting PostgreSQL") == 1


def test_a_pid_file_that_names_a_foreign_process_is_not_believed(directory: Path) -> None:
    with hold(directory, durable=False) as server:
        pid_file = server.home.data / "postmaster.pid"
        kill_postmaster(server)
        lines = pid_file.read_text().splitlines()
        pid_file.write_text("\n".join([str(os.getppid()), *lines[1:]]))
        server.ensure_running()
        assert select(server) == 1
    assert psutil.pid_exists(os.getppid())


@pytest.mark.parametrize("cure", ["zombie", "elsewhere"])
def test_neither_a_zombie_nor_another_servers_postmaster_is_taken_for_ours(directory: Path, cure: str) -> None:
    with hold(directory, durable=False) as server:
        home = server.home
    imposter = directory.parent / "postgres-imposter"
    shutil.copy(shutil.which("sleep") or "/bin/sleep", imposter)
    seconds, folder = ("0", home.data) if cure == "zombie" else ("60", directory.parent)
    process = subprocess.Popen([imposter, seconds], cwd=folder)
    try:
        if cure == "zombie":
            os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
        pid_file = home.data / "postmaster.pid"
        pid_file.write_text(f"{process.pid}\n{home.data}\n0\n{home.port}\n\n127.0.0.1\n0 0\nready\n")
        with hold(directory, durable=False) as server:
            assert select(server) == 1
        assert cure == "zombie" or process.poll() is None
    finally:
        process.kill()
        process.wait()


def test_a_port_that_somebody_took_meanwhile_is_left_to_them(directory: Path) -> None:
    with hold(directory, durable=False) as server:
        before = server.port
    with socket.socket() as squatter:
        squatter.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        squatter.bind(("127.0.0.1", before))
        squatter.listen()
        with hold(directory, durable=False) as server:
            assert server.port != before
            assert select(server) == 1
            after = server.port
    with hold(directory, durable=False) as server:
        assert server.port == after


def test_the_password_is_private_again_at_the_next_use_and_shows_nowhere(directory: Path) -> None:
    with hold(directory, durable=False) as server:
        server.home.password_file.chmod(0o644)
        with hold(directory, durable=False):
            assert stat.S_IMODE(server.home.password_file.stat().st_mode) == 0o600
        assert server.home.password not in repr(server)


def test_nobody_enters_without_the_password(directory: Path) -> None:
    with hold(directory, durable=False) as server:
        wrong = server.url("postgres").replace(server.home.password, "wrong")
        with pytest.raises(psycopg.OperationalError, match="password authentication failed"):
            psycopg.connect(wrong)


def test_a_password_that_was_changed_behind_its_back_is_told_at_once(directory: Path) -> None:
    with hold(directory, durable=False) as server:
        kept = server.home.password_file.read_text()
        server.home.password_file.write_text("wrong")
        with pytest.raises(EngineError, match="refuses the password"):
            server.ensure_running()
        server.home.password_file.write_text(kept)


def test_a_server_started_for_good_stays_until_it_is_stopped(directory: Path) -> None:
    embedded_postgres.start(directory)
    with hold(directory):
        pass
    assert embedded_postgres.is_running(directory)
    assert embedded_postgres.stop(directory) == ()
    assert not embedded_postgres.is_running(directory)


def test_stopping_it_names_those_who_still_need_it_and_leaves_it_to_the_last(directory: Path) -> None:
    embedded_postgres.start(directory)
    with hold(directory) as server:
        assert embedded_postgres.stop(directory) == (ProcessIdentity.current(),)
        assert select(server) == 1
    assert not embedded_postgres.is_running(directory)


def test_a_server_that_cannot_start_says_what_its_log_says(directory: Path) -> None:
    with hold(directory, durable=False) as server:
        version = server.home.data / "PG_VERSION"
    version.write_text("12\n")
    with pytest.raises(EngineError) as raised, hold(directory, durable=False):
        pass
    assert "initialized by PostgreSQL version 12" in str(raised.value)
    assert "server.log" in str(raised.value)


def test_what_a_killed_initdb_left_is_cleared_away(directory: Path) -> None:
    left = directory / "new-1"
    (left / "data").mkdir(parents=True)
    directory.chmod(0o755)
    (left / "password").touch()
    with hold(directory, durable=False) as server:
        assert select(server) == 1
    assert not left.exists()


def test_ensuring_a_database_twice_makes_one_whatever_its_name(directory: Path) -> None:
    with hold(directory, durable=False) as server:
        for _ in range(2):
            server.ensure_database('o\'dd "name"')
        with psycopg.connect(server.url('o\'dd "name"')) as connection:
            assert connection.info.dbname == 'o\'dd "name"'


def test_it_runs_as_designed(directory: Path) -> None:
    expected = {
        "listen_addresses": "127.0.0.1", "max_connections": "300", "fsync": "on", "wal_level": "minimal",
        "TimeZone": "UTC", "server_encoding": "UTF8", "client_connection_check_interval": "2s",
        "unix_socket_directories": "",
    }  # fmt: skip
    with hold(directory) as server, psycopg.connect(server.url("postgres")) as connection:
        shown = {name: connection.execute(f"SHOW {name}".encode()).fetchone() for name in expected}
        assert {name: row[0] for name, row in shown.items() if row} == expected
        assert connection.execute("SELECT upper('äöü')").fetchone() == ("ÄÖÜ",)
        assert psutil.Process(connection.info.backend_pid).uids().real != 0


def test_an_ordinary_user_needs_nobodys_help(directory: Path, reachable_programs: Path) -> None:
    directory.mkdir()
    # Forked, not started: the tests' Python may itself lie where other users cannot go, so there is no watcher.
    child = multiprocessing.get_context("fork").Process(target=_hold_as_ordinary_user, args=(directory,))
    child.start()
    child.join()
    assert child.exitcode == 0


def _hold_as_ordinary_user(directory: Path) -> None:
    if os.geteuid() == 0:
        nobody = pwd.getpwnam("nobody")
        os.chown(directory, nobody.pw_uid, nobody.pw_gid)
        os.setgroups([])
        os.setgid(nobody.pw_gid)
        os.setuid(nobody.pw_uid)
        sys.executable = shutil.which("true") or sys.executable
    with hold(directory, durable=False) as server:
        assert select(server) == 1
        assert server.home.data.stat().st_uid == os.getuid()


def test_a_project_in_a_closed_folder_has_its_data_where_the_server_can_reach_them(directory: Path) -> None:
    closed = directory.parent / "closed"
    closed.mkdir(mode=0o700)
    with hold(closed / "postgres", durable=False) as server:
        assert select(server) == 1
        cluster = server.home.cluster
    moved = closed.rename(directory.parent / "moved")
    with hold(moved / "postgres", durable=False) as server:
        assert select(server) == 1
    assert cluster == closed / "postgres" or stat.S_IMODE(closed.parent.stat().st_mode) == 0o755
    if cluster != closed / "postgres":
        shutil.rmtree(cluster)


def test_binaries_in_a_closed_folder_are_copied_to_an_open_one(
    directory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    closed = copy_programs(directory.parent / "venv")
    closed.chmod(0o700)
    monkeypatch.setattr(postgres_account, "INSTALLED_IN", closed)
    monkeypatch.setattr(postgres_account, "SHARED_STATE", directory.parent / "shared")
    with hold(directory, durable=False) as server:
        assert select(server) == 1


def test_a_folder_that_is_reached_through_a_link_is_served_the_same(directory: Path):
    directory.mkdir()
    link = directory.with_name("link")
    link.symlink_to(directory)
    with hold(link, durable=False) as through_link, hold(directory, durable=False) as directly:
        assert through_link.port == directly.port
        assert psycopg.connect(through_link.url("postgres")).execute("SELECT 1").fetchone() == (1,)
