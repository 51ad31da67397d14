"""`hakiri serve`: Dagster's UI and daemon, a Spark Connect server, PostgreSQL, the inbox; all of them stop together."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path

from hakiri_dagster.cli.opening import opened_project
from hakiri_dagster.cli.serve_lock import the_only_serve
from hakiri_dagster.engine.connect_server import ConnectServer, accepts, connect_server
from hakiri_dagster.engine.postgres_settings import free_port, is_free
from hakiri_dagster.engine.spark_config import is_remote
from hakiri_dagster.errors import EngineError, UsageError
from hakiri_dagster.manifest.tables import Project
from hakiri_dagster.orchestration.dagster_home import prepare_home, psycopg2_url
from hakiri_dagster.pipeline.runtime import Runtime
from hakiri_dagster.pipeline.survey import remember
from hakiri_dagster.settings import Settings

_STOP_SECONDS = 20
_LOOK_SECONDS = 0.5
_RESTART_PAUSE_SECONDS = 5

# The kernel ends the child when we end, however we end; a daemon that lived on would go on starting loads.
_DIE_WITH_US = """
import ctypes, os, signal, sys
PR_SET_PDEATHSIG = 1
ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGTERM)
if os.getppid() == int(sys.argv[1]):
    os.execv(sys.argv[2], sys.argv[2:])
"""


def serve(root: Path, port: int, inbox_host: str, inbox_port: int) -> int:
    project = opened_project(root)
    settings = Settings.from_env()
    with ExitStack() as stack:
        stack.enter_context(the_only_serve(project.state_dir, port))
        _refuse_taken(port, "--port")
        inbox = _inbox(project, inbox_host, inbox_port)
        spark = None if is_remote(settings) else stack.enter_context(connect_server(settings, project.state_dir))
        if spark is not None:
            os.environ.update(spark.client_environment)
        runtime = stack.enter_context(Runtime(project, Settings.from_env()))
        runtime.sweep()
        print("planning …", file=sys.stderr)
        for _, survey in runtime.plan(project.tables).surveys:  # sources that are down come later
            remember(runtime.audit, survey, survey.due)  # partitions begin where the stored plan does
        home = prepare_home(root, psycopg2_url(runtime.dagster_url), project.max_parallel_chunks)
        stack.enter_context(runtime.keep_server())
        code_port = free_port(None)
        children = stack.enter_context(_children({**_commands(home, code_port, port), **inbox}, home))
        if inbox:
            print(f"Webhooks: POST http://{inbox_host}:{inbox_port}/hooks/<pipeline id>", file=sys.stderr)
        _watch(children, spark, port)
    return 0


def _refuse_taken(port: int, option: str) -> None:
    if not is_free(port):
        raise UsageError(
            f"port {port} is in use by another program",
            hint=f"end that one, or choose another port: hakiri serve {option} {free_port(port + 1)}",
        )


def _inbox(project: Project, host: str, port: int) -> dict[str, list[str]]:
    """Where a pipeline takes webhooks."""
    if not any(pipeline.webhooks for pipeline in project.pipelines):
        return {}
    _refuse_taken(port, "--inbox-port")
    hakiri = [str(Path(sys.executable).parent / "hakiri"), "--project", str(project.root)]
    return {"inbox": [*hakiri, "receive", "--port", str(port), "--host", host]}


def _commands(home: Path, code_port: int, port: int) -> dict[str, list[str]]:
    """One code server for both UI and daemon; each would start one of its own otherwise."""
    workspace = home / "workspace.yaml"
    workspace.write_text(
        f"load_from:\n  - grpc_server: {{host: 127.0.0.1, port: {code_port}, location_name: hakiri}}\n"
    )
    bin_dir = Path(sys.executable).parent
    return {
        "code server": [
            str(bin_dir / "dagster"), "code-server", "start", "-h", "127.0.0.1", "-p", str(code_port),
            "-m", "hakiri_dagster.definitions", "--location-name", "hakiri",
        ],
        "UI": [str(bin_dir / "dagster-webserver"), "-h", "127.0.0.1", "-p", str(port), "-w", str(workspace)],
        "daemon": [str(bin_dir / "dagster-daemon"), "run", "-w", str(workspace)],
    }  # fmt: skip


Children = dict[str, "subprocess.Popen[bytes]"]


@contextmanager
def _children(commands: dict[str, list[str]], home: Path) -> Iterator[Children]:
    """In sessions of their own, so that Ctrl-C reaches us alone and they are stopped in order."""
    children: Children = {}
    try:
        for name, command in commands.items():
            log = (home / f"{name.replace(' ', '-')}.log").open("ab")
            children[name] = subprocess.Popen(
                [sys.executable, "-c", _DIE_WITH_US, str(os.getpid()), *command],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
            log.close()
        yield children
    finally:
        _stop(list(reversed(children.values())))


def _stop(children: Sequence[subprocess.Popen[bytes]]) -> None:
    for child in children:
        _signal(child, signal.SIGINT)
    deadline = time.monotonic() + _STOP_SECONDS
    for child in children:
        try:
            child.wait(max(0.1, deadline - time.monotonic()))
        except subprocess.TimeoutExpired:
            _signal(child, signal.SIGKILL)
            child.wait()
        _signal(child, signal.SIGKILL)  # runs that it started, which outlive it


def _signal(child: subprocess.Popen[bytes], number: signal.Signals) -> None:
    try:
        os.killpg(child.pid, number)
    except ProcessLookupError:
        return


def _refuse_ended(children: Children) -> None:
    for name, child in children.items():
        if child.poll() is not None:
            raise EngineError(
                f"the {name} ended with exit code {child.returncode}",
                hint=f"see .hakiri/dagster/{name.replace(' ', '-')}.log",
            )


def _watch(children: Children, spark: ConnectServer | None, port: int) -> None:
    try:
        while not accepts(port):
            _refuse_ended(children)
            time.sleep(_LOOK_SECONDS)
        print(f"Dagster's UI: http://127.0.0.1:{port}  (Ctrl-C stops everything)", file=sys.stderr, flush=True)
        while True:
            _refuse_ended(children)
            if spark is not None and not spark.alive():
                _start_again(spark)
            time.sleep(_LOOK_SECONDS)
    except KeyboardInterrupt:
        print("stopping …", file=sys.stderr)


def _start_again(spark: ConnectServer) -> None:
    """Runs wait for it a while. The rest of what serves goes on even if it cannot be had now."""
    print("the Spark Connect server is gone: it is started again …", file=sys.stderr, flush=True)
    try:
        spark.restart()
    except EngineError as error:
        print(f"{error}\nit is tried again", file=sys.stderr, flush=True)
        time.sleep(_RESTART_PAUSE_SECONDS)
    else:
        print("the Spark Connect server is up again", file=sys.stderr, flush=True)
