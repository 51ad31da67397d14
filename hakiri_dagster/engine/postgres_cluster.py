"""Makes, starts and stops one server. All under `locked(home)`; who needs the server is not its business."""

from __future__ import annotations

import fcntl
import os
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Literal

import psutil

from hakiri_dagster.engine.postgres_account import clean_environment, reachable_binaries
from hakiri_dagster.engine.postgres_home import Home, new_password, write_private
from hakiri_dagster.engine.postgres_settings import free_port, write_settings
from hakiri_dagster.errors import EngineError

SUPERUSER = "hakiri"

_START_SECONDS = 120
_STOP_SECONDS = 60
_ORPHAN_SECONDS = 2.0
_POLL_SECONDS = 0.05
_LOG_LIMIT = 10 << 20

Answer = Literal["yes", "no", "refused", "moved"]


def ensure_running(home: Home, *, durable: bool = True) -> None:
    """Returns when the server answers a SELECT, whatever state it was found in."""
    if not home.data.exists():
        _create(home, durable=durable)
    elif not home.has_password:
        stop(home)
        _set_new_password(home)
    deadline = time.monotonic() + _START_SECONDS
    while time.monotonic() < deadline:
        if is_occupied(home):
            _restore_port(home)
        else:
            _start(home, durable=durable)
        match _answer(home):
            case "yes":
                return
            case "refused":
                raise _password_error(home)
            case "moved":
                stop(home)
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
    return home.data.exists() and home.has_password and _answer(home) == "yes"


def is_gone(home: Home) -> bool:
    """Its main process does not live. Told without asking the server anything."""
    return _postmaster(home) is None


def query(home: Home, statement: str, **variables: str) -> str:
    """Through psql, which quotes the variables (`:'name'`, `:"name"`); the password travels in the environment."""
    done = _psql(home, statement, variables)
    if done.returncode != 0:
        home.refuse_deleted()
        _refuse_damaged(home)
        raise EngineError(
            done.stderr.strip(),
            where=f"embedded PostgreSQL in {home.cluster}",
            hint=f"Run the command again; the server's log is {home.log}.",
        )
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
    if home.known_port is None:
        return "no"
    done = _psql(home, "SELECT current_setting('data_directory')", {})
    if done.returncode == 0:
        if Path(done.stdout.strip()).resolve() == home.data.resolve():
            return "yes"
        # Ours, by its process: it was started before the folder was moved, and has the old paths of its files.
        return "moved" if _postmaster_port(home) == home.known_port else "no"
    if "too many clients" in done.stderr or "remaining connection slots" in done.stderr:
        return "yes" if _postmaster(home) is not None else "no"
    if "authentication failed" in done.stderr and _postmaster(home) is not None:
        return "refused"
    return "no"


def _create(home: Home, *, durable: bool) -> None:
    """In a folder of its own, moved when complete: a killed initdb leaves nothing half made."""
    end_deleted_servers(home.cluster)
    for left in home.cluster.glob("new-*"):
        # The initdb of a killed starter may still be at work in it.
        shutil.rmtree(left, ignore_errors=True)
    partial = Path(tempfile.mkdtemp(prefix="new-", dir=home.cluster))
    home.account.give(partial)
    try:
        home.keep_password(new_password())
        write_private(partial / "password", f"{home.password}\n")
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
        home.refuse_deleted()
        raise EngineError(
            f"initdb failed: {done.stderr.strip() or f'exit code {done.returncode}'}",
            where=str(home.cluster),
            hint="`hakiri doctor` tells what is missing.",
        )


def _set_new_password(home: Home) -> None:
    """For data whose password is lost. Single-user mode needs no password, and no client can connect meanwhile. The
    file is written last: after a kill before that it is still missing, and the next start sets a password again."""
    _refuse_damaged(home)
    password = new_password()
    with _server_lock(home) as handle:
        (home.data / "postmaster.pid").unlink(missing_ok=True)
        done = subprocess.run(
            [str(reachable_binaries(home.account) / "postgres"), "--single", "-D", str(home.data), "-j", "postgres"],
            input=f"ALTER ROLE {SUPERUSER} PASSWORD '{password}';\n\n", capture_output=True, text=True, check=False,
            cwd="/", env=clean_environment(), pass_fds=(handle,), **home.account.run_as,
        )  # fmt: skip
    if done.returncode != 0 or "ERROR:" in done.stderr:
        home.refuse_deleted()
        raise EngineError(
            f"the embedded PostgreSQL's password is lost, and no new one could be set: {done.stderr.strip()}",
            where=str(home.cluster),
            hint=_removal_hint(home),
        )
    home.keep_password(password)


