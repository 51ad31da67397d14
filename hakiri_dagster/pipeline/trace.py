"""How a run and its chunks are followed from outside: what `chunk_run` and what it calls tell while they work."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from typing import TYPE_CHECKING, Protocol

from hakiri_dagster.errors import HakiriError

if TYPE_CHECKING:
    from hakiri_dagster.pipeline.claims import Claimed
    from hakiri_dagster.pipeline.steps import ChunkStep
    from hakiri_dagster.pipeline.survey import Survey
    from hakiri_dagster.pipeline.way import Way

Done = Callable[[BaseException | None], None]
"""Told once, with what went wrong."""


class Trace(Protocol):
    """Of one run of one table. Nothing here raises or waits for anybody outside."""

    @property
    def trace_id(self) -> str | None:
        """None where the run is not followed, or has not begun."""
        ...

    def run(self, way: Way, retries: Sequence[str]) -> AbstractContextManager[None]:
        """Around all of it. `retries`: runs that this one tries again."""
        ...

    def claimed(self, survey: Survey, claims: Claimed) -> None: ...

    def reading(self, chunks: int) -> AbstractContextManager[Done]:
        """Around a pass over the source, which is done when the last row is read, before or at the end of the block."""
        ...

    def began(self, key: str) -> None:
        """The rows of a chunk begin to be copied, maybe not for the first time."""
        ...

    def retried(self, error: HakiriError, seconds: float) -> None:
        """The work goes on in so many seconds."""
        ...

    def steps(self, steps: Generator[ChunkStep]) -> Generator[ChunkStep]:
        """The steps of the run, each told as it passes; a prepared chunk's publish is followed too."""
        ...


class Untraced:
    trace_id = None

    @contextmanager
    def run(self, way: Way, retries: Sequence[str]) -> Iterator[None]:
        yield

    def claimed(self, survey: Survey, claims: Claimed) -> None: ...

    @contextmanager
    def reading(self, chunks: int) -> Iterator[Done]:
        yield lambda _error: None

    def began(self, key: str) -> None: ...

    def retried(self, error: HakiriError, seconds: float) -> None: ...

    def steps(self, steps: Generator[ChunkStep]) -> Generator[ChunkStep]:
        return steps
