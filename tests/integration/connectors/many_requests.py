"""Many processes that send requests through one budget, forked of one as Spark's Python workers are.

`python many_requests.py PICKLE PORT WORKERS REQUESTS [FATES]`: with `fates`, half of the workers are killed.
"""

from __future__ import annotations

import http.client
import os
import pickle
import random
import signal
import sys
import time
from contextlib import suppress
from pathlib import Path

from hakiri_dagster.connectors.permits import SharedPermits


def send(port: int, *, and_die: bool = False) -> None:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=20)
    connection.request("GET", "/")
    if and_die:
        os.kill(os.getpid(), signal.SIGKILL)
    connection.getresponse().read()


def work(budget: SharedPermits, number: int, port: int, requests: int, fate: str) -> None:
    rng = random.Random(number)
    for turn in range(requests):
        with suppress(ConnectionError, http.client.HTTPException), budget.permit(f"chunk {number}"):
            time.sleep(rng.choice((0, 0, 0.01, 0.1)))
            if turn == 1 and fate == "killed before":
                os.kill(os.getpid(), signal.SIGKILL)
            send(port, and_die=turn == 1 and fate == "killed after")


def main(pickled: str, port: str, workers: str, requests: str, *fates: str) -> None:
    budget = pickle.loads(Path(pickled).read_bytes())
    children = []
    for number in range(int(workers)):
        child = os.fork()
        if not child:
            fate = ("lives", "killed before", "lives", "killed after")[number % 4] if fates else "lives"
            work(budget, number, int(port), int(requests), fate)
            os._exit(0)
        children.append(child)
    ends = [os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child in children]
    sys.stdout.write(" ".join(map(str, ends)))


if __name__ == "__main__":
    main(*sys.argv[1:])
