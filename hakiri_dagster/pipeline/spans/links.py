"""Where the spans of earlier runs are. Their ids follow from what they were about, and the audit DB knows the trace of
a run, so nothing else has to be kept of them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from hakiri_dagster.destinations.contract import LedgerEntry
from hakiri_dagster.errors import HakiriError
from hakiri_dagster.pipeline.way import Way
from hakiri_dagster.tracing.contract import Link, SpanPlace, span_id_of


class Links:
    """Of one table."""

    def __init__(self, way: Way) -> None:
        self._way = way
        self._of_table = (way.table.pipeline_id, way.table.name)
        self._traces: dict[str, str | None] = {}

    def run_span_id(self, run_id: str) -> str:
        return span_id_of("run", run_id, *self._of_table)

    def chunk_span_id(self, run_id: str, key: str, attempt: int) -> str:
        return span_id_of("chunk", run_id, *self._of_table, key, attempt)

    def to_runs(self, run_ids: Sequence[str]) -> tuple[Link, ...]:
        """Runs that this one tries again."""
        return tuple(
            Link(SpanPlace(trace_id, self.run_span_id(run_id)), {"hakiri.link": "retries", "hakiri.run_id": run_id})
            for run_id in run_ids
            if (trace_id := self._trace_of(run_id)) is not None
        )

    def to_loads(self, entries: Iterable[LedgerEntry]) -> tuple[Link, ...]:
        """Loads whose rows this one replaces."""
        return tuple(
            Link(
                SpanPlace(trace_id, self.chunk_span_id(entry.run_id, entry.chunk_key, entry.attempt)),
                {"hakiri.link": "replaces", "hakiri.run_id": entry.run_id, "hakiri.chunk.load_id": entry.load_id},
            )
            for entry in entries
            if (trace_id := self._trace_of(entry.run_id)) is not None
        )

    def _trace_of(self, run_id: str) -> str | None:
        """None of a run that was not traced, and where the audit DB does not answer: what only tells stops nothing."""
        if run_id not in self._traces:
            try:
                self._traces[run_id] = self._way.audit.runs.trace_id(run_id, *self._of_table)
            except HakiriError:
                self._traces[run_id] = None
        return self._traces[run_id]
