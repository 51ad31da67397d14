"""One process of several that share an audit DB. Its workers claim, wait for a place, load, and tell.

`python many_workers.py URL FOLDER WORKERS HOURS [holds]`: says "ready", waits for a line, tells each claim as a line.
Its clock is HOURS ahead. `holds`: claims a few chunks, says "held" and never lets them go.
"""

from __future__ import annotations

import json
import os
import sys
import threading
import time
import traceback
import uuid
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime, timedelta, tzinfo
from pathlib import Path
from random import Random
from typing import Any

from hakiri_dagster.audit.claims import Claim, Outcome
from hakiri_dagster.audit.database import AuditDb, open_audit
from hakiri_dagster.audit.pass_places import PassOf
from hakiri_dagster.engine.process_identity import ProcessIdentity, is_dead
from hakiri_dagster.planning.chunks import Slice
from hakiri_dagster.planning.states import DueSlice

OF = ("shop", "orders")
PLACES = 3
_TTL_SECONDS = 600
_LOOK_AGAIN_SECONDS = 0.005


def set_clock_ahead(hours: float) -> None:
    """Of every module of ours; the database's clock stays."""

    class Ahead(datetime):
        @classmethod
        def now(cls, tz: tzinfo | None = None) -> Any:
            return datetime.now(tz) + timedelta(hours=hours)

    for name, module in list(sys.modules.items()):
        if name.startswith("hakiri_dagster") and vars(module).get("datetime") is datetime:
            vars(module)["datetime"] = Ahead


class Worker:
    def __init__(self, audit: AuditDb, folder: Path) -> None:
        self._audit = audit
        self._at_work = folder / "at-work"
        self._holder = str(ProcessIdentity.current())
        self._random = Random(uuid.uuid4().int)

    def work(self) -> None:
        while open_ := [state for state in self._audit.chunks.states(*OF) if state.status != "done"]:
            states = self._random.sample(open_, min(len(open_), self._random.randint(1, 5)))
            claims = self.claim(
                [DueSlice(Slice(state.chunk, state.bounds), state.attempts) for state in states],
                [state.key for state in states if state.status == "running"],
            )
            if claims:
                with self._place():
                    for claim in claims:
                        self._audit.chunks.heartbeat([claim], _TTL_SECONDS)
                        self._audit.chunks.done(claim, Outcome(1, 1, None, claim.attempt))

    def claim(self, slices: list[DueSlice], seen_held: Sequence[str] = ()) -> tuple[Claim, ...]:
        claims = self._audit.chunks.claim(
            *OF,
            slices,
            holder=self._holder,
            run_id="run",
            ttl_seconds=_TTL_SECONDS,
            holder_is_dead=is_dead,
            seen_held=seen_held,
        ).claimed
        for claim in claims:
            dead = None if claim.dead is None else claim.dead.holder
            _tell(json.dumps([claim.key, claim.attempt, os.getpid(), dead]))
        return claims

    @contextmanager
    def _place(self) -> Iterator[None]:
        places, of = self._audit.pass_places, PassOf(*OF, self._holder, PLACES)
        turn = places.ask(of, is_dead, number=None, ttl_seconds=_TTL_SECONDS)
        while not turn.begins:
            time.sleep(_LOOK_AGAIN_SECONDS)
            turn = places.ask(of, is_dead, number=turn.number, ttl_seconds=_TTL_SECONDS)
        mine = self._at_work / uuid.uuid4().hex
        mine.touch()
        try:
            if len(list(self._at_work.iterdir())) > PLACES:
                raise AssertionError("more are at work than there are places")
            yield
        finally:
            mine.unlink()
            places.give_back(turn.number)


def _tell(line: str) -> None:
    os.write(1, f"{line}\n".encode())  # whole, whichever thread writes beside it


def _end_with_it(told: threading.ExceptHookArgs) -> None:
    """Else the others would wait for what it holds."""
    sys.stderr.write("".join(traceback.format_exception(told.exc_value)))
    sys.stderr.flush()
    os._exit(1)


def main(url: str, folder: str, workers: str, hours: str, *holds: str) -> None:
    with open_audit(url or None, Path(folder)) as audit:
        if float(hours):
            set_clock_ahead(float(hours))
        _tell("ready")
        sys.stdin.readline()
        if holds:
            states = audit.chunks.states(*OF)[:20]
            Worker(audit, Path(folder)).claim([DueSlice(Slice(state.chunk, state.bounds)) for state in states])
            _tell("held")
            sys.stdin.readline()
        threading.excepthook = _end_with_it
        threads = [threading.Thread(target=Worker(audit, Path(folder)).work) for _ in range(int(workers))]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()


if __name__ == "__main__":
    main(*sys.argv[1:])
