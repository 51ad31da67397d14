"""What every source offers. One module (or package) a connector; nothing above knows which one it talks to."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Any, Protocol, runtime_checkable

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from hakiri_dagster.connectors.network import Network
from hakiri_dagster.errors import HakiriError
from hakiri_dagster.manifest.load_spec import SubMicroseconds
from hakiri_dagster.planning.arrivals import Stamp
from hakiri_dagster.planning.backfill_hint import BackfillHint
from hakiri_dagster.planning.chunks import CursorKind, Extent, Part, Slice, SourceFile
from hakiri_dagster.planning.columns import SourceSchema
from hakiri_dagster.planning.horizon import Horizon, Lookback
from hakiri_dagster.planning.source_files import FileVersion
from hakiri_dagster.quality.measures import Form
from hakiri_dagster.quality.table_comparison import ComparedColumns, ComparedTable

NOTHING_SAID: Mapping[str, Any] = MappingProxyType({})
NO_NETWORK = Network()
NO_LOOKBACK = Lookback(judges=False)

SparkProvider = Callable[[], SparkSession]
"""Starts Spark when it is first called, so that whoever needs no rows pays for no engine."""

FILE_COLUMN = "_hakiri_file"
"""`xxhash64` of the path of the file a row came from (bigint), when a reading spans several files."""

MALFORMED_COLUMN = "_hakiri_malformed"
"""A struct of `line`, the text of a line that could not be parsed, and `reason`; NULL for a good row. `readable`: it is
a row all the same, in which the values that are not of their columns' types are NULL."""

KEPT_COLUMN = "_hakiri_kept"
"""Of rows that come out of the quarantine, a struct: their `id` there, the index of their `slice`, and what was settled
when they were read, if anything: the `verdict`, and its `reason`."""

SPLIT_COLUMN = "_hakiri_split"
"""At which byte of its file the part begins that a row came with (bigint), where a source has lines."""

LINE_COLUMN = "_hakiri_line"
"""The text of a record that is still to be parsed."""

RECORD_COLUMN = "_hakiri_record"
"""A number that grows by one from record to record of such a part (bigint), whatever it begins with."""

UNSEEN_COLUMN = "_hakiri_unseen"
"""The names of members with a value for which the reading has no column (array of texts); NULL if there are none."""

TRUNCATED_COLUMN = "_hakiri_truncated"
"""The names of the row's timestamps that lost digits beyond microseconds (array of texts); NULL if there are none."""

SLICE_COLUMN = "_hakiri_slice"
"""Which slice a row came with, by its index (int), where the source was asked for each slice by itself."""


ONWARD_COLUMN = "_hakiri_onward"
"""Of the one row that tells where a segment has ended: the token that leads on, or an empty text if the source has no
more. NULL for a row of the table."""


@dataclass(frozen=True, slots=True)
class RecordPlace:
    """Where a row came from: `after` counts the records of the split from the first one that is wanted of it."""

    file: str
    split: int
    after: int


LineOf = Callable[[RecordPlace], int | None]
"""On which line a record begins, counted from 1; None where it cannot be told with certainty."""


class DirectRows(Protocol):
    """The rows of a frame for a Python stage that would come first, picklable: read by the stage's own tasks, they are
    spared the way into the JVM and back, which costs more than the reading."""

    @property
    def parts(self) -> int: ...

    @property
    def same_twice(self) -> bool:
        """Whoever reads them again gets the same rows, or an error."""
        ...

    def read(self, part: int) -> Iterator[pa.RecordBatch]: ...

    def only(self, names: Collection[str]) -> DirectRows:
        """The same rows with fewer columns."""
        ...


def _nothing() -> None: ...


def _unexplained(_error: Exception) -> None: ...


@dataclass(frozen=True, slots=True)
class FileOrigin:
    """One file of a reading: its `FILE_COLUMN` value, its path and its content hash (16 bytes)."""

    marker: int
    path: str
    content_hash: bytes


Forms = Sequence[tuple[str, Form]]


@dataclass(frozen=True, slots=True)
class SourceTally:
    """`digest`: the checksum of the columns that were asked for."""

    rows: int
    digest: int


@dataclass(frozen=True, slots=True)
class Reading:
    """Rows of one or more slices, read in one pass.

    `frame` holds the source's columns, in the order of `schema`, and, where they apply, `MALFORMED_COLUMN`,
    `FILE_COLUMN` (only when `files` has more than one entry), `SPLIT_COLUMN`, `RECORD_COLUMN` and `TRUNCATED_COLUMN`.
    How rows are told apart into slices follows from the slices' bounds: by the cursor column, or by the file; or
    `SLICE_COLUMN` says it. A segment is read alone, and `ONWARD_COLUMN` comes with it.
    """

    frame: DataFrame
    schema: SourceSchema
    files: tuple[FileOrigin, ...] = ()
    has_malformed: bool = False
    close: Callable[[], None] = _nothing
    """To be called once the frame has been executed for the last time: what the source holds for it is let go."""

    tally: Callable[[Sequence[Slice], Forms, bool], Sequence[SourceTally]] | None = None
    """Counts the rows of slices once more, as they were when the reading began, with empty texts as NULL if so told;
    None: nobody but Spark can."""

    direct: DirectRows | None = None
    warnings: tuple[str, ...] = ()
    """About values that are not read as they are in the source."""

    explain: Callable[[Exception], HakiriError | None] = _unexplained
    """An error of Spark's while it runs the frame, in the source's words; None if it is not about the source."""

    lines: Callable[[Path], LineOf] | None = None
    """For a source that has lines: tells them, once the frame has been executed. Keeps in the folder what it learns."""


