"""Blocks of a candidate go to the destination as permits allow."""

from __future__ import annotations

from collections.abc import Generator, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from typing import cast

from hakiri_dagster.destinations.contract import Candidate
from hakiri_dagster.pipeline.paced import PacedCandidate


@dataclass
class NotedPermits:
    said: list[str] = field(default_factory=list)

    @contextmanager
    def permit(self, chunk: str = "") -> Iterator[int]:
        self.said.append(f"permit for {chunk}")
        try:
            yield 0
        except BaseException:
            self.said.append("in doubt")
            raise
        self.said.append("ended")


class ThreeBlocks:
    def blocks(self) -> Iterator[bytes]:
        yield from (b"1", b"2", b"3")


def paced(permits: NotedPermits) -> Iterator[bytes]:
    return PacedCandidate(cast(Candidate, ThreeBlocks()), permits, "2024-01").blocks()


def test_each_block_waits_for_its_permit_which_ends_when_the_block_is_written() -> None:
    permits = NotedPermits()
    for block in paced(permits):
        permits.said.append(f"wrote {block.decode()}")
    assert permits.said[:6] == [
        "permit for 2024-01", "wrote 1", "ended",
        "permit for 2024-01", "wrote 2", "ended",
    ]  # fmt: skip


def test_a_load_that_is_given_up_keeps_no_other_waiting() -> None:
    """A request of which no answer came may arrive later; a block that was not taken does not."""
    permits = NotedPermits()
    with closing(cast(Generator[bytes], paced(permits))) as blocks:
        next(blocks)
    assert permits.said == ["permit for 2024-01", "ended"]
