"""One load from prepare to publish: an open transaction, invisible until it commits together with its ledger row."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass

import psycopg

from hakiri_dagster.destinations.contract import BadRow, Candidate, LedgerEntry, Load, LoadAnswers
from hakiri_dagster.destinations.hooks_contract import Relation
from hakiri_dagster.destinations.postgres import (
    backups,
    catalog,
    fence,
    ledger,
    marks,
    owed_hooks,
    publishers,
    quarantine,
)
from hakiri_dagster.destinations.postgres.connection import Connection, Connections
from hakiri_dagster.destinations.postgres.copy import Blocks
from hakiri_dagster.destinations.postgres.driver_errors import is_transient, translate_errors, translated
from hakiri_dagster.destinations.postgres.earlier_loads import is_overtaken, replaced_by
from hakiri_dagster.destinations.postgres.empty_source import refuse_empty_source
from hakiri_dagster.destinations.postgres.exclusion import keep_restores_out
from hakiri_dagster.destinations.postgres.judged_blocks import CHECKED_AT_ONCE, JudgedBlocks
from hakiri_dagster.destinations.postgres.load_id_index import sum_up
from hakiri_dagster.destinations.postgres.modes.contract import Staged, Work
from hakiri_dagster.destinations.postgres.modes.registry import mode_of
from hakiri_dagster.destinations.postgres.reconnect import reconnected
from hakiri_dagster.destinations.postgres.refused_rows import Refused
from hakiri_dagster.destinations.postgres.replacement import Replacement
from hakiri_dagster.destinations.postgres.row_errors import RowsNotTaken, rows_at_stake
from hakiri_dagster.destinations.postgres.swap.unfinished import make_good
from hakiri_dagster.destinations.postgres.table_answers import of_table
from hakiri_dagster.errors import DestinationError, DestinationUnavailable
from hakiri_dagster.planning.hooks import HookName


@dataclass(slots=True)
class OpenLoad:
    """The state the load would leave, in its open transaction."""

    connections: Connections
    connection: Connection
    load: Load
    replaced: Replacement
    cursor_max: int | None
    staged: Staged
    answers: LoadAnswers
    refused: Refused

    @property
    def rows(self) -> int:
        return self.staged.rows

    @property
    def notes(self) -> Sequence[str]:
        return self.staged.notes

    @property
    def replaces(self) -> Sequence[int]:
        return self.replaced.load_ids

    @property
    def place(self) -> Relation | None:
        return self.staged.place

    def publish(
        self, cursor_committed: int | None, bytes_: int, owes: Sequence[HookName] = (), token: str | None = None
    ) -> LedgerEntry:
        mode = mode_of(self.load.table)
        try:
            with _answered(self.connections, self.load):
                fence.check_fence(self.connection, self.load, lock=True)
                published = ledger.entry(self.connection, self.load.fence.load_id)
                if published is not None:
                    return published  # by an earlier try whose answer was lost; `undo` drops this one's rows
                # before the lock on the entries, for which a replay that holds some of these rows may be waiting
                quarantine.forget_replaced(self.connection, self.load, self.replaced.superseded)
                if mode.locks_target_in_expose:
                    self.staged.expose()
                self._refuse_overtaken_bounds()
                entry = ledger.record(
                    self.connection,
                    self.load,
                    rows=self.rows,
                    bytes_=bytes_,
                    cursor_committed=cursor_committed,
                    cursor_max=self.cursor_max,
                    replaced=self.replaced,
                    token=token,
                )
                owed_hooks.note(self.connection, self.load, owes)
                if not mode.locks_target_in_expose:
                    self.staged.expose()
                if mode.clears_target:
                    self._forget_others()
            published = self._commit(entry)
        finally:
            self.undo()
        self.staged.finish()
        kept = self.load.table.load.backup_before_load
        if kept is not None:
            backups.prune(self.connections, self.load.table, kept.keep)
        return published

    def undo(self) -> None:
        self.connections.give_back(self.connection)
        self.staged.discard()

    def _forget_others(self) -> None:
        """When nobody else can write to the target: what was published until now is gone, and nothing comes after."""
        ledger.clear_target(self.connection, self.load)
        marks.forget(self.connection, self.load.table)

    def _refuse_overtaken_bounds(self) -> None:
        """A slice that overlaps and was published since `prepare` looked would have its rows twice. So would one that a
        rename has moved to another name meanwhile."""
        publishers.lock_target(self.connection, self.load.table)
        publishers.refuse_other_publishers(self.connection, self.load.table)
        if is_overtaken(self.connection, self.load, self.replaced):
            raise DestinationUnavailable(
                "a slice that overlaps this one was published meanwhile, so this attempt publishes nothing",
                where=self.load.table.label,
                hint="the load is tried again",
            )

    def _commit(self, entry: LedgerEntry) -> LedgerEntry:
        try:
            self.connection.commit()
        except psycopg.Error as error:
            if not is_transient(error):
                with translate_errors(_where(self.load)):
                    raise
            return self._look_up_outcome(error)
        return entry

    def _look_up_outcome(self, lost: psycopg.Error) -> LedgerEntry:
        """The connection broke while the server was told to commit: only the ledger knows."""
        self.connection.close()
        with reconnected(self.connections) as connection:
            # waits until the old transaction, which holds the fence row, has ended either way
            fence.wait_for_fence(connection, self.load)
            published = ledger.entry(connection, self.load.fence.load_id)
        if published is None:
            raise DestinationUnavailable(
                "the connection was lost at the commit, and the ledger says that nothing was published",
                where=_where(self.load),
                hint="the load is tried again",
            ) from lost
        return published


Also = Callable[[Connection, int, Iterable[BadRow]], None]
"""What else is to be published with the rows, when they are there; it is told how many, and those that are refused."""


def prepare(connections: Connections, load: Load, candidate: Candidate, also: Also | None = None) -> OpenLoad:
    """Only where the server refused some row the rows that it refuses are looked for."""
    try:
        return _prepare(connections, load, Blocks(candidate), also)
    except RowsNotTaken as refusal:
        if _is_published(connections, load):  # its own rows are in the way, not others
            raise translated(refusal.error, _where(load)) from refusal.error
    try:
        return _prepare(connections, load, JudgedBlocks(candidate, Refused(_where(load)), load.texts), also)
    except RowsNotTaken as refusal:
        raise translated(refusal.error, _where(load)) from refusal.error


def _is_published(connections: Connections, load: Load) -> bool:
    """By an earlier try whose answer was lost."""
    with connections.transaction(_where(load)) as connection:
        return ledger.entry(connection, load.fence.load_id) is not None


def _prepare(connections: Connections, load: Load, blocks: Blocks, also: Also | None) -> OpenLoad:
    mode = mode_of(load.table)
    connection = connections.take()
    try:
        with _answered(connections, load):
            fence.name_attempt(connection, load)
            keep_restores_out(connections, connection, load)
            fence.check_fence(connection, load, lock=False)
            make_good(connections, connection, load)
            found = catalog.find(connection, load.target.schema, load.target.name)
            if found is None:
                raise DestinationError(
                    "the target was dropped while it was being loaded",
                    where=_where(load),
                    hint="apply again: it is created anew and everything is loaded into it",
                )
            replaced = replaced_by(connection, load)
            if replaced.load_ids and mode.looks_for_load_ids:
                sum_up(connections, found.oid)
            work = Work(connections, connection, load, found, blocks, replaced)
            refuse_empty_source(work)
            if load.table.load.backup_before_load is not None and mode.overwrites:
                backups.keep_rows(connection, load)
            staged = mode.stage(work)
            try:
                if found.checked_late:
                    with rows_at_stake(_where(load)):
                        connection.execute(CHECKED_AT_ONCE)
                if also is not None:
                    also(connection, staged.rows, blocks.refused or ())
                answers = LoadAnswers(work.answers, of_table(work, staged.place))
            except BaseException:
                staged.discard()
                raise
    except BaseException:
        connections.give_back(connection)
        raise
    return OpenLoad(
        connections=connections,
        connection=connection,
        load=load,
        replaced=replaced,
        cursor_max=blocks.cursor_max,
        staged=staged,
        answers=answers,
        refused=blocks.refused or Refused(_where(load)),
    )


def _where(load: Load) -> str:
    return f"{load.table.label} ({load.target.schema}.{load.target.name})"


@contextmanager
def _answered(connections: Connections, load: Load) -> Iterator[None]:
    """A backend that a later claim ended reports a lost connection; the fence tells why."""
    try:
        with translate_errors(_where(load)):
            yield
    except DestinationUnavailable:
        _raise_if_overtaken(connections, load)
        raise


def _raise_if_overtaken(connections: Connections, load: Load) -> None:
    with suppress(DestinationUnavailable), reconnected(connections, patience=0) as connection:
        fence.check_fence(connection, load, lock=False)
