"""Dagster while `hakiri serve` serves it: its code server answers, and has loaded the project as the plans are."""

from __future__ import annotations

import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from hakiri_dagster.cli.children import Children
from hakiri_dagster.cli.code_server import CODE_SERVER, CodeServerWatch
from hakiri_dagster.errors import AuditError, EngineError
from hakiri_dagster.manifest.tables import Project
from hakiri_dagster.orchestration.loaded_as import LoadedAs, loaded_as

_BETWEEN: Final = 10.0
"""A reload takes some seconds of a processor, and tables of a new project are planned one after the other."""


@dataclass
class ServedDagster:
    """Made before the code server is started: what is planned meanwhile it may not have seen."""

    project: Project
    children: Children
    code_server: CodeServerWatch
    _loaded: Mapping[str, LoadedAs] = field(init=False)
    _next: float = 0

    def __post_init__(self) -> None:
        self._loaded = loaded_as(self.project)

    def look(self) -> None:
        trouble = self.code_server.trouble()
        if trouble is not None:
            self._start_again(trouble)
        elif self.code_server.answers and time.monotonic() >= self._next:
            self._next = time.monotonic() + _BETWEEN
            self._load_anew_if_plans_say_so()

    def _start_again(self, trouble: str) -> None:
        """Without it no tick and no launch works. One that does not even begin to answer will not the next time."""
        if not self.code_server.answers:
            hint = f"see {self.children.log(CODE_SERVER)}"
            raise EngineError("the code server does not answer", hint=hint)
        print(f"the {CODE_SERVER} {trouble}: it is started again …", file=sys.stderr, flush=True)
        self.children.start_again(CODE_SERVER)
        self.code_server.begin()

    def _load_anew_if_plans_say_so(self) -> None:
        try:
            now = loaded_as(self.project)
        except AuditError:  # locked or away: ticks tell of it, and the next look finds the same
            return
        new = [label for label, told in now.items() if told != self._loaded.get(label)]
        if new and self.code_server.load_anew():
            self._loaded = now
            print(f"Dagster loads the project anew, with the plan of {', '.join(new)}", file=sys.stderr, flush=True)
