"""`hakiri serve`: Dagster's UI and daemon, a Spark Connect server, PostgreSQL, the inbox; all of them stop together."""

from __future__ import annotations

import os
import sys
import time
from contextlib import ExitStack, closing
from pathlib import Path

from hakiri_dagster.cli.children import Children, children_of
from hakiri_dagster.cli.code_server import CODE_SERVER, CODE_SERVER_ENVIRONMENT, CodeServerWatch, code_server_command
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

_LOOK_SECONDS = 0.5
_RESTART_PAUSE_SECONDS = 5


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
        children = stack.enter_context(children_of(home))
        _start_dagster(children, code_port, port)
        if inbox is not None:
            children.start("inbox", inbox)
            print(f"Webhooks: POST http://{inbox_host}:{inbox_port}/hooks/<pipeline id>", file=sys.stderr)
        code_server = stack.enter_context(closing(CodeServerWatch(code_port)))
        _watch(children, code_server, spark, port)
    return 0


def _refuse_taken(port: int, option: str) -> None:
    if not is_free(port):
        raise UsageError(
            f"port {port} is in use by another program",
            hint=f"end that one, or choose another port: hakiri serve {option} {free_port(port + 1)}",
        )


def _inbox(project: Project, host: str, port: int) -> list[str] | None:
    """Where a pipeline takes webhooks."""
    if not any(pipeline.webhooks for pipeline in project.pipelines):
        return None
    _refuse_taken(port, "--inbox-port")
    hakiri = [str(Path(sys.executable).parent / "hakiri"), "--project", str(project.root)]
    return [*hakiri, "receive", "--port", str(port), "--host", host]


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


def _watch(children: Children, code_server: CodeServerWatch, spark: ConnectServer | None, port: int) -> None:
    try:
        while not accepts(port):
            children.refuse_ended()
            time.sleep(_LOOK_SECONDS)
        print(f"Dagster's UI: http://127.0.0.1:{port}  (Ctrl-C stops everything)", file=sys.stderr, flush=True)
        while True:
            children.refuse_ended()
            if spark is not None and not spark.alive():
                _start_again(spark)
            trouble = code_server.trouble()
            if trouble is not None:
                _load_again(children, code_server, trouble)
            time.sleep(_LOOK_SECONDS)
    except KeyboardInterrupt:
        print("stopping …", file=sys.stderr)


def _load_again(children: Children, code_server: CodeServerWatch, trouble: str) -> None:
    """Without it no tick and no launch works. One that does not even begin to answer will not the next time either."""
    if not code_server.answers:
        raise EngineError("the code server does not answer", hint=f"see {children.log(CODE_SERVER)}")
    print(f"the {CODE_SERVER} {trouble}: it is started again …", file=sys.stderr, flush=True)
    children.start_again(CODE_SERVER)
    code_server.begin()


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
