"""A new connection after one was lost, with patience for a server that is coming back."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager

from hakiri_dagster.destinations.postgres.connection import Connection, Connections
from hakiri_dagster.destinations.postgres.driver_errors import translate_errors
from hakiri_dagster.errors import DestinationUnavailable

_PATIENCE_SECONDS = 30.0
_PAUSE_SECONDS = 0.2


@contextmanager
def reconnected(connections: Connections, patience: float = _PATIENCE_SECONDS) -> Iterator[Connection]:
    deadline = time.monotonic() + patience
    connection = _open(connections, deadline)
    try:
        with translate_errors(connections.where):
            yield connection
    finally:
        connections.give_back(connection)


def _open(connections: Connections, deadline: float) -> Connection:
    while True:
        try:
            return connections.open()
        except DestinationUnavailable:
            if time.monotonic() >= deadline:
                raise
            time.sleep(_PAUSE_SECONDS)
