"""Which process that was, and whether it still runs: a pid alone is reused, a zombie still has one."""

from __future__ import annotations

import os
import socket
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Final

import psutil

_NAMESPACE_OF_THE_MACHINE: Final = 0xEFFFFFFC
"""Linux's number for that of no container. The machine's id that a container shows may be its image's."""


@dataclass(frozen=True, slots=True)
class ProcessIdentity:
    """`boot_id` names the boot, within it the pid namespace, and the machine; `started` tells reused pids apart."""

    host: str
    boot_id: str
    pid: int
    started: str

    @classmethod
    def current(cls) -> ProcessIdentity:
        pid = os.getpid()
        return cls(socket.gethostname(), current_boot_id(), pid, _started(pid) or "")

    @classmethod
    def parse(cls, text: str) -> ProcessIdentity:
        host, boot_id, pid, started = text.split("|")
        return cls(host, boot_id, int(pid), started)

    def __str__(self) -> str:
        return f"{self.host}|{self.boot_id}|{self.pid}|{self.started}"

    def is_alive_here(self) -> bool | None:
        """None: it ran on another host or in another container, so nobody can tell from here."""
        if self.host != socket.gethostname():
            return None
        here, there = _Place.of(current_boot_id()), _Place.of(self.boot_id)
        if there.boot != here.boot:
            return False if there.machine and there.machine == here.machine else None
        if there.namespace != here.namespace:
            return None
        return _started(self.pid) == self.started


@dataclass(frozen=True, slots=True)
class _Place:
    """Hosts may share a name: clones, containers. `machine` is empty where it is not known which one it is."""

    boot: str
    namespace: str
    machine: str

    @classmethod
    def of(cls, boot_id: str) -> _Place:
        boot, namespace, machine, *_ = (*boot_id.split("/"), "", "")
        return cls(boot, namespace, machine)


def where_it_ran(holder: str | None) -> str:
    """A written identity as somebody can look it up."""
    if holder is None:
        return "somebody"
    try:
        identity = ProcessIdentity.parse(holder)
    except ValueError:
        return holder
    return f"process {identity.pid} on {identity.host}"


def is_dead(holder: str) -> bool | None:
    """Of a process by its written identity; None if that cannot be told from here."""
    alive = ProcessIdentity.parse(holder).is_alive_here()
    return None if alive is None else not alive


@cache
def current_boot_id() -> str:
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
        namespace = os.stat("/proc/self/ns/pid").st_ino
        return f"{boot}/{namespace}/{_machine_id() if namespace == _NAMESPACE_OF_THE_MACHINE else ''}"
    except FileNotFoundError:
        return str(int(psutil.boot_time()))


def _machine_id() -> str:
    try:
        return Path("/etc/machine-id").read_text().strip()
    except OSError:
        return ""


def _started(pid: int) -> str | None:
    """When the process began, None if there is none or only its zombie."""
    try:
        process = psutil.Process(pid)
        if process.status() in (psutil.STATUS_ZOMBIE, psutil.STATUS_DEAD):
            return None
        return _ticks_since_boot(pid) or f"{process.create_time():.2f}"
    except (psutil.NoSuchProcess, ProcessLookupError):
        return None


def _ticks_since_boot(pid: int) -> str | None:
    """Linux's own number: unlike psutil's `create_time`, it does not move when the clock is set."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except FileNotFoundError:
        return None
    return stat.rpartition(")")[2].split()[19]
