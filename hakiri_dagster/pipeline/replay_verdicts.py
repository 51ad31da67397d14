"""What became of the rows of one chunk that were tried again: as the destination settles it, and summed up."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from hakiri_dagster.destinations.contract import KEPT_ID_COLUMN, BadRow, LedgerEntry
from hakiri_dagster.destinations.quarantine_contract import Verdict
from hakiri_dagster.errors import HakiriError
from hakiri_dagster.pipeline.candidate import StagedCandidate, Staging
from hakiri_dagster.pipeline.kept_parts import LOST, OVERTAKEN, WrittenParts


@dataclass(frozen=True, slots=True)
class ReplayedChunk:
    """`held` counts rows by what keeps them in the quarantine today, `left` those of which it says nothing, by the
    reason; `overtaken` are rows that a later load has read again, and that are gone from the quarantine."""

    key: str
    replayed: int = 0
    held: Mapping[str, int] = field(default_factory=dict)
    left: Mapping[str, int] = field(default_factory=dict)
    overtaken: int = 0
    load_id: int | None = None
    seconds: float = 0.0
    error: HakiriError | None = None


@dataclass(frozen=True, slots=True)
class StagedVerdicts:
    """`destinations.quarantine_contract.Verdicts`, as Spark's workers have written them down. Rows stream."""

    _staging: Staging
    _place: int
    _written: WrittenParts

    @property
    def rows(self) -> int:
        return self._staging.report(self._place).rows

    @property
    def columns(self) -> tuple[str, ...]:
        return tuple(name for name in self._staging.columns if name != KEPT_ID_COLUMN)

    @property
    def candidate(self) -> StagedCandidate:
        return self._staging.candidate(self._place)

    def raise_if_reading_failed(self) -> None:
        self._staging.reports()

    def discarded(self, key: str) -> Iterator[str]:
        """As a load tells it."""
        report = self._staging.report(self._place)
        if report.discarded:
            yield f"chunk {key}: {report.discarded} value(s) discarded; the first: {report.discard_sample}"

    def tried(self) -> Iterator[int]:
        for part in self._written.of(self._place):
            yield from part.ids()

    def told(self) -> Iterator[Verdict]:
        for row in self._staging.bad_rows(self._place):
            if row.rule != OVERTAKEN:
                rule, message = ("", "") if row.rule == LOST else (row.rule, row.message)
                yield Verdict(int(row.row), rule, message, row.on_fail)

    def overtaken(self) -> Iterator[int]:
        return (int(row.row) for row in self._staging.bad_rows(self._place) if row.rule == OVERTAKEN)

    def summed_up(
        self, key: str, entry: LedgerEntry | None, refused: Iterable[BadRow], seconds: float
    ) -> ReplayedChunk:
        held = Counter(row.rule for row in refused)
        left: Counter[str] = Counter()
        overtaken = 0
        for row in self._staging.bad_rows(self._place):
            match row.rule:
                case _ if row.rule == OVERTAKEN:
                    overtaken += 1
                case _ if row.rule == LOST:
                    left[f"{row.message}; load their chunk again with `hakiri run`"] += 1
                case _ if row.on_fail == "skip":
                    held[row.rule] += 1
        replayed = 0 if entry is None else entry.rows
        load_id = None if entry is None else entry.load_id
        return ReplayedChunk(key, replayed, dict(held), dict(left), overtaken, load_id, seconds)
