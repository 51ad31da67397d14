"""`.hakiri` is deleted, moved, copied and damaged. The data are attached again or made again, and never shared."""

from __future__ import annotations

import multiprocessing
import os
import pwd
import random
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import psutil
import psycopg
import pytest

from hakiri_dagster.cli import postgres_commands
from hakiri_dagster.engine import embedded_postgres, postgres_account
from hakiri_dagster.engine.doctor import check_data_folders
from hakiri_dagster.engine.embedded_postgres import hold
from hakiri_dagster.errors import EngineError, HakiriError, UsageError

SEED = int(os.environ.get("HAKIRI_TEST_SEED") or random.SystemRandom().randrange(1 << 32))
ROUNDS = int(os.environ.get("HAKIRI_TEST_ROUNDS") or 2)
AS_ROOT = os.geteuid() == 0
FORK = multiprocessing.get_context("fork")
PLAIN_ERROR, LOST_CONNECTION, KILLED = 3, 4, -9

User = Literal["this user", "an ordinary user"]


@dataclass(frozen=True)
class Project:
    root: Path
    user: User = "this user"

    @property
    def state(self) -> Path:
        return self.root / ".hakiri"

    @property
    def directory(self) -> Path:
        return self.state / "postgres"

    def delete_state(self) -> None:
        """As people do it: once more, where a process has written into it meanwhile."""
        while self.state.exists():
            subprocess.run(["rm", "-rf", self.state], stderr=subprocess.DEVNULL, check=False)

    def start(self, function: Callable[..., object], *arguments: Any) -> Any:
        """In a process of the project's user. A fork, because the interpreter may be out of that user's reach."""
        child = FORK.Process(target=_run_as, args=(self.user, function, self.directory, *arguments))
        child.start()
        return child

    def call(self, function: Callable[..., object]) -> Any:
        ours, theirs = FORK.Pipe()
        child = self.start(lambda directory: theirs.send(function(directory)))
        theirs.close()
        try:
            return ours.recv()
        finally:
            child.join()

    def rows(self, project: str | None = "shop") -> list[int]:
        with hold(self.directory, project=project, durable=False) as server:
            return numbers_of(server.url("postgres"))

    def insert(self, *numbers: int, project: str | None = "shop") -> None:
        with (
            hold(self.directory, project=project, durable=False) as server,
            psycopg.connect(server.url("postgres")) as connection,
        ):
            connection.execute("CREATE TABLE IF NOT EXISTS numbers (n int PRIMARY KEY)")
            connection.cursor().executemany("INSERT INTO numbers VALUES (%s)", [(n,) for n in numbers])


def _run_as(user: User, function: Callable[..., object], *arguments: Any) -> None:
    """A traceback ends with exit code 1, an error as the command line prints it does not."""
    if user == "an ordinary user" and AS_ROOT:
        nobody = pwd.getpwnam("nobody")
        os.setgroups([])
        os.setgid(nobody.pw_gid)
        os.setuid(nobody.pw_uid)
        if not os.access(sys.executable, os.X_OK):
            sys.executable = shutil.which("true") or sys.executable  # there is no watcher then
    try:
        function(*arguments)
    except HakiriError as error:
        sys.exit(PLAIN_ERROR if error.hint else 1)
    except psycopg.Error:
        sys.exit(LOST_CONNECTION)


