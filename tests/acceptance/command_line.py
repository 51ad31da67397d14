"""`hakiri` as its users have it: a command in a folder. Its processes can be found, counted and killed."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psutil
import psycopg

from hakiri_dagster.engine.embedded_postgres import hold

HAKIRI = str(Path(sys.executable).with_name("hakiri"))
PATIENCE = 120.0
"""Bounds what hangs; nothing waits for it to pass."""

_MARK = "HAKIRI_ACCEPTANCE_TEST"
_LOOK_SECONDS = 0.02
_NOT_INHERITED = ("HAKIRI_", "DAGSTER_", "OTEL_", "TRACEPARENT", "TRACESTATE", "PYTHONDONTWRITEBYTECODE")


@dataclass(frozen=True)
class Done:
    code: int
    out: str
    err: str
    seconds: float

    @property
    def document(self) -> Any:
        """Refuses anything that is not exactly one JSON document."""
        try:
            return json.loads(self.out)
        except json.JSONDecodeError:
            raise AssertionError(f"not one JSON document: {self}") from None

    def tables(self) -> dict[str, Any]:
        return {table["table"]: table for pipeline in self.document["pipelines"] for table in pipeline["tables"]}


class Running(subprocess.Popen[str]):
    def __init__(self, *args: Any, **kwargs: Any) -> None:
        self.began = time.monotonic()
        super().__init__(*args, **kwargs)


@dataclass
class ProjectFolder:
    """Every process that is started here inherits a mark, however often it forks and detaches."""

    root: Path
    env: dict[str, str] = field(default_factory=dict)
    mark: str = field(default_factory=lambda: uuid.uuid4().hex)
    prefix: tuple[str, ...] = ()
    """What commands are started by, such as `setpriv`."""

    @property
    def state(self) -> Path:
        return self.root / ".hakiri"

    def file(self, name: str, text: str | bytes) -> Path:
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(text.encode() if isinstance(text, str) else text)
        return path

    def pipeline(self, document: Mapping[str, Any]) -> Path:
        return self.file(f"manifests/pipelines/{document['id']}.json", json.dumps(document, indent=2))

    def hakiri(self, *arguments: str, env: Mapping[str, str] | None = None) -> Done:
        return self.command([HAKIRI, *arguments], env=env)

    def command(self, command: Sequence[str], env: Mapping[str, str] | None = None) -> Done:
        return self.finish(self.start_command(command, env))

    def start(self, *arguments: str, env: Mapping[str, str] | None = None) -> Running:
        return self.start_command([HAKIRI, *arguments], env)

    def start_command(self, command: Sequence[str], env: Mapping[str, str] | None = None) -> Running:
        inherited = {key: value for key, value in os.environ.items() if not key.startswith(_NOT_INHERITED)}
        return Running(
            [*self.prefix, *command], cwd=self.root, env={**inherited, _MARK: self.mark, **self.env, **(env or {})},
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True,
        )  # fmt: skip

    def finish(self, process: Running) -> Done:
        try:
            out, err = process.communicate(timeout=PATIENCE)
        except subprocess.TimeoutExpired:
            self.kill_everything()
            out, err = process.communicate()
            raise AssertionError(f"{process.args} did not end in {PATIENCE:.0f} s\n{out}\n{err}") from None
        return Done(process.returncode, out, err, time.monotonic() - process.began)

    def processes(self) -> list[psutil.Process]:
        """What lives of all that was started here. A zombie is dead: in a container nobody may collect it."""
        return [process for process in psutil.process_iter() if self._is_ours(process)]

    def _is_ours(self, process: psutil.Process) -> bool:
        try:
            return process.environ().get(_MARK) == self.mark and process.status() != psutil.STATUS_ZOMBIE
        except (psutil.NoSuchProcess, psutil.AccessDenied):
            return False

    def processes_named(self, *words: str) -> list[psutil.Process]:
        return [process for process in self.processes() if any(word in command_of(process) for word in words)]

    def kill_everything(self) -> None:
        """Again and again, because what is being killed may be starting something."""
        while found := self.processes():
            for process in found:
                kill(process)
            psutil.wait_procs(found, timeout=1)

    def assert_no_process_is_left(self, within: float = 30.0, *, but: Sequence[str] = ()) -> None:
        def left() -> list[psutil.Process]:
            return [p for p in self.processes() if not any(word in command_of(p) for word in but)]

        if not eventually(lambda: not left(), within):
            shown = "\n".join(f"{process.pid} {command_of(process)[:160]}" for process in left())
            raise AssertionError(f"still there after {within:.0f} s:\n{shown}")

    @contextmanager
    def database(self, name: str = "warehouse") -> Iterator[psycopg.Connection[Any]]:
        """Of the embedded server, which is started if need be and stopped if nobody else is in."""
        with hold(self.state / "postgres") as server:
            server.ensure_database(name)
            with psycopg.connect(server.url(name), autocommit=True) as connection:
                yield connection

    def rows(self, query: str, *, database: str = "warehouse") -> list[tuple[Any, ...]]:
        with self.database(database) as connection:
            return connection.execute(query.encode()).fetchall()


def kill(process: psutil.Process, number: signal.Signals = signal.SIGKILL) -> None:
    try:
        process.send_signal(number)
    except psutil.NoSuchProcess:
        return


def command_of(process: psutil.Process) -> str:
    try:
        return " ".join(process.cmdline())
    except (psutil.NoSuchProcess, psutil.ZombieProcess):
        return ""


def name_of(process: psutil.Process) -> str:
    try:
        return process.name()
    except (psutil.NoSuchProcess, psutil.ZombieProcess):
        return ""


def eventually(happened: Callable[[], object], within: float = PATIENCE) -> bool:
    """For what another process does and tells nobody of."""
    deadline = time.monotonic() + within
    while not happened():
        if time.monotonic() > deadline:
            return False
        time.sleep(_LOOK_SECONDS)
    return True
