"""What every destination offers to the way of one row (`pipeline/chunk_run.py`).

prepare brings the destination to the state the load would leave, where no reader sees it; publish makes that
state visible together with its ledger row, in one transaction; undo leaves no trace.
"""

from __future__ import annotations

from collections.abc import Collection, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from datetime import datetime
from typing import Protocol

import pyarrow as pa

from hakiri_dagster.destinations.backups_contract import Backup, Restored
from hakiri_dagster.destinations.hooks_contract import Attempt, HookSession, Relation
from hakiri_dagster.destinations.quarantine_contract import Kept, KeptChoice, KeptLine, Replay, Verdicts
from hakiri_dagster.destinations.refusals_contract import RefusedRows
from hakiri_dagster.manifest.rule_spec import RowOnFail
from hakiri_dagster.manifest.tables import Table
from hakiri_dagster.planning.chunks import Bounds, Interval, Slice
from hakiri_dagster.planning.columns import SourceSchema
from hakiri_dagster.planning.evolution import Widening
from hakiri_dagster.planning.hooks import HookName, OwedHook
from hakiri_dagster.planning.mode_switch import LastLoad
from hakiri_dagster.planning.publishers import Move, Moved, ProjectClaim, ProjectIdentity, Publisher, TargetPublishers
from hakiri_dagster.planning.replays import KeptOfLoad, LiveLoad
from hakiri_dagster.planning.verification import QuarantinedRows
from hakiri_dagster.quality.measures import Answers, Digest, Form, Measure
from hakiri_dagster.quality.table_comparison import ComparedColumns, ComparedTable
from hakiri_dagster.quality.validators.registry import Asked

LOAD_ID_COLUMN = "_hakiri_load_id"
SOURCE_FILE_HASH_COLUMN = "_source_file_hash"
INGESTED_AT_COLUMN = "_hakiri_ingested_at"
ROW_HASH_COLUMN = "_hakiri_row_hash"
PROVENANCE_COLUMNS = frozenset({LOAD_ID_COLUMN, SOURCE_FILE_HASH_COLUMN, INGESTED_AT_COLUMN, ROW_HASH_COLUMN})

KEPT_ID_COLUMN = "_hakiri_kept_id"
"""In the candidate of a replay only, and in no target: which row of the quarantine it is (bigint), for those that the
destination refuses."""


@dataclass(frozen=True, slots=True)
class TargetColumn:
    """`type` is the destination's own spelling (`numeric(15,2)`)."""

    name: str
    type: str
    nullable: bool
    has_default: bool = False
    generated: bool = False


@dataclass(frozen=True, slots=True)
class Target:
    """A target table as it is now. `retyped`: columns with the types that the next load gives them."""

    schema: str
    name: str
    columns: tuple[TargetColumn, ...]
    primary_key: tuple[str, ...]
    unique_keys: tuple[tuple[str, ...], ...]
    row_estimate: int | None = None
    retyped: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class SchemaChange:
    """What `plan` shows and `ensure_target` does: `create table …`, `add column …`, or a refusal.

    `column`: of a refusal that somebody may permit, the column whose type it is about.
    """

    description: str
    refused: bool = False
    column: str | None = None


@dataclass(frozen=True, slots=True)
class Doubt:
    """Why something cannot be asked. `may_pass`: what is missing may be there by the time of the load."""

    about: Measure
    reason: str
    may_pass: bool = False


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why rows cannot be stored: `mask` marks them (True = refused). `value_only`: they can, without the value."""

    mask: pa.BooleanArray
    rule: str
    message: str
    value_only: bool = False


class RowEncoder(Protocol):
    """Encodes Arrow batches for the destination. Picklable; lives in Spark's workers, one instance a task and chunk."""

    def write(self, batch: pa.RecordBatch) -> bytes: ...

    def finish(self) -> bytes: ...


