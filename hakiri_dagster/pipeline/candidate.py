"""The publisher's half of a load: the files that Spark's workers wrote, as one stream of encoded rows a slice.

Only what Spark's result names exists. A growing candidate hands out blocks while Spark is still at work, so that
the destination is busy meanwhile, and compares what it gave with the result when that is in.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from concurrent.futures import wait as wait_for
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import zip_longest
from pathlib import Path

from pyspark.sql import DataFrame, Row

from hakiri_dagster.destinations.contract import BadRow
from hakiri_dagster.engine.spark import interrupt_attempt, tag_attempt
from hakiri_dagster.engine.spark_failures import Explain, translate_spark_errors
from hakiri_dagster.errors import HakiriError, RowCountMismatch
from hakiri_dagster.pipeline.attempt_folders import remove_attempt
from hakiri_dagster.pipeline.key_digests import added
from hakiri_dagster.pipeline.row_lines import RowLines
from hakiri_dagster.pipeline.slice_files import BLOCK_SUFFIX, SliceFiles
from hakiri_dagster.pipeline.staging import StagingPlan
from hakiri_dagster.pipeline.unseen import added_up
from hakiri_dagster.pipeline.unseen import unpacked as unpacked_unseen
from hakiri_dagster.quality.tallies import Tally, add_up, unpacked

_LOOK_AGAIN_SECONDS = 0.02


@dataclass(frozen=True, slots=True)
class SliceReport:
    """What all tasks together wrote of one slice."""

    blocks: tuple[str, ...] = ()
    rows: int = 0
    bytes: int = 0
    cursor_max: int | None = None
    bad_files: tuple[str, ...] = ()
    bad_rows: int = 0
    unplaced: int = 0
    bad_sample: str | None = None
    unfit: int = 0
    unfit_sample: str | None = None
    discarded: int = 0
    discard_sample: str | None = None
    unseen: Mapping[str, int] = field(default_factory=dict)
    truncated: Mapping[str, int] = field(default_factory=dict)
    broken: tuple[int, ...] = ()
    tallies: tuple[Tally, ...] = ()
    key_checksum: int = 0
    onward: str | None = None

    def plus(self, row: Row) -> SliceReport:
        highest = [value for value in (self.cursor_max, row["cursor_max"]) if value is not None]
        return SliceReport(
            blocks=(*self.blocks, *row["blocks"]),
            rows=self.rows + row["rows"],
            bytes=self.bytes + row["bytes"],
            cursor_max=max(highest, default=None),
            bad_files=(*self.bad_files, row["bad_file"]) if row["bad_file"] else self.bad_files,
            bad_rows=self.bad_rows + row["bad_rows"],
            unplaced=self.unplaced + row["unplaced"],
            bad_sample=self.bad_sample or row["bad_sample"],
            unfit=self.unfit + row["unfit"],
            unfit_sample=self.unfit_sample or row["unfit_sample"],
            discarded=self.discarded + row["discarded"],
            discard_sample=self.discard_sample or row["discard_sample"],
            unseen=added_up(self.unseen, unpacked_unseen(row["unseen"])),
            truncated=Counter(self.truncated) + Counter(dict(row["truncated"] or {})),
            broken=tuple(map(sum, zip_longest(self.broken, row["broken"], fillvalue=0))),
            tallies=tuple(add_up(self.tallies, unpacked(row["tallies"]))),
            key_checksum=added(self.key_checksum, row["key_checksum"]),
            onward=self.onward if row["onward"] is None else row["onward"],
        )


Reports = Mapping[int, SliceReport]


class Staging:
    """One Spark job that stages the candidates of one or more slices."""

    def __init__(self, staged: DataFrame, plan: StagingPlan, *, tag: str, explain: Explain, lines: RowLines) -> None:
        self.columns = plan.encoder.columns
        self.paths = {file.content_hash: file.path for file in plan.files}
        self._directory = Path(plan.directory)
        self._spark = staged.sparkSession
        self._lines = lines
        self._wanted = True
        self._job = f"{tag}-{self._directory.name}"
        self._pool = ThreadPoolExecutor(max_workers=1, thread_name_prefix="spark-job")
        self._result: Future[Reports] = self._pool.submit(_collect, staged, plan, (tag, self._job), explain)

    def reports(self) -> Reports:
        """Waits for Spark; raises what Spark raised."""
        return self._result.result()

    def candidate(self, index: int) -> StagedCandidate:
        return StagedCandidate(self, index)

    def bad_rows(self, index: int) -> Iterator[BadRow]:
        for name in self.report(index).bad_files:
            with (self._directory / name).open(encoding="utf-8") as lines:
                yield from SliceFiles.kept_in(lines, self._lines.line)

    def report(self, index: int) -> SliceReport:
        return self.reports().get(index, SliceReport())

    @property
    def finished(self) -> bool:
        return self._result.done()

    @property
    def failed(self) -> bool:
        return self._result.done() and self._result.exception() is not None

    def when_read(self, told: Callable[[BaseException | None], None]) -> None:
        """By the last row, or by what Spark raises, unless it was stopped."""
        self._result.add_done_callback(lambda result: told(result.exception() if self._wanted else None))

    def wait_a_moment(self) -> None:
        wait_for([self._result], timeout=_LOOK_AGAIN_SECONDS)

    def names_so_far(self, index: int) -> list[str]:
        return sorted(path.name for path in self._directory.glob(f"{index:05d}-*{BLOCK_SUFFIX}"))

    def read(self, name: str) -> bytes:
        return (self._directory / name).read_bytes()

    def forget(self, index: int) -> None:
        """The slice is published: its files take disk for nothing."""
        for path in self._directory.glob(f"{index:05d}-*"):
            path.unlink(missing_ok=True)

    def stop(self) -> None:
        """Nobody wants the rows any more: Spark need not read the others."""
        if not self._result.done():
            self._wanted = False
            with suppress(HakiriError), translate_spark_errors():
                interrupt_attempt(self._spark, self._job)

    def close(self) -> None:
        self.stop()
        self._pool.shutdown(wait=False, cancel_futures=True)
        remove_attempt(self._directory)


class StagedCandidate:
    """The rows of one slice, as they arrive (`destinations.contract.Candidate`)."""

    def __init__(self, staging: Staging, index: int) -> None:
        self._staging = staging
        self._index = index

    def blocks(self) -> Iterator[bytes]:
        given: set[str] = set()
        while not self._staging.finished:
            fresh = [name for name in self._staging.names_so_far(self._index) if name not in given]
            for name in fresh:
                yield self._staging.read(name)
                given.add(name)
            if not fresh:
                self._staging.wait_a_moment()
        named = self._staging.report(self._index).blocks
        self._refuse_strangers(given, named)
        for name in named:
            if name not in given:
                yield self._staging.read(name)

    def _refuse_strangers(self, given: set[str], named: Sequence[str]) -> None:
        """A task was tried again after some of its first try's rows had already been handed out."""
        strangers = given.difference(named)
        if strangers:
            raise RowCountMismatch(
                f"Spark repeated a task after {len(strangers)} of its blocks had been sent; nothing was published",
                hint="the load is tried again from what Spark's result names",
            )

    @property
    def rows(self) -> int:
        return self._staging.report(self._index).rows

    @property
    def bytes(self) -> int:
        return self._staging.report(self._index).bytes

    @property
    def cursor_max(self) -> int | None:
        return self._staging.report(self._index).cursor_max

    @property
    def set_aside(self) -> int:
        return self._staging.report(self._index).bad_rows


def _collect(staged: DataFrame, plan: StagingPlan, tags: tuple[str, str], explain: Explain) -> Reports:
    """Tagged with the run, so that the next claim can interrupt what a dead client left at work, and with the pass."""
    reports: dict[int, SliceReport] = {}
    run, job = tags
    spark = staged.sparkSession
    with translate_spark_errors(explain=explain), tag_attempt(spark, run), tag_attempt(spark, job):
        for row in staged.collect():  # one short row a task and slice, never data
            reports[row["slice"]] = reports.get(row["slice"], SliceReport()).plus(row)
    if plan.repeated is not None:
        plan.repeated.refuse_others({index: report.key_checksum for index, report in reports.items()})
    return reports
