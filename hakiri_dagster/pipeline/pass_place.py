"""A pass begins when there is a place for it: among those of its pipeline, and among all of the project."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import partial
from typing import Final

from hakiri_dagster.audit.pass_places import PassOf
from hakiri_dagster.engine.process_identity import is_dead
from hakiri_dagster.errors import HakiriError
from hakiri_dagster.pipeline.claims import kept_alive
from hakiri_dagster.pipeline.retries import retried
from hakiri_dagster.pipeline.shapes import parallelism_of
from hakiri_dagster.pipeline.way import Way

_LOOK_AGAIN_SECONDS: Final = 1.0


@contextmanager
def place_of_a_pass(way: Way) -> Iterator[None]:
    """When another pass ends is not known: whoever waits looks again each second."""
    places, ttl, table = way.audit.pass_places, way.settings.lease_ttl_seconds, way.table
    parallelism = parallelism_of(table, way.source.hint)
    of = PassOf(table.pipeline_id, table.name, way.holder, parallelism, way.max_parallel_chunks)
    number: int | None = None
    try:
        while not (turn := retried(way, partial(places.ask, of, is_dead, number=number, ttl_seconds=ttl))).begins:
            if number is None:
                way.log(f"{table.label}: waits until another pass has ended{_limits(of)}")
            number = turn.number
            time.sleep(_LOOK_AGAIN_SECONDS)
        number = turn.number
        with kept_alive(partial(places.heartbeat, of, number, ttl), ttl):
            yield
    finally:
        if number is not None:
            with suppress(HakiriError):  # its lease ends
                places.give_back(number)


def _limits(of: PassOf) -> str:
    most = "" if of.most is None else f", max_parallel_chunks = {of.most}"
    return f" (backfill.parallelism = {of.parallelism}{most})"