class EncoderPlan(Protocol):
    """Made by the destination for one target and one schema; picklable; carried to the workers.

    `columns` are the names a batch must have, in order, provenance columns included.
    """

    @property
    def columns(self) -> tuple[str, ...]: ...

    def prepare(self, batch: pa.RecordBatch) -> tuple[pa.RecordBatch, Sequence[Refusal]]:
        """Casts to what the target stores, and tells which rows cannot be stored. Never raises for a bad value."""
        ...

    def encoder(self) -> RowEncoder: ...


@dataclass(frozen=True, slots=True)
class Fence:
    """A claim's token in the destination; a later claim of the same chunk makes it void."""

    token: int
    load_id: int


@dataclass(frozen=True, slots=True)
class Load:
    """One slice on its way into one target. `supersedes` are chunks whose rows it replaces, whatever its bounds.
    `occasion` is what several runs have in common: one `apply`, one tick, one backfill. `texts`: columns that are texts
    at the source, whatever the target makes of them. `replay`: of rows that were set aside; they join those that are
    published within the bounds, and replace none. `takes_mark_back`: what comes after it, up to the table's mark, is
    owed again. `unknown`: loads that the ledger has lost, and whose rows are in the target. `rereads`: the stretch of
    the cursor, from the slice on, that was read together with it: what earlier loads published there may have changed
    since, also to a lower cursor. `read_after`: until when, by the destination's clock, loads of the table had been
    published when this one began to read a source that has one row a key; its rows are newer than theirs."""

    table: Table
    slice: Slice
    fence: Fence
    run_id: str
    attempt: int
    target: Target
    columns: tuple[str, ...]
    supersedes: tuple[str, ...] = ()
    occasion: str | None = None
    asked: Asked = field(default_factory=Asked)
    texts: frozenset[str] = frozenset()
    replay: Replay | None = None
    takes_mark_back: bool = False
    unknown: tuple[int, ...] = ()
    rereads: tuple[Interval, ...] = ()
    read_after: datetime | None = None


@dataclass(frozen=True, slots=True)
class LoadAnswers:
    """To what a load asks of its candidate, and of the table as it would leave it."""

    of_candidate: Answers = field(default_factory=dict)
    of_table: Answers = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class LedgerEntry:
    """A published slice, as the destination remembers it. `superseded`: later loads of the table replaced its rows.
    `token`: of a segment, what leads to the next one."""

    load_id: int
    chunk_key: str
    bounds: Bounds
    rows: int
    bytes: int
    cursor_committed: int | None
    run_id: str
    attempt: int
    published_at: datetime
    superseded: bool
    token: str | None = None


@dataclass(frozen=True, slots=True)
class Mark:
    """How far the loads of a table that go in order have come; None: no row with a cursor is published.

    `begins_at`: what lies before it was in the target before our first load, so no chunk of it is planned.
    """

    position: int | None
    begins_at: int | None = None


@dataclass(frozen=True, slots=True)
class BadRow:
    """A row set aside, or one that somebody is to hear of. `row` is JSON text; `source_line` is where it begins, from 1
    on, in a file that has lines; `on_fail` what the rule says of it: only what it says to `skip` is missing from the
    target. `file_hash`: of the content of its file, where that is all that is known of it; `kept_id`: of one that comes
    out of the quarantine, its id there."""

    rule: str
    message: str
    row: str
    source_file: str | None
    source_line: int | None = None
    on_fail: RowOnFail = "skip"
    file_hash: bytes | None = None
    kept_id: int | None = None


class Candidate(Protocol):
    """The rows of a slice, encoded, in files. May still grow while it is fed; `settle` ends that."""

    def blocks(self) -> Iterator[bytes]:
        """The encoded bytes, as they arrive. Ends when Spark's result is in and every file it names was given. Once it
        is in, they come in the same order each time."""
        ...

    @property
    def rows(self) -> int:
        """What Spark's result says, for which it waits."""
        ...

    @property
    def bytes(self) -> int: ...

    @property
    def cursor_max(self) -> int | None:
        """The highest cursor among the rows; to be read after `blocks` has ended."""
        ...

    @property
    def set_aside(self) -> int:
        """How many rows of the slice are not among these, for they could not be stored; after `blocks` has ended."""
        ...