def _refuse_damaged(home: Home) -> None:
    """PostgreSQL cannot start without these. They are missing where a deletion was not completed."""
    for name in ("PG_VERSION", "global/pg_control"):
        if not (home.data / name).exists():
            raise EngineError(
                f"the data of the embedded PostgreSQL are incomplete: {home.data / name} is missing.",
                where=str(home.cluster),
                hint=_removal_hint(home),
            )


def _removal_hint(home: Home) -> str:
    return f"Restore the folder from a backup; or `rm -r {home.cluster}`: the next apply then loads every table again."


def _start(home: Home, *, durable: bool) -> None:
    end_deleted_servers(home.cluster)
    _refuse_damaged(home)
    with _server_lock(home) as handle:
        (home.data / "postmaster.pid").unlink(missing_ok=True)
        home.keep_port(free_port(home.known_port))
        write_settings(home, home.port, durable=durable)
        _prepare_log(home)
        log_begins = home.log.stat().st_size
        code = _control(home, "start", "-t", str(_START_SECONDS), "-l", str(home.log), keep_open=(handle,))
    if code != 0 and not _port_was_taken(home, log_begins):
        end_deleted_servers(home.cluster)
        home.refuse_deleted()
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


def is_occupied(home: Home) -> bool:
    """A process of the server lives: one that we started holds the lock; one started by hand does not, nor does any
    whose lock or pid file was deleted."""
    try:
        with _server_lock(home):
            return any(_server_processes(home))
    except BlockingIOError:
        return True


def _postmaster(home: Home) -> psutil.Process | None:
    lines = _pid_file(home)
    return next(_server_processes(home, [int(lines[0])]), None) if lines and lines[0].isdecimal() else None


def _postmaster_port(home: Home) -> int | None:
    """The port of the server whose main process lives in the data folder."""
    lines = _pid_file(home)
    return int(lines[3]) if len(lines) > 3 and lines[3].isdecimal() and _postmaster(home) is not None else None


def _pid_file(home: Home) -> list[str]:
    try:
        return (home.data / "postmaster.pid").read_text().splitlines()
    except FileNotFoundError:
        return []


def _restore_port(home: Home) -> None:
    """Where the file was deleted or damaged."""
    port = _postmaster_port(home)
    if port is not None and port != home.known_port:
        home.keep_port(port)


def _server_processes(home: Home, pids: Sequence[int] | None = None) -> Iterator[psutil.Process]:
    """Each of them has the data folder, by its inode, as its working directory. No process with a reused pid has it,
    nor one of a folder that was deleted under the same name."""
    try:
        data = home.data.stat()
    except FileNotFoundError:
        return
    for process in _postgres_processes(pids):
        with suppress(OSError):
            if os.path.samestat(os.stat(f"/proc/{process.pid}/cwd"), data):
                yield process


def _postgres_processes(pids: Sequence[int] | None = None) -> Iterator[psutil.Process]:
    for pid in psutil.pids() if pids is None else pids:
        try:
            process = psutil.Process(pid)
            if process.name().startswith("postgres") and process.status() != psutil.STATUS_ZOMBIE:
                yield process
        except (psutil.NoSuchProcess, psutil.AccessDenied):
            continue


def end_deleted_servers(cluster: Path) -> None:
    """Ends servers whose data folder in `cluster` was deleted while they ran: their rows are lost."""
    found = [process for process in _postgres_processes() if _lost_its_data(process, cluster / "data")]
    for number in (signal.SIGQUIT, signal.SIGKILL):
        for process in found:
            with suppress(psutil.NoSuchProcess):
                process.send_signal(number)  # refuses a pid that was reused since
        _, found = psutil.wait_procs(found, timeout=_ORPHAN_SECONDS)


def _lost_its_data(process: psutil.Process, data: Path) -> bool:
    """The kernel keeps the path of a deleted working directory, as this mount namespace or another one sees it."""
    place = Path("/proc") / str(process.pid)
    try:
        return (
            os.readlink(place / "cwd") == f"{data} (deleted)"
            and (place / "cwd").stat().st_nlink == 0
            and os.path.samestat((place / "ns/mnt").stat(), Path("/proc/self/ns/mnt").stat())
        )
    except OSError:
        return False


def _end_orphans(home: Home) -> None:
    """Backends notice within moments that their postmaster was killed; one that computes may take for ever."""
    deadline = time.monotonic() + _ORPHAN_SECONDS
    while is_occupied(home):
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
        where=str(home.cluster),
        hint=f"The whole log is {home.log}; `hakiri doctor` checks memory, disk and permissions.",
    )


def _password_error(home: Home) -> EngineError:
    return EngineError(
        f"the embedded PostgreSQL refuses the password in {home.password_file}.",
        where=str(home.cluster),
        hint=f"Restore the file; or delete it with `rm {home.password_file}`: the next command sets a new password.",
    )
