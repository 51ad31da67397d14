"""One Spark for many processes: a Spark Connect server that lives no longer than the process that started it."""

from __future__ import annotations

import os
import secrets
import signal
import socket
import subprocess
import time
import uuid
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import pyspark

from hakiri_dagster.engine.java import ensure_java
from hakiri_dagster.engine.postgres_home import write_private
from hakiri_dagster.engine.postgres_settings import free_port, is_free
from hakiri_dagster.engine.spark import engine_environment
from hakiri_dagster.engine.spark_config import ITS_OWN, PACKAGE_MARK, is_local, spark_config
from hakiri_dagster.errors import EngineError
from hakiri_dagster.settings import Settings

TOKEN_VARIABLE = "SPARK_CONNECT_AUTHENTICATE_TOKEN"
"""Read by the server and by every client, so that no other user of this machine gets in."""

_START_SECONDS = 90
_STOP_SECONDS = 15
_POLL_SECONDS = 0.05

# The shell ends the server when its own stdin closes, that is when we end, however we end. The kernel's
# death signal would do too, but it comes when the thread ends that started the server.
_LIFELINE = """
exec 3<&0
"$@" </dev/null 3<&- & server=$!
{ read -r _ || :; kill -TERM $server; sleep 10; kill -KILL $server; } <&3 2>/dev/null & watch=$!
exec 3<&-
wait $server; code=$?
kill $watch 2>/dev/null
exit $code
"""


@dataclass
class ConnectServer:
    settings: Settings
    state_dir: Path
    port: int = 0
    token: str = field(default_factory=lambda: secrets.token_urlsafe(24), repr=False)
    _process: subprocess.Popen[bytes] | None = field(default=None, repr=False)

    @property
    def url(self) -> str:
        """Of one session, which all runs share: each leaves a Python daemon on the server, and a known one answers at
        once."""
        session = uuid.UUID(bytes=b"hakiri-000000000", version=4)
        # By this name only: Spark's client sends a token without TLS to `localhost` and nowhere else.
        return f"sc://localhost:{self.port}/;session_id={session}"

    @property
    def client_environment(self) -> dict[str, str]:
        """What a process needs to be a client of this server."""
        return {"HAKIRI_SPARK": self.url, TOKEN_VARIABLE: self.token}

    @property
    def log(self) -> Path:
        return self.state_dir / "spark" / "connect-server.log"

    def alive(self) -> bool:
        return self._process is not None and self._process.poll() is None and accepts(self.port)

    def start(self) -> None:
        """On the port it had before, which its clients keep."""
        if self.port and not is_free(self.port):
            raise EngineError(f"port {self.port} is in use", where="Spark Connect", hint="end what listens there")
        self.port = self.port or free_port()
        environment = self._environment()
        command = self._command()
        with self.log.open("ab") as log:
            self._process = subprocess.Popen(
                ["/bin/sh", "-c", _LIFELINE, "hakiri-spark-connect", *command],
                stdin=subprocess.PIPE, stdout=log, stderr=log, env=environment, start_new_session=True,
            )  # fmt: skip
        self._await_ready(self._process)

    def restart(self) -> None:
        self.stop()
        self.start()

    def stop(self) -> None:
        process, self._process = self._process, None
        if process is None:
            return
        assert process.stdin is not None
        process.stdin.close()
        try:
            process.wait(_STOP_SECONDS)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()

    def _environment(self) -> dict[str, str]:
        ensure_java()
        (self.state_dir / "spark" / "local").mkdir(parents=True, exist_ok=True)
        inherited = {k: v for k, v in os.environ.items() if k not in _CLIENT_VARIABLES}
        return {**inherited, **engine_environment(self.settings, self.state_dir), TOKEN_VARIABLE: self.token}

    def _command(self) -> list[str]:
        """The settings go in a file that only we may read: a command line is open to all."""
        spark_home = Path(pyspark.__file__).parent
        config = spark_config(self.settings, self.state_dir)
        config |= {
            "spark.connect.grpc.binding.address": "127.0.0.1",
            "spark.connect.grpc.binding.port": str(self.port),
        }
        if is_local(self.settings):
            config[PACKAGE_MARK] = ITS_OWN
        properties = self.state_dir / "spark" / "connect-server.properties"
        write_private(properties, _properties(config))
        return [
            str(spark_home / "bin" / "spark-submit"),
            "--class", "org.apache.spark.sql.connect.service.SparkConnectServer",
            "--properties-file", str(properties), "spark-internal",
        ]  # fmt: skip

    def _await_ready(self, process: subprocess.Popen[bytes]) -> None:
        deadline = time.monotonic() + _START_SECONDS
        while not accepts(self.port):
            if process.poll() is not None or time.monotonic() > deadline:
                self.stop()
                raise self._start_error()
            time.sleep(_POLL_SECONDS)

    def _start_error(self) -> EngineError:
        lines = self.log.read_text(errors="replace").splitlines()[-12:]
        return EngineError(
            "the Spark Connect server did not start." + "".join(f"\n  | {line}" for line in lines),
            where=str(self.state_dir),
            hint=f"The logs are {self.log} and {self.log.with_name('spark.log')}.",
        )


_CLIENT_VARIABLES = ("SPARK_REMOTE", "SPARK_LOCAL_REMOTE", "SPARK_CONNECT_MODE_ENABLED", "SPARK_HOME")


@contextmanager
def connect_server(settings: Settings, state_dir: Path) -> Iterator[ConnectServer]:
    """`settings.spark` is what the server itself runs on: this machine, or a cluster."""
    server = ConnectServer(settings, state_dir)
    try:
        server.start()
        yield server
    finally:
        server.stop()


def accepts(port: int) -> bool:
    with socket.socket() as probe:
        probe.settimeout(0.5)
        return port != 0 and probe.connect_ex(("127.0.0.1", port)) == 0


def _properties(config: Mapping[str, str]) -> str:
    escaped = {key: value.replace("\\", "\\\\").replace("\n", "\\n") for key, value in config.items()}
    return "".join(f"{key}={value}\n" for key, value in escaped.items())
