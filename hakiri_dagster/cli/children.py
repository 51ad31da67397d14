"""The processes of `hakiri serve`: they end with it, however it ends, and one of them can be started again."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from hakiri_dagster.errors import EngineError

_STOP_SECONDS = 20

# The kernel ends the child when we end, however we end; a daemon that lived on would go on starting loads.
_DIE_WITH_US = """
import ctypes, os, signal, sys
PR_SET_PDEATHSIG = 1
ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGTERM)
if os.getppid() == int(sys.argv[1]):
    os.execv(sys.argv[2], sys.argv[2:])
"""


@dataclass(frozen=True, slots=True)
class _Child:
    command: Sequence[str]
    environment: Mapping[str, str]
    process: subprocess.Popen[bytes]


@dataclass(frozen=True, slots=True)
class Children:
    """In sessions of their own, so that Ctrl-C reaches us alone and they are stopped in order. `home`: where their logs
    are."""

    home: Path
    _by_name: dict[str, _Child] = field(default_factory=dict)

    def start(self, name: str, command: Sequence[str], **environment: str) -> None:
        with self.log(name).open("ab") as log:
            process = subprocess.Popen(
                [sys.executable, "-c", _DIE_WITH_US, str(os.getpid()), *command],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                env={**environment, **os.environ},
                start_new_session=True,
            )
        self._by_name[name] = _Child(command, environment, process)

    def start_again(self, name: str) -> None:
        """With all that it has started."""
        child = self._by_name[name]
        _stop([child.process])
        self.start(name, child.command, **child.environment)

    def has_ended(self, name: str, within: float) -> bool:
        try:
            self._by_name[name].process.wait(within)
        except subprocess.TimeoutExpired:
            return False
        return True

    def log(self, name: str) -> Path:
        return self.home / f"{name.replace(' ', '-')}.log"

    def refuse_ended(self) -> None:
        for name, child in self._by_name.items():
            if child.process.poll() is not None:
                raise EngineError(
                    f"the {name} ended with exit code {child.process.returncode}", hint=f"see {self.log(name)}"
                )

    def stop(self) -> None:
        _stop([child.process for child in reversed(self._by_name.values())])


@contextmanager
def children_of(home: Path) -> Iterator[Children]:
    children = Children(home)
    try:
        yield children
    finally:
        children.stop()


def _stop(processes: Sequence[subprocess.Popen[bytes]]) -> None:
    for process in processes:
        _signal(process, signal.SIGINT)
    deadline = time.monotonic() + _STOP_SECONDS
    for process in processes:
        try:
            process.wait(max(0.1, deadline - time.monotonic()))
        except subprocess.TimeoutExpired:
            _signal(process, signal.SIGKILL)
            process.wait()
        _signal(process, signal.SIGKILL)  # runs that it started, which outlive it


def _signal(process: subprocess.Popen[bytes], number: signal.Signals) -> None:
    try:
        os.killpg(process.pid, number)
    except ProcessLookupError:
        return
