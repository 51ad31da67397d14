"""`hakiri serve`: Dagster's UI and daemon, a Spark Connect server, PostgreSQL, the inbox; all of them stop together."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Sequence
from contextlib import ExitStack, closing
from pathlib import Path

from hakiri_dagster.cli.children import Children, children_of
from hakiri_dagster.cli.code_server import CODE_SERVER, CODE_SERVER_ENVIRONMENT, CodeServerWatch, code_server_command
from hakiri_dagster.cli.first_looks import look_at_new_tables
from hakiri_dagster.cli.opening import opened_project
from hakiri_dagster.cli.serve_lock import the_only_serve
from hakiri_dagster.cli.served_dagster import ServedDagster
from hakiri_dagster.engine.connect_server import ConnectServer, accepts, connect_server
from hakiri_dagster.engine.postgres_settings import free_port, is_free
from hakiri_dagster.engine.spark_config import is_remote
from hakiri_dagster.engine.state_folder import StateFolder, open_state_folder
from hakiri_dagster.errors import EngineError, UsageError
from hakiri_dagster.manifest.tables import Project
from hakiri_dagster.orchestration.dagster_home import prepare_home, psycopg2_url
from hakiri_dagster.pipeline.runtime import Runtime
from hakiri_dagster.settings import Settings

_LOOK_SECONDS = 0.5
_RESTART_PAUSE_SECONDS = 5


def serve(root: Path, port: int, inbox_host: str, inbox_port: int) -> int:
    project = opened_project(root)
    settings = Settings.from_env()
    with ExitStack() as stack:
        state = stack.enter_context(open_state_folder(project.state_dir))
        stack.enter_context(the_only_serve(project.state_dir, port))
        _refuse_taken(port, "--port")
        inbox = stack.enter_context(children_of(project.state_dir / "dagster"))
        _start_inbox(inbox, project, inbox_host, inbox_port)  # needs none of what follows, and its senders wait
        spark = None if is_remote(settings) else stack.enter_context(connect_server(settings, project.state_dir))
        if spark is not None:
            os.environ.update(spark.client_environment)
        runtime = stack.enter_context(Runtime(project, Settings.from_env()))
        runtime.sweep()
        home = prepare_home(root, psycopg2_url(runtime.dagster_url), project.max_parallel_chunks)
        stack.enter_context(runtime.keep_server())
        look_at_new_tables(project, stack.enter_context(children_of(home)))
        code_port = free_port(None)
        children = stack.enter_context(children_of(home))
        code_server = stack.enter_context(closing(CodeServerWatch(code_port)))
        dagster = ServedDagster(project, children, code_server)
        _start_dagster(children, code_port, port)
        _watch(state, (inbox, children), dagster, spark, port)
    return 0


def _refuse_taken(port: int, option: str) -> None:
    if not is_free(port):
        raise UsageError(
            f"port {port} is in use by another program",
            hint=f"end that one, or choose another port: hakiri serve {option} {free_port(port + 1)}",
        )


def _start_inbox(children: Children, project: Project, host: str, port: int) -> None:
    """Where a pipeline takes webhooks."""
    if not any(pipeline.webhooks for pipeline in project.pipelines):
        return
    _refuse_taken(port, "--inbox-port")
    hakiri = [str(Path(sys.executable).parent / "hakiri"), "--project", str(project.root)]
    children.start("inbox", [*hakiri, "receive", "--port", str(port), "--host", host])
    print(f"Webhooks: POST http://{host}:{port}/hooks/<pipeline id>", file=sys.stderr, flush=True)


def _start_dagster(children: Children, code_port: int, port: int) -> None:
    """One code server for both UI and daemon; each would start one of its own otherwise."""
    workspace = children.home / "workspace.yaml"
    workspace.write_text(
        f"load_from:\n  - grpc_server: {{host: 127.0.0.1, port: {code_port}, location_name: hakiri}}\n"
    )
    bin_dir = Path(sys.executable).parent
    command = code_server_command(code_port, "hakiri_dagster.definitions")
    children.start(CODE_SERVER, command, **CODE_SERVER_ENVIRONMENT)
    ui = [str(bin_dir / "dagster-webserver"), "-h", "127.0.0.1", "-p", str(port), "-w", str(workspace)]
    children.start("UI", ui)
    children.start("daemon", [str(bin_dir / "dagster-daemon"), "run", "-w", str(workspace)])


def _watch(
    state: StateFolder, groups: Sequence[Children], dagster: ServedDagster, spark: ConnectServer | None, port: int
) -> None:
    try:
        while not accepts(port):
            state.refuse_deleted()
            _refuse_ended(groups)
            time.sleep(_LOOK_SECONDS)
        print(f"Dagster's UI: http://127.0.0.1:{port}  (Ctrl-C stops everything)", file=sys.stderr, flush=True)
        while True:
            state.refuse_deleted()
            _refuse_ended(groups)
            if spark is not None and not spark.alive():
                _start_again(spark)
            dagster.look()
            time.sleep(_LOOK_SECONDS)
    except KeyboardInterrupt:
        print("stopping …", file=sys.stderr)


def _refuse_ended(groups: Sequence[Children]) -> None:
    for children in groups:
        children.refuse_ended()


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
