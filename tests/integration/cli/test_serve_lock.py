"""One `hakiri serve` a project, as long as its process lives."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from hakiri_dagster.cli.serve import serve
from hakiri_dagster.cli.serve_lock import the_only_serve
from hakiri_dagster.errors import UsageError

_HOLDS_IT = """
import sys
from pathlib import Path
from hakiri_dagster.cli.serve_lock import the_only_serve
with the_only_serve(Path(sys.argv[1]), 3000):
    print("held", flush=True)
    input()
"""


@contextmanager
def held_by_another(state_dir: Path) -> Iterator[subprocess.Popen[bytes]]:
    command = [sys.executable, "-c", _HOLDS_IT, str(state_dir)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"held\n"
        yield process
        process.kill()


def test_a_second_serve_is_refused_with_the_process_of_the_first_and_what_to_do(project_dir: Path) -> None:
    (project_dir / "manifests" / "hakiri.toml").write_text('[project]\nname = "p"\n')
    state = project_dir / ".hakiri"
    with held_by_another(state) as first, pytest.raises(UsageError) as refused:
        serve(project_dir, 3055, "127.0.0.1", 3056)
    assert f"by process {first.pid}" in str(refused.value)
    assert f"http://127.0.0.1:3000; end that one first: Ctrl-C where it runs, or `kill {first.pid}`" in str(
        refused.value
    )
    assert [path.name for path in (state / "dagster").iterdir()] == ["serve.lock"], "nothing of the first is written"


def test_a_serve_that_was_killed_is_no_longer_in_the_way(tmp_path: Path) -> None:
    with held_by_another(tmp_path) as first:
        first.kill()
        first.wait()
        with the_only_serve(tmp_path, 3001), pytest.raises(UsageError, match="served already"):
            the_only_serve(tmp_path, 3002).__enter__()