class PreparedLoad(Protocol):
    """The state the load would leave, invisible to readers."""

    @property
    def rows(self) -> int: ...

    @property
    def notes(self) -> Sequence[str]:
        """What somebody should hear of this load, though it goes on."""
        ...

    @property
    def answers(self) -> LoadAnswers: ...

    @property
    def refused(self) -> RefusedRows:
        """Rows of the candidate that the destination does not take. They are not among `rows`."""
        ...

    @property
    def replaces(self) -> Sequence[int]:
        """Earlier loads of the table of which it replaces rows."""
        ...

    @property
    def place(self) -> Relation | None:
        """The relation that holds the state, where it is one of its own, which others can reach."""
        ...

    def publish(
        self, cursor_committed: int | None, bytes_: int, owes: Sequence[HookName] = (), token: str | None = None
    ) -> LedgerEntry:
        """Compares the fence, writes the ledger row and the hooks that are owed from now on, and commits. LeaseLost if
        the attempt was overtaken."""
        ...

    def undo(self) -> None: ...


class ComparedTarget(ComparedTable, Protocol):
    @property
    def columns(self) -> ComparedColumns: ...


class Destination(Protocol):
    """One destination, opened for one run."""

    def describe(self, table: Table) -> Target | None: ...

    def planned_changes(
        self, table: Table, schema: SourceSchema, *, with_file_hash: bool, widened: Sequence[Widening] = ()
    ) -> Sequence[SchemaChange]:
        """What `ensure_target` would do; moves nothing."""
        ...

    def cautions(self, table: Table) -> Sequence[str]:
        """What a load into the target goes on in spite of, and somebody should know before."""
        ...

    def ensure_target(
        self, table: Table, schema: SourceSchema, *, with_file_hash: bool, widened: Sequence[Widening] = ()
    ) -> Target:
        """Creates what is missing: schema, table, provenance columns, indexes, ledger, fence, quarantine's schema."""
        ...

    def encoder_plan(self, table: Table, target: Target, arrow_columns: Mapping[str, pa.DataType]) -> EncoderPlan: ...

    def ledger(self, table: Table, loads: Collection[int] = ()) -> Sequence[LedgerEntry]:
        """The newest entry of each chunk key that has not been superseded, and those of `loads` that it knows."""
        ...

    def unknown_loads(self, table: Table) -> Sequence[int]:
        """Loads of which the target holds rows and the ledger knows nothing. Reads the whole target."""
        ...

    def without_rows(self, table: Table, loads: Collection[int]) -> Collection[int]:
        """Those of these loads of which the target holds no row, as far as that is cheap to tell."""
        ...

    def loads_elsewhere(self, table: Table, loads: Collection[int]) -> Mapping[int, str]:
        """Return those of these loads that the table has published to another target, which holds rows still, each with
        that target."""
        ...

    def last_load(self, table: Table) -> LastLoad | None:
        """How the rows that the table has in its target were loaded, if that is known."""
        ...

    def mark(self, table: Table) -> Mark | None:
        """None for load modes that keep none, and where there is no target yet."""
        ...

    def publishers(self, table: Table, ours: ProjectIdentity) -> TargetPublishers:
        """Return who else has published rows that the target holds."""
        ...

    def published_elsewhere(self, move: Move, *, resumed: bool) -> Mapping[str, Publisher]:
        """Return by target the rows that other targets of the destination hold under the old name. Nothing where the
        table's own target knows loads of that name, or, of a rename that is `resumed`, of the new one."""
        ...

    def adopt(self, table: Table, publishers: Sequence[Publisher], project: ProjectClaim) -> None:
        """Take over what these have published to the table's target, in one transaction."""
        ...

    def rename(self, moves: Sequence[Move]) -> Sequence[Moved]:
        """Give the loads of each table, and all else that is known of them, its new name, in one transaction. What was
        renamed before is left as it is."""
        ...

    def claim(
        self, table: Table, chunk_keys: Sequence[str], holder: str, project: ProjectClaim | None = None
    ) -> Mapping[str, Fence]:
        """Bumps the fences and ends what dead attempts left in the destination. In one round trip, however many.
        `project` is recorded as the one that publishes the table from now on."""
        ...

    def prepare(self, load: Load, candidate: Candidate) -> PreparedLoad:
        """TooManyRowsRefused if it gave up telling them from the others; EmptySource if there are none, and the target
        would be emptied, which the manifest does not allow."""
        ...

    def quarantine(self, load: Load, rows: Iterator[BadRow]) -> int:
        """Keeps rows in the quarantine table, in a transaction of its own; replaces those of the slice's last try."""
        ...

    def quarantined(self, table: Table, choice: KeptChoice, *, limit: int) -> Kept: ...

    def purge_quarantine(self, table: Table, choice: KeptChoice) -> int:
        """How many rows are gone. They are not looked at again."""
        ...

    def kept_by_load(self, table: Table, choice: KeptChoice) -> Sequence[KeptOfLoad]:
        """How many rows each load has set aside."""
        ...

    def live_loads(self, table: Table, bounds: Bounds) -> Sequence[LiveLoad]:
        """The loads that have rows within the bounds, as the ledger knows them."""
        ...

    def kept_lines(self, table: Table, choice: KeptChoice, loads: Collection[int]) -> Generator[KeptLine]:
        """The rows that these loads have set aside and that could be read, by chunk, in the order of their ids."""
        ...

    def prepare_replay(self, load: Load, candidate: Candidate, verdicts: Verdicts) -> PreparedLoad:
        """As `prepare`; what the verdicts say of the quarantine, and which rows the destination refuses, is published
        with the rows. The candidate has `KEPT_ID_COLUMN`."""
        ...

    def note_verdicts(self, load: Load, verdicts: Verdicts, refused: Iterable[BadRow]) -> None:
        """Of a replay in which no row passed, and that publishes nothing."""
        ...

    def doubts(self, table: Table, measures: Sequence[Measure], schema: SourceSchema | None) -> Sequence[Doubt]:
        """What is in the way of asking this of the target, as far as the destination's catalog tells. `schema`: the
        columns that a load brings, some of which the target may not have yet."""
        ...

    def digest_forms(self, load: Load, digest: Digest) -> Sequence[tuple[str, Form]]:
        """Of which columns, and in which forms, it will sum up a candidate."""
        ...

    def ask(self, table: Table, measures: Sequence[Measure]) -> Answers:
        """Of the target as everybody sees it."""
        ...

    def comparison(
        self, table: Table, names: Sequence[str], key: Sequence[str], *, with_values: bool
    ) -> ComparedTarget | None:
        """The rows of the table's own loads, to be compared with the source's; None where there is no target. `names`
        are the source's columns that are loaded; `key` tells its rows apart, if anything does."""
        ...

    def quarantined_rows(self, table: Table) -> Iterator[QuarantinedRows]:
        """Yield the quarantined rows of loads that are published, by the text of their cursor."""
        ...

    def hook_session(self, table: Table, attempt: Attempt | None) -> AbstractContextManager[HookSession]:
        """A session for one phase of hooks. Without an attempt it is for post-hooks: one at a time for each table;
        HooksBusy if another holds it for long."""
        ...

    def owed_hooks(self, table: Table) -> Sequence[OwedHook]: ...

    def settle_hook(self, table: Table, hook: OwedHook) -> None:
        """It has run: these loads no longer owe it."""
        ...

    def parallel_prepare(self, table: Table, target: Target) -> bool:
        """Whether two prepares of different chunks may be open at once without waiting for each other."""
        ...

    def unchecked_keys(self, table: Table) -> Sequence[str]:
        """Foreign keys of other tables to this one that a publish left to be checked, and that could not be since."""
        ...

    def backups(self, table: Table) -> Sequence[Backup]:
        """The newest first."""
        ...

    def restore(self, table: Table, load_id: int, *, holder: str, run_id: str) -> Restored:
        """Puts the rows of a backup in the place of the target's, which become a backup themselves."""
        ...

    def close(self) -> None: ...
