"""Dagster's code server, through which all ticks and launches go: how it is started, and whether it answers.

It is two processes. The outer one, which `serve` has started, passes on what it is asked to an inner one, which holds
the project, and lives on without it: so it has to be asked something that only the inner one can answer.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import grpc

CODE_SERVER: Final = "code server"

# As the protocol has it; an empty request is one of zero bytes. Dagster's own client is none of its public names. A
# project that cannot be loaded is an answer too, and no reason to start anything again.
_QUESTION: Final = "/api.DagsterApi/ListRepositories"

_RELOAD: Final = "/api.DagsterApi/ReloadCode"
"""As the UI asks for it. Runs at work go on, in the old inner process, which ends after them."""

_WORKERS: Final = "32"
"""Each tick takes a thread of either process until it ends, also of those that Dagster has given up. By default there
are six on two processors, and where all of them are taken the inner process hears no heartbeat, and ends."""

_OUTSIDE: Final = (grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.DEADLINE_EXCEEDED)
"""Nobody listens yet, or nobody answers: of an inner process that is gone the outer one tells by another code."""

_BETWEEN: Final = 5.0
_UNTIL_IT_ANSWERS: Final = 1.0
_REFUSALS: Final = 3
_START_SECONDS: Final = 300.0
PATIENCE: Final = 120.0
"""Twice as long as a tick may take. Runs that it has started end with it, so it is not done lightly."""


def code_server_command(port: int, module: str) -> list[str]:
    """Its inner process is not to give itself up before we do: it would go on answering, and refuse to start runs."""
    return [
        str(Path(sys.executable).parent / "dagster"), "code-server", "start", "-h", "127.0.0.1", "-p", str(port),
        "-m", module, "--location-name", "hakiri", "-n", _WORKERS, "--heartbeat-ttl", str(round(PATIENCE * 1.5)),
    ]  # fmt: skip


CODE_SERVER_ENVIRONMENT: Final = {"DAGSTER_GRPC_MAX_WORKERS": _WORKERS}
"""Of its inner process, which it gives no such option."""


@dataclass
class CodeServerWatch:
    """Asked again and again by whoever goes on with something else meanwhile."""

    port: int
    patience: float = PATIENCE
    clock: Callable[[], float] = time.monotonic
    _asked: Any = None
    _reload: Any = None
    _next: float = 0
    _refusals: int = 0
    _answered: bool = False
    _waits_since: float | None = None

    def __post_init__(self) -> None:
        options = [("grpc.max_reconnect_backoff_ms", round(_UNTIL_IT_ANSWERS * 1000))]
        self._channel = grpc.insecure_channel(f"127.0.0.1:{self.port}", options)
        self._ask = self._channel.unary_unary(_QUESTION)
        self._load = self._channel.unary_unary(_RELOAD)
        self.begin()

    @property
    def answers(self) -> bool:
        """It has answered since it was started, be it with what it lacks."""
        return self._answered or self._refusals > 0

    def begin(self) -> None:
        """It was started, and takes a while."""
        self._answered, self._refusals, self._waits_since = False, 0, self.clock()

    def load_anew(self) -> bool:
        """Begins to; False while it is still at the last time."""
        if self._reload is not None and not self._reload.done():
            return False
        self._reload = self._load.future(b"", timeout=_START_SECONDS)
        return True

    def trouble(self) -> str | None:
        """Why it has to be started again; None as long as it answers, begins, or may still answer."""
        now = self.clock()
        if self._asked is None and now >= self._next:
            self._asked = self._ask.future(b"", timeout=self.patience)
            self._waits_since = now if self._waits_since is None else self._waits_since
        elif self._asked is not None and self._asked.done():
            self._note(self._asked.code(), now)
            self._asked = None
        if self._refusals >= _REFUSALS:
            return "has lost the process that holds the project"
        patience = self.patience if self._answered else _START_SECONDS
        if self._waits_since is not None and now - self._waits_since > patience:
            return "does not answer"
        return None

    def close(self) -> None:
        self._channel.close()

    def _note(self, code: grpc.StatusCode, now: float) -> None:
        if code is grpc.StatusCode.OK:
            self._answered, self._refusals, self._waits_since = True, 0, None
        elif code not in _OUTSIDE:
            self._refusals += 1
        self._next = now + (_BETWEEN if self._waits_since is None else _UNTIL_IT_ANSWERS)
