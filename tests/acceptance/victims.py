"""What of an apply can be killed, and how."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Literal

import psutil

from tests.acceptance.command_line import ProjectFolder, Running, command_of, kill, name_of

Victim = Literal["hakiri", "java", "worker", "postmaster", "audit", "everything"]
FATAL: tuple[Victim, ...] = ("hakiri", "everything")
"""The apply itself does not outlive these."""


class Killer:
    """`audit_server` is the folder of the PostgreSQL server that has the audit DB, if it has one of its own."""

    def __init__(self, project: ProjectFolder, random: Random, audit_server: Path | None = None) -> None:
        self._project = project
        self._random = random
        self._servers: dict[Victim, Path] = {"postmaster": project.state / "postgres"}
        if audit_server is not None:
            self._servers["audit"] = audit_server
        self.victims: tuple[Victim, ...] = ("hakiri", "java", "worker", "everything", *self._servers)

    def kill_any(self, apply: Running) -> Victim:
        return self.kill(self._random.choice(self.victims), apply)

    def kill(self, victim: Victim, apply: Running) -> Victim:
        """Whoever is not there yet cannot be killed: then it is hakiri's turn."""
        match victim:
            case "everything":
                for server in self._servers:
                    self._kill_postmaster(server)
                self._project.kill_everything()
                return victim
            case "postmaster" | "audit" if self._kill_postmaster(victim):
                return victim
            case "java" if self._kill_one(lambda p: name_of(p) == "java"):
                return victim
            case "worker" if self._kill_one(lambda p: "pyspark.daemon" in command_of(p)):
                return victim
            case _:
                apply.kill()
                return "hakiri"

    def _kill_one(self, chosen: Callable[[psutil.Process], bool]) -> bool:
        found = [process for process in self._project.processes() if chosen(process)]
        if found:
            kill(self._random.choice(found))
        return bool(found)

    def _kill_postmaster(self, server: Victim) -> bool:
        try:
            pid = int((self._servers[server] / "data/postmaster.pid").read_text().split()[0])
            process = psutil.Process(pid)
        except (FileNotFoundError, IndexError, psutil.NoSuchProcess):
            return False
        if not process.name().startswith("postgres"):
            return False
        kill(process)
        return True
