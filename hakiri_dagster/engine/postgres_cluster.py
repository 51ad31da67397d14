"""Makes, starts and stops one server. All under `locked(directory)`; who needs the server is not its business."""

from __future__ import annotations

import fcntl
import os
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Literal

import psutil

from hakiri_dagster.engine.postgres_account import clean_environment, reachable_binaries
from hakiri_dagster.engine.postgres_home import Home, write_private
from hakiri_dagster.engine.postgres_settings import free_port, write_settings
from hakiri_dagster.errors import EngineError

SUPERUSER = "hakiri"

_START_SECONDS = 120
_STOP_SECONDS = 60
_ORPHAN_SECONDS = 2.0
_POLL_SECONDS = 0.05
_LOG_LIMIT = 10 << 20

Answer = Literal["yes", "no", "refused"]


def ensure_running(home: Home, *, durable: bool = True) -> None:
    """Returns when the server answers a SELECT, whatever state it was found in."""
    if not home.data.exists():
        _create(home, durable=durable)
    deadline = time.monotonic() + _START_SECONDS
    while time.monotonic() < deadline:
        if not _occupied(home):
            _start(home, durable=durable)
        match _answer(home):
            case "yes":
                return
            case "refused":
                raise _password_error(home)
            case "no" if _postmaster(home) is None:
                _end_orphans(home)
            case "no":
                time.sleep(_POLL_SECONDS)
    raise _start_error(home, f"it does not answer after {_START_SECONDS} s")


def stop(home: Home) -> None:
    """Rolls open transactions back and writes everything out; a server that cannot do that in time is cut off."""
    if _postmaster(home) is not None:
        for mode in ("fast", "immediate"):
            if _control(home, "stop", "-m", mode, "-t", str(_STOP_SECONDS)) == 0:
                break
    _end_orphans(home)


def is_running(home: Home) -> bool:
    return home.data.exists() and _answer(home) == "yes"


def is_gone(home: Home) -> bool:
    """Its main process does not live. Told without asking the server anything."""
    return _postmaster(home) is None


def query(home: Home, statement: str, **variables: str) -> str:
    """Through psql, which quotes the variables (`:'name'`, `:"name"`); the password travels in the environment."""
    done = _psql(home, statement, variables)
    if done.returncode != 0:
        raise EngineError(done.stderr.strip(), where=f"embedded PostgreSQL in {home.directory}")
    return done.stdout.strip()


def _psql(home: Home, statement: str, variables: dict[str, str]) -> subprocess.CompletedProcess[str]:
    flags = [flag for name, value in variables.items() for flag in ("-v", f"{name}={value}")]
    environment = {"PGPASSWORD": home.password, "PGCONNECT_TIMEOUT": "5", "PGAPPNAME": "hakiri"}
    return subprocess.run(
        [
            str(reachable_binaries(home.account) / "psql"), "-XAtqw", "-v", "ON_ERROR_STOP=1",
            "-h", "127.0.0.1", "-p", str(home.port), "-U", SUPERUSER, "-d", "postgres", *flags,
        ],
        input=statement, capture_output=True, text=True, check=False,
        env=clean_environment(environment),
    )  # fmt: skip


def _answer(home: Home) -> Answer:
    """Whether it is this server, not just any, that answers on the port."""
    if not (home.directory / "port").exists():
        return "no"
    done = _psql(home, "SELECT current_setting('data_directory')", {})
    if done.returncode == 0:
        return "yes" if Path(done.stdout.strip()).resolve() == home.data.resolve() else "no"
    if "too many clients" in done.stderr or "remaining connection slots" in done.stderr:
        return "yes" if _postmaster(home) is not None else "no"
    if "authentication failed" in done.stderr and _postmaster(home) is not None:
        return "refused"
    return "no"


def _create(home: Home, *, durable: bool) -> None:
    """In a folder of its own, moved when complete: a killed initdb leaves nothing half made."""
    for left in home.cluster.glob("new-*"):
        # The initdb of a killed starter may still be at work in it.
        shutil.rmtree(left, ignore_errors=True)
    partial = Path(tempfile.mkdtemp(prefix="new-", dir=home.cluster))
    home.account.give(partial)
    try:
        write_private(partial / "password", home.new_password())
        home.account.give(partial / "password")
        _initdb(home, partial / "data", partial / "password", durable=durable)
        (partial / "data").rename(home.data)
    finally:
        shutil.rmtree(partial, ignore_errors=True)


