"""The spans of a run that goes on.

A chunk's span begins when its rows begin to be copied. The chunks of a pass are read together, so that is told once, in
a span beside theirs: else the time of one pass would be counted as often as it has chunks.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from threading import Lock

from hakiri_dagster.destinations.contract import LedgerEntry
from hakiri_dagster.errors import HakiriError
from hakiri_dagster.pipeline.claims import Claimed, ClaimedSlice
from hakiri_dagster.pipeline.hooks_run import HookRun
from hakiri_dagster.pipeline.paced import waited_ms
from hakiri_dagster.pipeline.shapes import cursor_of
from hakiri_dagster.pipeline.spans import attributes
from hakiri_dagster.pipeline.spans.earlier_loads import EarlierLoads
from hakiri_dagster.pipeline.spans.links import Links
from hakiri_dagster.pipeline.spans.pace import Pace
from hakiri_dagster.pipeline.steps import ChunkStep, FailedChunk, PreparedChunk, PublishedChunk, SkippedChunk
from hakiri_dagster.pipeline.survey import Survey
from hakiri_dagster.pipeline.trace import Done
from hakiri_dagster.pipeline.way import Way
from hakiri_dagster.planning.chunks import CursorKind
from hakiri_dagster.tracing.contract import Attributes, Span

_MILLISECOND = 1_000_000
_SECOND = 1_000_000_000
_GIVEN_BACK = "the run ended before the chunk was published"


class RunningSpans:
    def __init__(self, way: Way, run: Span, links: Links) -> None:
        self.run = run
        self.began: dict[str, int] = {}
        """Chunks that are worked on, and since when."""
        self._way = way
        self._links = links
        self._claims: dict[str, ClaimedSlice] = {}
        self._kind: CursorKind | None = None
        self._earlier = EarlierLoads({}, {})
        self._pace = Pace(0, time.monotonic())
        self._outcomes: Counter[str] = Counter()

    def claimed(self, survey: Survey, claims: Claimed) -> None:
        self._claims = {claim.key: claim for claim in claims.slices}
        self._kind = survey.discovery.cursor_kind
        self._earlier = EarlierLoads.of(survey)
        self._pace = Pace(max(len(survey.due_keys), len(claims.slices)), time.monotonic())

    @contextmanager
    def reading(self, chunks: int) -> Iterator[Done]:
        """Spark may be done with it long before all its chunks are published."""
        told = {**attributes.of_table(self._way), "hakiri.read.chunks": chunks}
        before = waited_ms(self._way)
        child = self.run.child(f"read {self._way.table.label}", told)
        span = _EndedOnce(child, lambda: self._shared_wait_told(child, before))
        try:
            yield span.done
        except HakiriError as error:
            span.done(error)
            raise
        finally:
            span.done(None)

    def told(self, step: ChunkStep) -> ChunkStep:
        """The step as it is to be handed on: with a publish that is followed."""
        match step:
            case PreparedChunk():
                for ran in step.hooks:
                    self._hook(ran)
                return replace(step, publish=lambda: self._publish(step))
            case FailedChunk():
                self._failed(step)
            case SkippedChunk():
                self._skipped(step)
            case HookRun():
                self._hook(step)
        return step

    def end(self) -> None:
        for key in list(self.began):
            self._settled(key, {attributes.OUTCOME: "given_back"}, why=_GIVEN_BACK)
        totals = self._way.totals
        self.run.tell(attributes.of_totals(totals, self._outcomes))
        if totals.errors:
            self.run.tell(attributes.of_error(totals.errors[0]))
            self.run.failed(str(totals.errors[0]))
        self.run.ended()

    def _publish(self, step: PreparedChunk) -> PublishedChunk | FailedChunk:
        published = step.publish()
        if isinstance(published, FailedChunk):
            self._failed(published)
        else:
            earlier = self._earlier.replaced_by(self._claims[published.key].claim.due, published.replaces)
            told = {**attributes.of_published(published), **attributes.of_rewind(step.rewound)}
            self._settled(published.key, told, replaces=earlier)
        return published

    def _failed(self, step: FailedChunk) -> None:
        self._settled(step.key, attributes.of_failed(step), why=str(step.error))

    def _settled(
        self, key: str, told: Attributes, *, why: str | None = None, replaces: Sequence[LedgerEntry] = ()
    ) -> None:
        way, claim, now = self._way, self._claims.get(key), time.time_ns()  # none of a part that was never read
        began = self.began.pop(key, now)
        times = attributes.of_times(
            (now - began) // _MILLISECOND, self._waited(key), self._pace.settled(time.monotonic())
        )
        span = self._chunk(
            key,
            {
                **({} if claim is None else attributes.of_claim(claim, cursor_of(way.table), self._kind)),
                **told,
                **times,
                **attributes.of_earlier_loads([entry.load_id for entry in replaces]),
            },
            began=began,
            replaces=replaces,
            span_id=None if claim is None else self._links.chunk_span_id(way.run_id, key, claim.attempt),
        )
        if why is not None:
            span.failed(why)
        span.ended()

    def _skipped(self, step: SkippedChunk) -> None:
        self.began.pop(step.key, None)
        self._chunk(step.key, attributes.of_skipped(step)).ended()

    def _chunk(
        self,
        key: str,
        told: Attributes,
        *,
        began: int | None = None,
        replaces: Sequence[LedgerEntry] = (),
        span_id: str | None = None,
    ) -> Span:
        self._outcomes[str(told[attributes.OUTCOME])] += 1
        told = {**attributes.of_table(self._way), "hakiri.chunk_id": key, **told}
        links = self._links.to_loads(replaces)
        return self.run.child(f"chunk {self._way.table.label}", told, links=links, began=began, span_id=span_id)

    def _waited(self, key: str) -> int | None:
        """None where nobody can tell just now."""
        return waited_ms(self._way, key) if self._way.has_budgets else 0

    def _shared_wait_told(self, span: Span, before: int | None) -> None:
        if before is not None and (now := waited_ms(self._way)) is not None:
            span.tell({"hakiri.read.wait_ms": now - before})

    def _hook(self, ran: HookRun) -> None:
        began = time.time_ns() - round(ran.seconds * _SECOND)
        told = {**attributes.of_table(self._way), **attributes.of_hook(ran)}
        span = self.run.child(f"{ran.phase} {self._way.table.label}", told, began=began)
        if ran.error is not None:
            span.failed(str(ran.error))
        span.ended()


class _EndedOnce:
    def __init__(self, span: Span, tell_last: Callable[[], None]) -> None:
        self._span = span
        self._tell_last = tell_last
        self._goes_on = Lock()

    def done(self, error: BaseException | None) -> None:
        if not self._goes_on.acquire(blocking=False):
            return
        if isinstance(error, HakiriError):
            self._span.tell(attributes.of_error(error))
            self._span.failed(str(error))
        self._tell_last()
        self._span.ended()
