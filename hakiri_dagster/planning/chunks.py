"""What a chunk and a slice are. Values only: how a plan is cut is in `chunk_plan`, what of it is due in `due`.

Cursor positions are plain integers on every path: numeric cursors as they are (floor for fractions), times as
microseconds since 1970-01-01 UTC. So intervals, coverage and the splitting of rows need one arithmetic. They fit 64
bits: sources refuse what lies beyond. NaN and infinity have no position.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal

CursorKind = Literal["timestamp", "date", "numeric"]

FULL_KEY = "full"
NULL_KEY = "null"
OUTSIDE_KEY = "outside"

FIRST_POSITION: Final = -(2**63)
LAST_POSITION: Final = 2**63 - 1


@dataclass(frozen=True, slots=True, order=True)
class Interval:
    """Half-open, `[lower, upper)`; None is unbounded on that side."""

    lower: int | None
    upper: int | None


@dataclass(frozen=True, slots=True)
class Part:
    """The rows of a table with this value in its partition key, which the source keeps apart from the others."""

    column: str
    value: str


@dataclass(frozen=True, slots=True)
class CursorRange:
    """The rows whose cursor lies in the interval; of one part, where the table has parts."""

    interval: Interval
    part: Part | None = None


@dataclass(frozen=True, slots=True)
class NullCursor:
    """The rows whose cursor has no position: NULL, NaN, infinity."""

    part: Part | None = None


@dataclass(frozen=True, slots=True)
class SourceFile:
    """The rows of one file. `path` is as the connector names it; `content_hash` is 32 hex digits (16 bytes)."""

    path: str
    content_hash: str


@dataclass(frozen=True, slots=True)
class WholeTable:
    """All rows of the table."""


@dataclass(frozen=True, slots=True)
class Segment:
    """So many pages of a source that can only be walked in order, from where the token `after` leads; None: from its
    beginning."""

    number: int
    after: str | None = None


Bounds = CursorRange | NullCursor | SourceFile | WholeTable | Segment


@dataclass(frozen=True, slots=True)
class Chunk:
    """The unit of backfill, of resuming and of commit; one Dagster partition."""

    key: str
    bounds: Bounds


@dataclass(frozen=True, slots=True)
class Slice:
    """What one load moves: the whole chunk, or what is new in it since its cursor (`bounds` then begins there)."""

    chunk: Chunk
    bounds: Bounds


WHOLE: Final = Slice(Chunk(FULL_KEY, WholeTable()), WholeTable())
"""All rows of a table, read at once."""


@dataclass(frozen=True, slots=True)
class Extent:
    """What the source holds, as a cheap query tells. `upper` is the highest cursor that occurs (inclusive).

    `lower` and `upper` are None when no row has a cursor. `rows_at_upper` is how many rows sit exactly at `upper`
    (None if that is not cheap), so that ties that come late are noticed. `upper_by_now` and `rows_at_upper_by_now`
    are the same among the rows not dated after now; to be told for time cursors when `upper` lies after now, because
    one row dated 2099 would else hide every new row (None and 0 if there is none). `nulls_fingerprint` changes when one
    of the rows without a position does, also when their number stays the same; None where changes are told otherwise.
    `rows_recent` is a number that was never returned before, where nothing tells whether late rows have come.
    `fingerprints` change when a row comes, goes or moves among those at or after a position (None: all rows with one);
    `beyond_now` does among those dated after now.
    """

    lower: int | None
    upper: int | None
    nulls: int
    rows_at_upper: int | None = None
    rows_estimate: int | None = None
    upper_by_now: int | None = None
    rows_at_upper_by_now: int | None = None
    nulls_fingerprint: str | None = None
    rows_recent: int | None = None
    fingerprints: tuple[tuple[int | None, str], ...] = ()
    beyond_now: str | None = None

    @property
    def newest(self) -> int | None:
        """The highest cursor that is not dated after now."""
        has_later_ones = self.upper_by_now is not None or self.rows_at_upper_by_now == 0
        return self.upper_by_now if has_later_ones else self.upper

    @property
    def said_of_nulls(self) -> str:
        return str(self.nulls) if self.nulls_fingerprint is None else f"{self.nulls}/{self.nulls_fingerprint}"
