"""A run of a table as spans: one for the run, and in it one for each pass over the source, each chunk and each hook."""

from __future__ import annotations

import time
from collections.abc import Generator, Iterator, Sequence
from contextlib import AbstractContextManager, closing, contextmanager
from uuid import UUID

from hakiri_dagster.errors import HakiriError
from hakiri_dagster.pipeline.claims import Claimed
from hakiri_dagster.pipeline.spans import attributes
from hakiri_dagster.pipeline.spans.links import Links
from hakiri_dagster.pipeline.spans.running import RunningSpans
from hakiri_dagster.pipeline.steps import ChunkStep
from hakiri_dagster.pipeline.survey import Survey
from hakiri_dagster.pipeline.trace import Done
from hakiri_dagster.pipeline.way import Way
from hakiri_dagster.tracing.contract import Span, Tracing


class RunTrace:
    """`pipeline.trace.Trace`, of spans. `within`: the span of the command that started the run. Without one the run is
    a trace of its own, whose id is the run's: whoever knows the one finds the other."""

    def __init__(self, tracing: Tracing, within: Span | None) -> None:
        self._tracing = tracing
        self._within = within
        self._running: RunningSpans | None = None

    @property
    def trace_id(self) -> str | None:
        return None if self._running is None else self._running.run.trace_id

    @contextmanager
    def run(self, way: Way, retries: Sequence[str]) -> Iterator[None]:
        links = Links(way)
        others = [run_id for run_id in dict.fromkeys(retries) if run_id != way.run_id]
        running = self._running = RunningSpans(way, self._begin(way, links, others), links)
        try:
            yield
        except HakiriError as error:  # also where not even the record of the run could be begun
            running.run.failed(str(error))
            raise
        finally:
            running.end()

    def _begin(self, way: Way, links: Links, others: Sequence[str]) -> Span:
        name, told, to = f"load {way.table.label}", attributes.of_run(way, others), links.to_runs(others)
        span_id = links.run_span_id(way.run_id)
        if self._within is not None:
            return self._within.child(name, told, links=to, span_id=span_id)
        return self._tracing.root(name, told, links=to, trace_id=_as_trace_id(way.run_id), span_id=span_id)

    def claimed(self, survey: Survey, claims: Claimed) -> None:
        self._now.claimed(survey, claims)

    def reading(self, chunks: int) -> AbstractContextManager[Done]:
        return self._now.reading(chunks)

    def began(self, key: str) -> None:
        self._now.began.setdefault(key, time.time_ns())

    def steps(self, steps: Generator[ChunkStep]) -> Generator[ChunkStep]:
        with closing(steps):
            for step in steps:
                yield self._now.told(step)

    def retried(self, error: HakiriError, seconds: float) -> None:
        """Also where no run goes on: what replays a quarantine tries again as well."""
        if self._running is not None:
            self._running.run.happened("retry", attributes.of_retry(error, seconds))

    @property
    def _now(self) -> RunningSpans:
        if self._running is None:
            raise RuntimeError("the run has not begun")
        return self._running


def _as_trace_id(run_id: str) -> str | None:
    """A UUID has the sixteen bytes of a trace id."""
    try:
        return UUID(run_id).hex
    except ValueError:
        return None