@pytest.fixture
def shared_state(open_folder: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """In the place of `/var/lib/hakiri`, whose folders are none of the tests' business."""
    folder = Path(tempfile.mkdtemp(prefix="shared-", dir=open_folder))
    folder.chmod(0o755)
    monkeypatch.setattr(postgres_account, "SHARED_STATE", folder)
    return folder


@pytest.fixture
def new_project(open_folder: Path, shared_state: Path) -> Iterator[Callable[..., Project]]:
    made: list[Path] = []

    def make(*, closed: bool = False, user: User = "this user") -> Project:
        parent = Path(tempfile.mkdtemp(prefix="state-", dir=open_folder))
        made.append(parent)
        root = parent / "project"
        (root / "manifests").mkdir(parents=True)
        root.chmod(0o755)
        if user == "an ordinary user" and AS_ROOT:
            nobody = pwd.getpwnam("nobody")
            os.chown(parent, nobody.pw_uid, nobody.pw_gid)
            os.chown(root, nobody.pw_uid, nobody.pw_gid)
        parent.chmod(0o700 if closed else 0o755)
        return Project(root, user)

    yield make
    for parent in [*made, shared_state]:
        for process in servers_below(parent):
            process.kill()
        shutil.rmtree(parent)


def servers_below(folder: Path) -> list[psutil.Process]:
    """The main process of each server, also of one whose folder was deleted or moved."""
    found = {}
    for process in psutil.process_iter():
        with suppress(psutil.Error):
            if process.name().startswith("postgres") and process.cwd().startswith(f"{folder}/"):
                found[process.pid] = process
    return [process for process in found.values() if process.ppid() not in found]


def numbers_of(url: str) -> list[int]:
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("CREATE TABLE IF NOT EXISTS numbers (n int PRIMARY KEY)")
        return [n for (n,) in connection.execute("SELECT n FROM numbers ORDER BY n").fetchall()]


def insert_until_killed(directory: Path, committed: Any) -> None:
    with (
        hold(directory, project="shop", durable=False) as server,
        psycopg.connect(server.url("postgres"), autocommit=True) as connection,
    ):
        connection.execute("CREATE TABLE IF NOT EXISTS numbers (n int PRIMARY KEY)")
        while True:
            connection.execute("INSERT INTO numbers VALUES (%s)", (committed.value + 1,))
            committed.value += 1


def read_numbers(directory: Path) -> list[int]:
    with hold(directory, project="shop", durable=False) as server:
        return numbers_of(server.url("postgres"))


@pytest.mark.parametrize("user", ["this user", "an ordinary user"])
@pytest.mark.parametrize("closed", [False, True], ids=["open folder", "closed folder"])
def test_a_folder_deleted_at_a_random_moment_stops_no_later_command(
    new_project: Callable[..., Project], reachable_programs: Path, closed: bool, user: User
) -> None:
    sys.stdout.write(f"HAKIRI_TEST_SEED={SEED}\n")
    moments = random.Random(f"{SEED} {closed} {user}")
    project = new_project(closed=closed, user=user)
    survives = closed and AS_ROOT and user == "this user"
    before = 0
    for _ in range(ROUNDS):
        committed = FORK.RawValue("i", before)
        worker = project.start(insert_until_killed, committed)
        worker.join(moments.uniform(0.0, 2.5))
        if moments.random() < 0.3:
            worker.kill()
        project.delete_state()
        if survives:
            worker.kill()  # it does not notice
        worker.join()
        assert worker.exitcode in (PLAIN_ERROR, LOST_CONNECTION, KILLED)
        found = project.call(read_numbers)
        before = len(found)
        assert found == list(range(1, before + 1))
        assert before in ((committed.value, committed.value + 1) if survives else (0,))
    while servers_below(project.root.parent):
        os.sched_yield()


def test_a_lost_file_of_a_running_server_is_made_again_and_no_row_is_lost(
    new_project: Callable[..., Project],
) -> None:
    project = new_project()
    project.insert(1, 2)
    lost = [("password", None), ("password", ""), ("port", None), ("port", "none")]
    for name, text in [*lost, ("lock", None), ("server.lock", None), ("data/postmaster.pid", None)]:
        server = embedded_postgres.start(project.directory)
        before = server.url("postgres")
        path = server.home.cluster / name
        path.unlink() if text is None else path.write_text(text)
        assert project.rows() == [1, 2], name
        assert len(servers_below(project.root)) == 1
        if name == "password":
            with pytest.raises(psycopg.OperationalError, match="authentication failed"):
                psycopg.connect(before)
    embedded_postgres.stop(project.directory)
    assert servers_below(project.root) == []


@pytest.mark.parametrize("running", [False, True], ids=["stopped", "running"])
@pytest.mark.parametrize("closed", [False, True], ids=["open folder", "closed folder"])
def test_a_moved_project_keeps_its_rows_and_its_only_server(
    new_project: Callable[..., Project], shared_state: Path, closed: bool, running: bool
) -> None:
    project = new_project(closed=closed)
    project.insert(1, 2)
    if running:
        embedded_postgres.start(project.directory)
    moved = Project(project.root.rename(project.root.with_name("moved")))
    assert moved.rows() == [1, 2]
    assert len(servers_below(project.root.parent) + servers_below(shared_state)) == int(running)
    if closed and AS_ROOT:
        moved.delete_state()
    assert moved.rows() == [1, 2]
    embedded_postgres.stop(moved.directory)
    (project.root / "manifests").mkdir(parents=True)
    assert project.rows() == []
    assert moved.rows() == [1, 2]


def test_a_holder_whose_project_is_moved_stops_the_server_where_it_is_then(
    new_project: Callable[..., Project],
) -> None:
    project = new_project()
    project.insert(1)
    with hold(project.directory, durable=False):
        moved = Project(project.root.rename(project.root.with_name("moved")))
    assert servers_below(project.root.parent) == []
    assert not project.root.exists()
    assert moved.rows() == [1]


@pytest.mark.parametrize("closed", [False, True], ids=["open folder", "closed folder"])
def test_a_copied_project_never_shares_the_rows_of_the_original(
    new_project: Callable[..., Project], closed: bool
) -> None:
    original = new_project(closed=closed)
    original.insert(1)
    copy = Project(original.root.with_name("copy"))
    subprocess.run(["cp", "-a", original.root, copy.root], check=True)
    if closed and AS_ROOT:
        original.delete_state()
        with pytest.raises(EngineError, match="of which this one is a copy") as raised:
            copy.rows()
        assert raised.value.hint is not None
        assert f"`rm -r {copy.directory}`" in raised.value.hint
        shutil.rmtree(copy.directory)
    copy.insert(2)
    assert original.rows() == [1]


def test_another_project_at_the_path_of_a_deleted_one_gets_data_of_its_own(
    new_project: Callable[..., Project], shared_state: Path
) -> None:
    project = new_project(closed=True)
    project.insert(1)
    project.delete_state()
    assert project.rows("another") == []
    project.delete_state()
    assert project.rows("another") == []
    assert project.rows("shop") == []  # a project that is renamed while it has its `.hakiri` stays the same
    if AS_ROOT:
        assert len(list(shared_state.glob("cluster-*"))) == 2


def test_a_location_that_names_a_foreign_folder_is_not_followed(
    new_project: Callable[..., Project], shared_state: Path
) -> None:
    project = new_project()
    foreign = shared_state.parent / "cluster-foreign"
    foreign.mkdir()
    project.directory.mkdir(parents=True)
    (project.directory / "location").write_text(f"{foreign}\n")
    assert project.rows() == []
    assert list(foreign.iterdir()) == []


def test_data_folders_of_deleted_projects_are_listed_and_removed_but_none_that_runs(
    new_project: Callable[..., Project], shared_state: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    if not AS_ROOT:
        assert postgres_commands.prune(confirmed=True) == 0  # only root has any
        return
    there, gone, running = (new_project(closed=True) for _ in range(3))
    for number, project in enumerate((there, gone, running)):
        project.insert(number)
    there.delete_state()
    embedded_postgres.start(running.directory)
    shutil.rmtree(gone.root)
    shutil.rmtree(running.root)
    check = check_data_folders()
    assert (check.ok, check.cure) == (True, "`hakiri postgres prune` removes them.")
    assert str(gone.root) in check.found
    assert str(running.root) in check.found
    assert str(there.root) not in check.found
    with pytest.raises(UsageError, match="nothing was removed"):
        postgres_commands.prune(confirmed=False)
    assert postgres_commands.prune(confirmed=True) == 1
    assert f"`hakiri --project {running.root} postgres stop`" in capsys.readouterr().err
    assert len(list(shared_state.glob("cluster-*"))) == 2
    postgres_commands.stop(running.root)
    assert postgres_commands.prune(confirmed=True) == 0
    assert postgres_commands.prune(confirmed=True) == 0
    assert check_data_folders().cure == ""
    assert there.rows() == [0]


def test_only_servers_of_the_deleted_folder_are_ended(new_project: Callable[..., Project]) -> None:
    """By the working directory that they have lost, not by a pid, a name or a path alone."""
    project, other = new_project(), new_project()
    program = project.root / "postgres"
    shutil.copy(shutil.which("sleep") or "/bin/sleep", program)
    folders = [other.directory / "data", project.root / "elsewhere", project.root]
    for folder in folders:
        folder.mkdir(parents=True, exist_ok=True)
    others = [subprocess.Popen([program, "600"], cwd=folder) for folder in folders]
    embedded_postgres.start(project.directory)
    try:
        project.delete_state()
        other.delete_state()
        folders[1].rmdir()
        assert len([p for p in servers_below(project.directory) if p.pid not in {o.pid for o in others}]) == 1
        assert project.rows() == []
        assert servers_below(project.directory) == []
        assert [process.poll() for process in others] == [None, None, None]
    finally:
        for process in others:
            process.kill()
            process.wait()


def test_stopping_ends_the_server_of_a_deleted_folder(new_project: Callable[..., Project]) -> None:
    project = new_project()
    embedded_postgres.start(project.directory)
    project.delete_state()
    assert embedded_postgres.stop(project.directory) == ()
    assert servers_below(project.root) == []
    assert not project.state.exists()


def damage_pg_version(project: Project) -> None:
    project.insert(1)
    (project.directory / "data" / "PG_VERSION").unlink()


def put_a_link_to_nowhere(project: Project) -> None:
    project.state.symlink_to(project.root / "nowhere")


def put_a_file(project: Project) -> None:
    project.state.write_text("")


def put_a_folder_for_the_password(project: Project) -> None:
    project.insert(1)
    (project.directory / "password").unlink()
    (project.directory / "password").mkdir()


def make_read_only(project: Project) -> None:
    project.root.chmod(0o555)


@pytest.mark.parametrize(
    ("spoil", "what", "hint"),
    [
        (damage_pg_version, "PG_VERSION is missing", "rm -r"),
        (put_a_link_to_nowhere, ".hakiri: File exists", "Put a folder in its place"),
        (put_a_file, ".hakiri/postgres: Not a directory", "Put a folder in its place"),
        (put_a_folder_for_the_password, "password: Is a directory", "hakiri doctor"),
        (make_read_only, ".hakiri: Permission denied", "run hakiri as the user who created it"),
    ],
)
def test_a_folder_that_cannot_be_used_is_an_error_that_names_it_and_what_helps(
    new_project: Callable[..., Project],
    reachable_programs: Path,
    spoil: Callable[[Project], None],
    what: str,
    hint: str,
) -> None:
    project = new_project(user="an ordinary user" if spoil is make_read_only else "this user")
    spoil(project)
    error = project.call(error_of)
    assert what in error
    assert hint in error


def error_of(directory: Path) -> str:
    with pytest.raises(EngineError) as raised, hold(directory, durable=False):
        pass
    return str(raised.value)


def test_data_that_the_servers_account_can_no_longer_reach_are_neither_lost_nor_made_again(
    new_project: Callable[..., Project],
) -> None:
    project = new_project()
    project.insert(1)
    project.root.chmod(0o700)
    if AS_ROOT:
        error = project.call(error_of)
        assert f"`chmod o+x {project.root}`" in error
        project.root.chmod(0o755)
    assert project.rows() == [1]