FileState = FileVersion
"""A source file as last seen. `fingerprint` changes when size or mtime do; only then are contents hashed. `lower` to
`rows` are filled for tables with a cursor only."""


@dataclass(frozen=True, slots=True)
class Discovery:
    """What the source holds now.

    `extent` when a cursor was asked for; `files` for file sources; `fingerprint` is an opaque one of the
    whole source where one is cheap (files), else None; `rows_estimate` where one is cheap.
    """

    schema: SourceSchema | None
    cursor_kind: CursorKind | None = None
    extent: Extent | None = None
    files: tuple[FileState, ...] = ()
    fingerprint: str | None = None
    rows_estimate: int | None = None
    warnings: tuple[str, ...] = ()
    absent: tuple[str, ...] = ()
    """Columns of `schema` that it remembers and that nothing in the source has any more."""

    broken: Mapping[str, HakiriError] = field(default_factory=dict)
    """Why a file cannot be read, by path. It is among `files`, so that its chunk fails and the others do not; its
    content hash only tells it from what it was and will be."""

    parts: Mapping[Part, Extent] = field(default_factory=dict)
    """What each part holds, where the table has some and a cursor was asked for; `extent` is then of all of them."""

    away: Mapping[Part, HakiriError] = field(default_factory=dict)
    """Why the source refuses a part, which is then not among `parts`: the others are loaded meanwhile. A transient
    error: it does not answer for it."""

    horizon: Horizon | None = None
    """Up to where the cursor is complete, where the source can tell."""

    @property
    def source_files(self) -> tuple[SourceFile, ...]:
        return tuple(SourceFile(f.path, f.content_hash) for f in self.files)


@dataclass(frozen=True, slots=True)
class Known:
    """What earlier discoveries of this table have told, from the audit DB, so that nothing is looked at twice."""

    schema: SourceSchema | None = None
    files: Mapping[str, FileState] = field(default_factory=dict)


class SourceTable(Protocol):
    """One table of one source."""

    @property
    def text_format(self) -> bool:
        """Values come from text (CSV, JSON): empty strings are NULL by default."""
        ...

    @property
    def read_as(self) -> str:
        """The settings that tell how the bytes are understood, as an opaque text: with another one, what was learned of
        columns and contents is void."""
        ...

    @property
    def tallies_itself(self) -> bool:
        """It can count its rows, and sum up their values, as a destination of its own kind does."""
        ...

    @property
    def slices_a_pass(self) -> int | None:
        """How many slices are best read at once, so that what was read of others is not lost with one that fails; None:
        as many as there are."""
        ...

    @property
    def chunked_by_file(self) -> bool:
        """Without a cursor, each file is a chunk; else the whole table is one."""
        ...

    @property
    def hint(self) -> BackfillHint:
        """How its history can be pulled: known from its settings, without any I/O."""
        ...

    @property
    def lineage(self) -> tuple[str, ...]:
        """A stable name of the upstream table or folder, without secrets: the source asset's key."""
        ...

    def discover(
        self, *, cursor: str | None, known: Known, spark: SparkProvider, lookback: Lookback = NO_LOOKBACK
    ) -> Discovery:
        """Cheap: catalog, footers, listings; Spark only where a text file's types or extent must be scanned once.

        `lookback`: what earlier surveys of the cursor know, where rows may come late.

        `known.schema` is returned as it is for text formats, whose types are inferred once.
        """
        ...

    def read(
        self,
        spark: SparkSession,
        schema: SourceSchema,
        cursor: str | None,
        slices: Sequence[Slice],
        files: Mapping[str, FileState],
        *,
        tallied: bool = False,
        twice: bool = False,
        horizon: Horizon | None = None,
    ) -> Reading:
        """All slices in one pass. Malformed lines come along, marked; nothing is dropped or nulled. `tallied`: the
        reading's `tally` will be asked for. `twice`: the rows are read more than once, and should be the same again.
        `horizon`: what was judged when the slices were planned; no older state of the source may be read."""
        ...


@runtime_checkable
class OfFiles(Protocol):
    """A table whose files can be listed."""

    def stamps(self) -> tuple[Stamp, ...]:
        """Those that are there now, unread."""
        ...


@runtime_checkable
class Comparable(Protocol):
    """A table whose rows can be compared with a target's without reading them through Spark."""

    def comparison(self, columns: ComparedColumns) -> ComparedTable:
        """`columns` are those that the destination compares, in forms that it computes alike."""
        ...


class Connector(Protocol):
    """`config` is the source's, `path` the table's (files)."""

    def check_config(self, config: Mapping[str, Any], table: str, path: str | None) -> Sequence[str]:
        """What is wrong with the settings, told without any I/O."""
        ...

    def table(
        self,
        *,
        config: Mapping[str, Any],
        name: str,
        path: str | None,
        columns: Mapping[str, str],
        label: str,
        keeps_misfits: bool = False,
        endpoint: Mapping[str, Any] = NOTHING_SAID,
        key: Sequence[str] = (),
        network: Network = NO_NETWORK,
        sub_microseconds: SubMicroseconds = "warn",
    ) -> SourceTable:
        """`keeps_misfits`: rows that are readable belong to their cursor, also if a value of theirs is not. `endpoint`
        is the table's (APIs), `key` what tells its rows apart; `network` is the operator's word.
        `sub_microseconds` says what becomes of timestamps with more digits than PostgreSQL keeps."""
        ...
