"""One of many workers that share an audit DB: claims chunks as runs do. Two and two are after the same ones.

`python claim_worker.py URL NUMBER WORKERS CHUNKS_A_RUN [places]` says "ready", waits for a line, and answers a line of
JSON. With `places`, a run also waits for its place, and tells that its chunks are done.
"""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path

from hakiri_dagster.audit.claims import Claims, Outcome
from hakiri_dagster.audit.database import AuditDb, open_audit
from hakiri_dagster.audit.pass_places import PassOf
from hakiri_dagster.engine.process_identity import ProcessIdentity, is_dead
from hakiri_dagster.planning.chunks import Slice
from hakiri_dagster.planning.states import DueSlice

OF = ("work", "many")
_TTL_SECONDS = 600


def main(url: str, number: str, workers: str, size: str, *places: str) -> None:
    holder = str(ProcessIdentity.current())
    with open_audit(url, Path()) as audit:
        states = audit.chunks.states(*OF)
        due = [DueSlice(Slice(state.chunk, state.bounds)) for state in states]
        runs = [due[start : start + int(size)] for start in range(0, len(due), int(size))]
        shared = len(runs) * 2 // int(workers)
        first = int(number) // 2 * shared
        print("ready", flush=True)
        sys.stdin.readline()
        keys: list[str] = []
        last = began = time.time()
        for run in runs[first : first + shared]:
            claimed = _claim(audit, run, holder)
            if claimed.claimed:
                last = time.time()
                keys += [claim.key for claim in claimed.claimed]
                if places:
                    _load(audit, claimed, holder, int(workers))
        print(json.dumps({"began": began, "last": last, "keys": keys}))


def _claim(audit: AuditDb, run: list[DueSlice], holder: str) -> Claims:
    return audit.chunks.claim(*OF, run, holder=holder, run_id="run", ttl_seconds=_TTL_SECONDS, holder_is_dead=is_dead)


def _load(audit: AuditDb, claims: Claims, holder: str, workers: int) -> None:
    of = PassOf(*OF, holder, parallelism=workers)
    place = audit.pass_places.ask(of, is_dead, number=None, ttl_seconds=_TTL_SECONDS)
    for load_id, claim in enumerate(claims.claimed):
        audit.chunks.done(claim, Outcome(rows=1, bytes=1, cursor_committed=None, load_id=load_id))
    audit.pass_places.give_back(place.number)


if __name__ == "__main__":
    main(*sys.argv[1:])
