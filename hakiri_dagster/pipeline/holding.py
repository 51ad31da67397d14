"""Holding chunks for a replay: the lease and the fence of a load, without an attempt that the chunk would owe."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass

from hakiri_dagster.audit.holds import Held
from hakiri_dagster.destinations.contract import Fence
from hakiri_dagster.engine.process_identity import is_dead, where_it_ran
from hakiri_dagster.errors import HakiriError
from hakiri_dagster.pipeline.claims import kept_alive
from hakiri_dagster.pipeline.retries import retried
from hakiri_dagster.pipeline.way import Way


@dataclass(frozen=True, slots=True)
class HeldChunk:
    key: str
    fence: Fence


@dataclass(frozen=True, slots=True)
class HeldChunks:
    """`others`: why chunks could not be had, by key."""

    chunks: tuple[HeldChunk, ...]
    others: Mapping[str, str]


@contextmanager
def held(way: Way, keys: Sequence[str]) -> Iterator[HeldChunks]:
    table, holds, ttl = way.table, way.audit.holds, way.settings.lease_ttl_seconds
    of = (table.pipeline_id, table.name)
    taken = holds.take(*of, keys, holder=way.holder, ttl_seconds=ttl, holder_is_dead=is_dead)
    others = _others(taken)
    if not taken.keys:
        yield HeldChunks((), others)
        return
    try:
        with kept_alive(lambda: holds.heartbeat(*of, taken.keys, holder=way.holder, ttl_seconds=ttl), ttl):
            fences = retried(way, lambda: way.destination.claim(table, taken.keys, way.holder))
            yield HeldChunks(tuple(HeldChunk(key, fences[key]) for key in taken.keys), others)
    finally:
        with suppress(HakiriError):  # the lease ends by itself
            holds.let_go(*of, taken.keys, holder=way.holder)


def _others(taken: Held) -> dict[str, str]:
    busy = {
        chunk.key: f"another run holds their chunk ({where_it_ran(chunk.holder)})" if chunk.holder
        else "another run is about to load their chunk"
        for chunk in taken.busy
    }  # fmt: skip
    return busy | dict.fromkeys(taken.unfinished, "the last load of their chunk was killed: apply, then replay")
