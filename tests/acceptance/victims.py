"""What of an apply can be killed, and how."""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import Literal

import psutil

from tests.acceptance.command_line import ProjectFolder, Running, command_of, kill, name_of

Victim = Literal["hakiri", "java", "worker", "postmaster", "everything"]
VICTIMS: tuple[Victim, ...] = ("hakiri", "java", "worker", "postmaster", "everything")
FATAL: tuple[Victim, ...] = ("hakiri", "everything")
"""The apply itself does not outlive these."""


class Killer:
    def __init__(self, project: ProjectFolder, random: Random) -> None:
        self._project = project
        self._random = random

    def kill_any(self, apply: Running) -> Victim:
        return self.kill(self._random.choice(VICTIMS), apply)

    def kill(self, victim: Victim, apply: Running) -> Victim:
        """Whoever is not there yet cannot be killed: then it is hakiri's turn."""
        match victim:
            case "everything":
                self._kill_postmaster()
                self._project.kill_everything()
                return victim
            case "postmaster" if self._kill_postmaster():
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

    def _kill_postmaster(self) -> bool:
        try:
            pid = int((self._project.state / "postgres/data/postmaster.pid").read_text().split()[0])
            process = psutil.Process(pid)
        except (FileNotFoundError, IndexError, psutil.NoSuchProcess):
            return False
        if not process.name().startswith("postgres"):
            return False
        kill(process)
        return True
