"""What a worker holds while it works on a chunk. A claim's attempt makes it void once somebody else took over."""

from __future__ import annotations

from dataclasses import dataclass

from hakiri_dagster.errors import ErrorKind
from hakiri_dagster.planning.states import DueSlice


@dataclass(frozen=True, slots=True)
class DeadAttempt:
    """An attempt that ended without a word: its leftovers are to be swept."""

    holder: str
    attempt: int


@dataclass(frozen=True, slots=True)
class Claim:
    pipeline_id: str
    table: str
    due: DueSlice
    holder: str
    run_id: str
    attempt: int
    dead: DeadAttempt | None = None

    @property
    def key(self) -> str:
        return self.due.key

    @property
    def label(self) -> str:
        return f"{self.pipeline_id}/{self.table}, chunk {self.key}"


@dataclass(frozen=True, slots=True)
class BusyChunk:
    """`holder` is None while another claim of the chunk is under way."""

    key: str
    holder: str | None


@dataclass(frozen=True, slots=True)
class Claims:
    """`overtaken`: somebody has tried these chunks since they were planned, so what they owe is to be asked anew."""

    claimed: tuple[Claim, ...]
    busy: tuple[BusyChunk, ...]
    overtaken: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Outcome:
    """What the destination's ledger says of a slice that was published."""

    rows: int
    bytes: int
    cursor_committed: int | None
    load_id: int
    token: str | None = None


@dataclass(frozen=True, slots=True)
class Failure:
    kind: ErrorKind
    message: str
