"""Which phase a table is in, and with it its pipeline: what is owed, compared with how far the source reaches. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Literal

from hakiri_dagster.manifest.durations import parse_duration
from hakiri_dagster.manifest.tables import Pipeline, Table
from hakiri_dagster.planning.chunks import CursorKind, CursorRange, Extent
from hakiri_dagster.planning.schedules import last_tick, longest_pause
from hakiri_dagster.planning.states import ChunkState
from hakiri_dagster.planning.windows import DAY, to_position

Phase = Literal["planning", "backfilling", "streaming"]


@dataclass(frozen=True, slots=True)
class Sla:
    """How far a table may be behind its source. What came since the last tick of `schedule` is allowed on top: nobody
    was to load it yet."""

    within: timedelta
    schedule: str | None = None
    timezone: str = "UTC"

    @classmethod
    def of(cls, declared: str | None, schedule: str | None, timezone: str) -> Sla | None:
        if declared is not None:
            return cls(parse_duration(declared))
        return None if schedule is None else cls(longest_pause(schedule), schedule, timezone)

    def allowed(self, moment: datetime) -> timedelta:
        tick = None if self.schedule is None else last_tick(self.schedule, self.timezone, before=moment)
        return self.within if tick is None else self.within + (moment - tick)


@dataclass(frozen=True, slots=True)
class Owed:
    """What is owed of a chunk. `begins`: at which position; None: at no position, or before all of them. `never_loaded`
    and `again` leave a gap: its rows were never there, or somebody has asked for them once more, or they were lost.

    What a load found is all that there was until then. So what is owed after it begins no earlier, however long before
    that the newest row was written: a source that rests is not one that is far ahead.
    """

    begins: int | None
    never_loaded: bool
    again: bool

    @classmethod
    def of(cls, state: ChunkState) -> Owed:
        mark, bounds = state.cursor_committed, state.bounds
        return cls.told(
            mark=mark,
            lower=bounds.interval.lower if isinstance(bounds, CursorRange) else None,
            loaded=state.load_id is not None or bool(state.carried_from),
            again=state.is_rewound or state.gap,
            completed_at=state.completed_at,
        )

    @classmethod
    def told(
        cls, *, mark: int | None, lower: int | None, loaded: bool, again: bool, completed_at: datetime | None
    ) -> Owed:
        begins = lower if mark is None else mark
        loaded = loaded or mark is not None
        if loaded and not again and completed_at is not None:
            loaded_at = to_position(completed_at)
            begins = loaded_at if begins is None else max(begins, loaded_at)
        return cls(begins, not loaded, again)


@dataclass(frozen=True, slots=True)
class Standing:
    """A table as it was last looked at: `upper` is the source's newest cursor that was not after that moment."""

    chunks: int
    owed: Sequence[Owed]
    kind: CursorKind | None = None
    upper: int | None = None
    moment: datetime | None = None

    @property
    def behind(self) -> timedelta | None:
        """None where the cursor is no time, or where it cannot be told yet."""
        if self.upper is None or self.kind not in ("timestamp", "date"):
            return None
        begins = [owed.begins for owed in self.owed]
        if not begins:
            return timedelta()
        firsts = [first for first in begins if first is not None]
        if len(firsts) < len(begins):
            return None
        grain = DAY if self.kind == "date" else 0  # of a day nobody tells the hour
        return timedelta(microseconds=max(0, self.upper - min(firsts) - grain))


def table_phase(standing: Standing, sla: Sla | None) -> Phase:
    if standing.chunks == 0:
        return "planning"
    if any(owed.again for owed in standing.owed):
        return "backfilling"
    behind = standing.behind
    if sla is not None and behind is not None and standing.moment is not None:
        return "streaming" if behind <= sla.allowed(standing.moment) else "backfilling"
    return "backfilling" if any(owed.never_loaded for owed in standing.owed) else "streaming"


def sla_of(table: Table) -> Sla | None:
    return Sla.of(table.backfill.sla, table.schedule, table.timezone)


def slas_of(pipeline: Pipeline) -> dict[str, Sla | None]:
    """By table."""
    return {table.name: sla_of(table) for table in pipeline.tables}


def pipeline_phase(phases: Iterable[Phase]) -> Phase:
    """A table without a chunk says nothing beside others: its source may be empty for good."""
    found = set(phases)
    return "backfilling" if "backfilling" in found else "streaming" if "streaming" in found else "planning"


def source_upper(extent: Extent | None, kind: CursorKind | None, moment: datetime) -> int | None:
    """Rows dated after now do not tell how far the source has come."""
    if extent is None or kind is None or extent.upper is None:
        return None
    if kind == "numeric" or extent.upper <= to_position(moment):
        return extent.upper
    return extent.upper_by_now
