"""What a load mode is: how staged rows become the state that the load leaves."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from typing_extensions import override

from hakiri_dagster.destinations.contract import KEPT_ID_COLUMN, Load, Mark, Target
from hakiri_dagster.destinations.hooks_contract import Relation
from hakiri_dagster.destinations.postgres import fence
from hakiri_dagster.destinations.postgres.asked_rows import AskedRows
from hakiri_dagster.destinations.postgres.catalog import Found, stored_name
from hakiri_dagster.destinations.postgres.connection import Connection, Connections
from hakiri_dagster.destinations.postgres.copy import Blocks
from hakiri_dagster.destinations.postgres.measuring import answered
from hakiri_dagster.destinations.postgres.replacement import Replacement
from hakiri_dagster.manifest.tables import Table
from hakiri_dagster.planning.columns import SourceSchema
from hakiri_dagster.quality.measures import Answer, Measure


@dataclass(frozen=True, slots=True)
class Work:
    """One load. `connection` has the open transaction in which it is published; what is to be committed before that
    takes another of `connections`."""

    connections: Connections
    connection: Connection
    load: Load
    found: Found
    blocks: Blocks
    replaced: Replacement
    answers: dict[Measure, Answer] = field(default_factory=dict)
    """To what is asked of the candidate."""

    @property
    def candidate_columns(self) -> tuple[str, ...]:
        """As they were encoded."""
        return self.load.columns if self.load.replay is None else (*self.load.columns, KEPT_ID_COLUMN)

    def ask_candidate(self, place: Relation, *, load_id: int | None = None) -> None:
        """Called by each mode as soon as the candidate's rows stand in a relation as they were read; `load_id` tells
        them from others there."""
        if self._asked:
            self._ask(self.connection, place, load_id)

    def ask_committed_candidate(self, place: Relation) -> None:
        """The open transaction would keep its lock, and others have still to work on the relation."""
        if self._asked:
            with self.connections.transaction(self.load.table.label) as connection:
                fence.name_attempt(connection, self.load)
                self._ask(connection, place, None)

    def _ask(self, connection: Connection, place: Relation, load_id: int | None) -> None:
        rows = AskedRows.of_candidate(self.load, place, load_id)
        self.answers.update(answered(connection, rows, self._asked))

    @property
    def _asked(self) -> Sequence[Measure]:
        """What the workers have counted counts no longer where rows are refused here."""
        asked = self.load.asked
        return asked.of_candidate if self.blocks.refused is None else (*asked.in_passing, *asked.of_candidate)


class Staged(Protocol):
    """The state that a load leaves, where no reader sees it."""

    @property
    def rows(self) -> int:
        """How many the candidate held."""
        ...

    @property
    def notes(self) -> Sequence[str]:
        """What somebody should hear of this load, though it goes on."""
        return ()

    @property
    def place(self) -> Relation | None:
        """The relation that holds it, where it is one of its own and committed."""
        return None

    def expose(self) -> None:
        """Makes it visible, in the open transaction. The ledger's row is written; the commit follows soon."""
        ...

    def finish(self) -> None:
        """After the commit: what need not be done while others wait. A crash before it is made good by a next load."""
        ...

    def discard(self) -> None:
        """Takes away what the open transaction's end leaves. Of no effect after the commit."""
        ...


@dataclass(frozen=True, slots=True)
class InTransaction(Staged):
    """All that was done is in the open transaction."""

    row_count: int
    told: tuple[str, ...] = ()

    @property
    @override
    def rows(self) -> int:
        return self.row_count

    @property
    @override
    def notes(self) -> Sequence[str]:
        return self.told

    @override
    def expose(self) -> None: ...

    @override
    def finish(self) -> None: ...

    @override
    def discard(self) -> None: ...


class Mode(Protocol):
    clears_target: bool
    """A load takes the place of all that was loaded into the target, by whomever. From `expose` to the commit nobody
    else can write to it."""

    locks_target_in_expose: bool = False
    """`expose` waits for the lock on the target itself. It comes before the lock on the target's ledger then, which
    others take who hold the target already: in the other order both would wait for each other."""

    looks_for_load_ids: bool
    """It finds the rows of earlier loads by their load ids."""

    overwrites: bool = True
    """A load may change or delete rows that another one has published: what `backup_before_load` is for."""

    leaves_load_ids: bool = False
    """Rows that a load finds as they should be keep the id of the load that wrote them, though it supersedes that."""

    current_flag: str | None = None
    """The target's boolean column that marks the rows which still hold, where it has others."""

    what_no_rows_do: str = "leave the target empty"
    """To the target, where each load has all rows of the source."""

    def objections(
        self, connection: Connection, table: Table, found: Found | None, columns: Sequence[str]
    ) -> Sequence[str]:
        """Why this mode cannot load the table into the target; told by `plan`, before any row moves."""
        ...

    def schema_objections(self, table: Table, schema: SourceSchema) -> Sequence[str]:
        """Why this mode cannot load what the source has, wherever it goes; told by `plan`, too."""
        return ()

    def cautions(self, connection: Connection, found: Found) -> Sequence[str]:
        """What a load goes on in spite of, and somebody should know before; told by `plan`."""
        return ()

    def key(self, table: Table) -> tuple[str, ...]:
        """Columns that tell the rows of the source apart."""
        return ()

    def unique(self, table: Table) -> tuple[str, ...]:
        """Columns that need a unique index in the target."""
        return self.key(table)

    def primary_key(self, table: Table, of_source: tuple[str, ...]) -> tuple[str, ...]:
        """The key of a target that is made for the table."""
        return tuple(map(stored_name, table.primary_key or of_source))

    def required(self, table: Table) -> Mapping[str, str]:
        """Columns that hold no NULL, and why."""
        return dict.fromkeys(self.key(table), "it is part of the key")

    def added_columns(self, table: Table) -> Mapping[str, str]:
        """Columns of the target that the mode fills by itself, with their types."""
        return {}

    def retypes_when_empty(self, found: Found) -> bool:
        """A load empties the target before its rows come in, and gives columns their new types then."""
        return False

    def stage(self, work: Work) -> Staged:
        """Makes the state that the load leaves."""
        ...

    def parallel(self, target: Target) -> bool:
        """Whether loads of different chunks may be staged at once without waiting for each other."""
        ...

    def mark(self, connection: Connection, table: Table, found: Found, tenant: str) -> Mark | None:
        """How far the loads have come, for modes that keep a mark."""
        return None
