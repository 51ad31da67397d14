"""What the embedded server runs with. Rewritten at each start; `ALTER SYSTEM` overrides it."""

from __future__ import annotations

import random
import shutil
import socket
from pathlib import Path

import psutil

from hakiri_dagster.engine.postgres_home import Home, write_private

_PORTS = range(20000, 32000)
"""Below the range from which the kernel takes ports for outgoing connections, so that ours stays free."""

_GIB = 1 << 30
_MIB = 1 << 20

_FIXED = {
    "listen_addresses": "127.0.0.1",
    "unix_socket_directories": "",
    "max_connections": "300",
    "password_encryption": "scram-sha-256",
    "client_connection_check_interval": "2s",
    "timezone": "UTC",
    "log_timezone": "UTC",
    "lc_messages": "C",
    "max_locks_per_transaction": "256",
    # A COPY into a table made or truncated in the same transaction then skips the WAL.
    "wal_level": "minimal",
    "max_wal_senders": "0",
    "max_wal_size": "4GB",
    "min_wal_size": "256MB",
    "wal_buffers": "16MB",
    "checkpoint_timeout": "15min",
    "checkpoint_completion_target": "0.9",
    "random_page_cost": "1.1",
    "jit": "off",
    "log_min_messages": "warning",
    "log_checkpoints": "off",
    # Statements carry rows and, in `CREATE USER`, secrets.
    "log_min_error_statement": "panic",
    "log_parameter_max_length_on_error": "0",
}

# Not `synchronous_commit`: without it a killed process, too, would take committed rows along.
_NOT_DURABLE = {"fsync": "off", "full_page_writes": "off"}

_HOST_RULES = "host all all 127.0.0.1/32 scram-sha-256\n"


def write_settings(home: Home, port: int, *, durable: bool) -> None:
    settings = {**_FIXED, **_memory_settings(), "port": str(port), **({} if durable else _NOT_DURABLE)}
    lines = "".join(f"{name} = '{value}'\n" for name, value in settings.items())
    for path, text in (
        (home.data / "postgresql.conf", f"# Written by hakiri at each start.\n{lines}"),
        (home.data / "pg_hba.conf", _HOST_RULES),
    ):
        write_private(path, text)
        home.account.give(path)


def _memory_settings() -> dict[str, str]:
    total = psutil.virtual_memory().total
    shared = max(min(512 * _MIB, total // 8), 64 * _MIB)
    settings = {
        "shared_buffers": f"{shared // _MIB}MB",
        "effective_cache_size": f"{total // 2 // _MIB}MB",
        "maintenance_work_mem": f"{max(min(256 * _MIB, total // 16), 32 * _MIB) // _MIB}MB",
        "work_mem": "16MB",
    }
    shm = Path("/dev/shm")
    if shm.exists() and shutil.disk_usage(shm).total < _GIB:
        # Containers get 64 MiB there, which one parallel query can fill.
        settings["dynamic_shared_memory_type"] = "sysv"
    return settings


def free_port(preferred: int | None = None) -> int:
    candidates = random.sample(_PORTS, 200)
    if preferred is not None:
        candidates.insert(0, preferred)
    return next((port for port in candidates if is_free(port)), 0) or _any_free_port()


def is_free(port: int) -> bool:
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return False
        return True


def _any_free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port
