"""One Spark for many processes. Clients run in processes of their own: classic and Connect do not mix in one."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from hakiri_dagster.engine.connect_server import TOKEN_VARIABLE, ConnectServer, connect_server
from hakiri_dagster.settings import Settings
from tests.integration.connectors.rest.api_server import in_turn, said, serving

CLIENT = """
import sys
from pathlib import Path
from hakiri_dagster.engine.spark import open_session
from hakiri_dagster.engine.spark_failures import translate_spark_errors
from hakiri_dagster.errors import HakiriError
from hakiri_dagster.settings import Settings
def count():
    with translate_spark_errors("shop/orders"):
        session = open_session(Settings.from_env(), Path(sys.argv[1]))
        return session.range(9).mapInArrow(lambda batches: batches, "id bigint").count()
for line in sys.stdin:
    try:
        print(count(), flush=True)
    except HakiriError as error:
        print(error.kind, flush=True)
"""

INTERRUPTED = """
import sys, time
from pathlib import Path
from hakiri_dagster.engine.spark import interrupt_attempt, open_session, tag_attempt
from hakiri_dagster.settings import Settings
session = open_session(Settings.from_env(), Path(sys.argv[1]))
if sys.argv[2] == "dies":
    running = Path(sys.argv[3])
    def linger(batches):
        running.touch()
        time.sleep(600)
        yield from batches
    with tag_attempt(session, "attempt-1"):
        session.range(1).coalesce(1).mapInArrow(linger, "id bigint").count()
print(session.range(4).count())
interrupt_attempt(session, "attempt-1")
"""

WALKED = """
import sys
from pathlib import Path
from hakiri_dagster.connectors.contract import Known
from hakiri_dagster.connectors.network import Network
from hakiri_dagster.connectors.rest.connector import REST
from hakiri_dagster.engine.spark import open_session
from hakiri_dagster.engine.spark_failures import translate_spark_errors
from hakiri_dagster.errors import HakiriError
from hakiri_dagster.planning.chunks import WHOLE
from hakiri_dagster.settings import Settings
config = {"base_url": sys.argv[2], "pagination": {"type": "page"}, "retry": {"retries": 0}}
table = REST.table(
    config=config, name="things", path=None, columns={}, label="api/things", network=Network(allow_loopback=True)
)
session = open_session(Settings.from_env(), Path(sys.argv[1]))
found = table.discover(cursor=None, known=Known(), spark=lambda: session)
for _ in range(2):
    try:
        with translate_spark_errors("api/things"):
            print([row.id for row in table.read(session, found.schema, None, [WHOLE], {}).frame.collect()])
    except HakiriError as error:
        print(error.kind, error.where, error.what.rpartition(": ")[2])
"""

OWNER = """
import sys
from pathlib import Path
from hakiri_dagster.engine.connect_server import connect_server
from hakiri_dagster.settings import Settings
with connect_server(Settings(), Path(sys.argv[1])) as server:
    print(server.port, flush=True)
    sys.stdin.read()
"""


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ConnectServer]:
    with connect_server(Settings(), tmp_path_factory.mktemp("connect state")) as running:
        yield running


def client(server: ConnectServer, *, token: str | None = None) -> subprocess.Popen[str]:
    environment = {**os.environ, **server.client_environment, TOKEN_VARIABLE: token or server.token}
    return subprocess.Popen(
        [sys.executable, "-c", CLIENT, str(server.state_dir)],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment,
    )  # fmt: skip


def ask(process: subprocess.Popen[str]) -> str:
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.write("count\n")
    process.stdin.flush()
    return process.stdout.readline().strip()


def jvm_of(pid: int) -> psutil.Process:
    return next(p for p in psutil.Process(pid).children(recursive=True) if p.name() == "java")


def test_its_clients_count_on_it_one_after_the_other(server: ConnectServer) -> None:
    for _ in range(2):
        with client(server) as process:
            assert ask(process) == "9"


def test_nobody_gets_in_without_the_token(server: ConnectServer) -> None:
    with client(server, token="wrong") as process:
        assert ask(process) == "permanent"
    assert server.token not in repr(server)


def test_a_client_outlives_a_server_that_was_killed_and_started_again(server: ConnectServer) -> None:
    with client(server) as process:
        assert ask(process) == "9"
        url = server.url
        assert server._process is not None
        jvm_of(server._process.pid).kill()
        server._process.wait()
        assert not server.alive()
        server.restart()
        assert (server.alive(), server.url) == (True, url)
        assert ask(process) == "9"


def test_what_a_killed_client_left_running_is_interrupted_by_the_next(server: ConnectServer, tmp_path: Path) -> None:
    running = tmp_path / "running"
    command = [sys.executable, "-c", INTERRUPTED, str(tmp_path)]
    environment = {**os.environ, **server.client_environment}
    with subprocess.Popen([*command, "dies", str(running)], env=environment) as killed:
        while not running.exists():
            assert killed.poll() is None
            os.sched_yield()
        killed.kill()
    done = subprocess.run([*command, "follows"], env=environment, capture_output=True, text=True, check=True)
    assert done.stdout == "4\n"


def test_its_workers_walk_over_the_pages_of_an_api(server: ConnectServer, tmp_path: Path) -> None:
    pages = [said([{"id": 1}]), said([{"id": 1}]), said([{"id": 2}]), said([])]
    with serving(in_turn(*pages, said({"error": "gone"}, 410))) as api:
        done = subprocess.run(
            [sys.executable, "-c", WALKED, str(tmp_path), api.url],
            env={**os.environ, **server.client_environment}, capture_output=True, text=True, check=True,
        )  # fmt: skip
    assert done.stdout.splitlines() == ["[1, 2]", 'permanent api/things "gone"}']


def test_it_dies_with_whoever_started_it_even_by_kill_9(tmp_path: Path) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", OWNER, str(tmp_path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as owner:
        assert owner.stdout is not None
        assert owner.stdout.readline()
        jvm = jvm_of(owner.pid)
        owner.kill()
    gone, _ = psutil.wait_procs([jvm], timeout=12)
    assert gone or jvm.status() == psutil.STATUS_ZOMBIE
