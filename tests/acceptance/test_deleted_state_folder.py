"""`.hakiri` is deleted while commands use it. The next apply ends with each row of the source once.

`HAKIRI_SOAK_KILLS` says how often, `HAKIRI_SOAK_SEED` repeats a run.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from random import Random

import pytest

from hakiri_dagster.engine.postgres_location import find
from hakiri_dagster.engine.postgres_settings import free_port
from tests.acceptance.command_line import Done, ProjectFolder, eventually
from tests.acceptance.conftest import NewProject
from tests.acceptance.interface import answers

ROUNDS = int(os.environ.get("HAKIRI_SOAK_KILLS", "1"))
SEED = os.environ.get("HAKIRI_SOAK_SEED") or str(Random().randrange(1_000_000))
TABLES = ("items", "log")
NOBODY = 65534
AS_NOBODY = (
    "setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups",
    "--inh-caps=+dac_read_search", "--ambient-caps=+dac_read_search",
)  # fmt: skip
"""It may read root's Python, and is no root otherwise."""


def may_become_nobody() -> bool:
    """Who is no root is an ordinary user already, and a container may keep root from handing on what it may."""
    return os.geteuid() == 0 and subprocess.run([*AS_NOBODY, "true"], check=False).returncode == 0


class Exports:
    """Two tables of files: one that is keyed, and one whose rows would be doubled by a second load."""

    def __init__(self, project: ProjectFolder) -> None:
        self.project = project
        self.files = 0
        tables = [{"name": "items", "primary_key": ["id"]}, {"name": "log", "load": {"mode": "append"}}]
        source = {"connector": "files", "config": {"path": "exports", "format": "csv"}}
        project.pipeline({"id": "exports", "source": source, "tables": tables})

    @classmethod
    def at(cls, root: Path, other: Exports) -> Exports:
        """The same project after a move."""
        moved = cls(ProjectFolder(root, other.project.env, other.project.mark))
        moved.files = other.files
        return moved

    def add_file(self) -> None:
        self.files += 1
        rows = "".join(f"{self.files * 1000 + number},x\n" for number in range(50))
        for table in TABLES:
            self.project.file(f"exports/{table}/{self.files:03}.csv", f"id,v\n{rows}")

    def delete_state(self) -> None:
        """As people do it: once more, where a process has written into it meanwhile."""
        while self.project.state.exists():
            subprocess.run(["rm", "-rf", self.project.state], stderr=subprocess.DEVNULL, check=False)

    def apply_and_compare(self) -> None:
        done = self.project.hakiri("apply", "--json")
        assert done.code == 0, done
        for table in TABLES:
            counts = self.project.rows(f"SELECT count(*), count(DISTINCT id) FROM public.{table}")
            assert counts == [(self.files * 50, self.files * 50)], (table, SEED)


@pytest.fixture
def exports(new_project: NewProject, request: pytest.FixtureRequest) -> Iterator[Exports]:
    project = new_project("deleted-state")
    project.file("manifests/hakiri.toml", '[project]\nname = "exports"\n')
    if request.param == "closed folder":
        project.root.chmod(0o700)
    if request.param == "ordinary user" and may_become_nobody():
        project.prefix, project.env = AS_NOBODY, {"HOME": str(project.root)}
        shutil.chown(project.root, NOBODY, NOBODY)
    yield Exports(project)
    project.kill_everything()
    home = find(project.state / "postgres")
    if home is not None and not home.cluster.is_relative_to(project.root):
        shutil.rmtree(home.cluster)


def assert_plain(done: Done) -> None:
    assert done.code in (0, 1), done
    assert "Traceback" not in done.out + done.err, done
    assert done.code == 0 or "hint:" in done.err, done


@pytest.mark.parametrize("exports", ["open folder", "closed folder", "ordinary user"], indirect=True)
def test_deleted_at_any_moment_of_an_apply_the_next_one_is_exact(exports: Exports) -> None:
    print(f"\n{ROUNDS} deletions, HAKIRI_SOAK_SEED={SEED}")  # noqa: T201  # how to repeat it
    random, project = Random(SEED), exports.project
    exports.add_file()
    began = time.monotonic()
    exports.apply_and_compare()
    seconds = time.monotonic() - began
    for _ in range(ROUNDS):
        exports.add_file()
        apply = project.start("apply")
        with suppress(subprocess.TimeoutExpired):
            apply.wait(random.uniform(0, seconds))
        exports.delete_state()
        beside = project.start("apply") if random.random() < 0.3 else None
        assert_plain(project.finish(apply))
        if beside is not None:
            assert_plain(project.finish(beside))
        exports.apply_and_compare()
    project.assert_no_process_is_left()


@pytest.mark.parametrize("exports", ["open folder"], indirect=True)
def test_serve_ends_with_an_error_when_its_state_is_deleted(exports: Exports) -> None:
    port, project = free_port(), exports.project
    exports.add_file()
    serve = project.start("serve", "--port", str(port))
    assert eventually(lambda: answers(port) or serve.poll() is not None)
    exports.delete_state()
    done = project.finish(serve)
    assert (done.code, "Traceback" in done.err) == (1, False), done
    assert f"{project.state}: the state folder was deleted" in done.err
    project.assert_no_process_is_left()
    exports.apply_and_compare()


@pytest.mark.parametrize("exports", ["closed folder"], indirect=True)
def test_each_command_works_after_the_deletion(exports: Exports) -> None:
    project = exports.project
    exports.add_file()
    exports.apply_and_compare()
    for command in (["postgres", "stop"], ["plan"], ["postgres", "psql", "-XAtc", "SELECT 1"]):
        exports.delete_state()
        assert_plain(project.hakiri(*command))
    moved = project.root.rename(project.root.with_name(f"{project.root.name}-moved"))
    try:
        Exports.at(moved, exports).apply_and_compare()
    finally:
        moved.rename(project.root)