def _initdb(home: Home, data: Path, password_file: Path, *, durable: bool) -> None:
    command = [
        str(reachable_binaries(home.account) / "initdb"), "-D", str(data), "-U", SUPERUSER,
        f"--pwfile={password_file}", "--auth=scram-sha-256", "--encoding=UTF8", "--locale=C",
        "--locale-provider=builtin", "--builtin-locale=C.UTF-8", "--no-instructions",
        # More of them protect a password that can be guessed, at each new connection. Nobody guesses 24 random bytes.
        "--set=scram_iterations=1",
        *([] if durable else ["--no-sync"]),
    ]  # fmt: skip
    done = subprocess.run(
        command, capture_output=True, text=True, check=False, cwd="/",
        env=clean_environment(), **home.account.run_as,
    )  # fmt: skip
    if done.returncode != 0:
        raise EngineError(
            f"initdb failed: {done.stderr.strip()}",
            where=str(home.directory),
            hint="`hakiri doctor` tells what is missing.",
        )


def _start(home: Home, *, durable: bool) -> None:
    with _server_lock(home) as handle:
        (home.data / "postmaster.pid").unlink(missing_ok=True)
        known = home.port if (home.directory / "port").exists() else None
        home.keep_port(free_port(known))
        write_settings(home, home.port, durable=durable)
        _prepare_log(home)
        log_begins = home.log.stat().st_size
        code = _control(home, "start", "-t", str(_START_SECONDS), "-l", str(home.log), keep_open=(handle,))
    if code != 0 and not _port_was_taken(home, log_begins):
        raise _start_error(home, "it did not start")


def _port_was_taken(home: Home, log_begins: int) -> bool:
    """Somebody may bind between our look and the server's; the next round then finds another port."""
    with home.log.open("rb") as log:
        log.seek(log_begins)
        return b"Address already in use" in log.read()


def _control(home: Home, verb: str, *arguments: str, keep_open: Sequence[int] = ()) -> int:
    return subprocess.run(
        [str(reachable_binaries(home.account) / "pg_ctl"), verb, "-D", str(home.data), "-w", "-s", *arguments],
        stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False, cwd="/",
        env=clean_environment(), pass_fds=keep_open, **home.account.run_as,
    ).returncode  # fmt: skip


@contextmanager
def _server_lock(home: Home) -> Iterator[int]:
    handle = os.open(home.server_lock, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        yield handle
    finally:
        os.close(handle)


def _occupied(home: Home) -> bool:
    """A process of the server lives: one that we started holds the lock; one started by hand does not."""
    try:
        with _server_lock(home):
            return _postmaster(home) is not None
    except BlockingIOError:
        return True


def _postmaster(home: Home) -> psutil.Process | None:
    try:
        pid = int((home.data / "postmaster.pid").read_text().split("\n", 1)[0])
    except (FileNotFoundError, ValueError):
        return None
    return next((process for process in _server_processes(home, [pid])), None)


def _server_processes(home: Home, pids: Sequence[int] | None = None) -> Iterator[psutil.Process]:
    """Each of them has the data folder as its working directory, which no process with a reused pid has."""
    data = str(home.data.resolve())
    for pid in psutil.pids() if pids is None else pids:
        try:
            process = psutil.Process(pid)
            with process.oneshot():
                if (
                    process.name().startswith("postgres")
                    and process.status() != psutil.STATUS_ZOMBIE
                    and process.cwd() == data
                ):
                    yield process
        except (psutil.NoSuchProcess, psutil.AccessDenied):
            continue


def _end_orphans(home: Home) -> None:
    """Backends notice within moments that their postmaster was killed; one that computes may take for ever."""
    deadline = time.monotonic() + _ORPHAN_SECONDS
    while _occupied(home):
        if time.monotonic() > deadline:
            for process in _server_processes(home):
                process.send_signal(signal.SIGKILL)
            deadline += _ORPHAN_SECONDS
        time.sleep(_POLL_SECONDS)


def _prepare_log(home: Home) -> None:
    if home.log.exists() and home.log.stat().st_size > _LOG_LIMIT:
        home.log.replace(home.log.with_suffix(".log.1"))
    home.log.touch(mode=0o600)
    home.account.give(home.log)


def _start_error(home: Home, what: str) -> EngineError:
    lines = home.log.read_text(errors="replace").splitlines()[-12:] if home.log.exists() else []
    tail = "".join(f"\n  | {line}" for line in lines)
    return EngineError(
        f"the embedded PostgreSQL: {what}.{tail}",
        where=str(home.directory),
        hint=f"The whole log is {home.log}; `hakiri doctor` checks memory, disk and permissions.",
    )


def _password_error(home: Home) -> EngineError:
    return EngineError(
        f"the embedded PostgreSQL refuses the password in {home.password_file}.",
        where=str(home.directory),
        hint="Restore the password file; or, if the data may go, stop the server and delete this folder.",
    )
