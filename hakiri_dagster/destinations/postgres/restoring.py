"""Puts the rows of a backup back: a load whose source is a table of this destination. The target stays what it is, and
readers see its rows or the backup's. The rows that are replaced are kept as a backup themselves.

The ledger stays as it is. What it says of the chunks holds for the source: what was loaded from it need not be loaded
again, until there is something new.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from psycopg import sql

from hakiri_dagster.destinations.backups_contract import Backup, Restored
from hakiri_dagster.destinations.contract import Candidate, Fence, Load
from hakiri_dagster.destinations.postgres import backups, fence, marks
from hakiri_dagster.destinations.postgres.catalog import Found, find, target_of
from hakiri_dagster.destinations.postgres.connection import Connection, Connections, names, relation
from hakiri_dagster.destinations.postgres.control_schema import SCHEMA
from hakiri_dagster.destinations.postgres.copy import Blocks
from hakiri_dagster.destinations.postgres.driver_errors import translate_errors
from hakiri_dagster.destinations.postgres.exclusion import RESTORE_KEY, keep_loads_out, void_claims
from hakiri_dagster.destinations.postgres.modes.contract import Mode, Work
from hakiri_dagster.destinations.postgres.modes.registry import MODES
from hakiri_dagster.destinations.postgres.replacement import Replacement
from hakiri_dagster.destinations.postgres.swap import leftovers
from hakiri_dagster.errors import DestinationError
from hakiri_dagster.manifest.tables import Table
from hakiri_dagster.planning.chunks import Chunk, Slice, WholeTable

_BLOCK_BYTES = 4 * 1024 * 1024
_BINARY_LOOK = 6
"""A block that begins with a byte up to this would be taken for a binary one."""

_NOTHING = Replacement((), (), ())


def restore(connections: Connections, table: Table, load_id: int, *, holder: str, run_id: str) -> Restored:
    """`load_id` is the backup's."""
    connection = connections.take()
    where = f"{table.label} ({target_of(table)})"
    try:
        with translate_errors(where):
            if not keep_loads_out(connection, table):
                raise DestinationError(
                    "the target is being loaded, or restored, so nothing was changed",
                    where=where,
                    hint="restore again when that has ended; `hakiri status` tells",
                )
            backup = _chosen(connection, table, load_id, where)
            with connections.transaction(where) as other:
                leftovers.sweep(other, table)
            with connections.transaction(where) as other:
                claimed = fence.claim(other, table, [RESTORE_KEY], holder)[RESTORE_KEY]
            return _Restoring(connections, connection, table, backup, claimed, run_id, where).done()
    finally:
        connections.give_back(connection)


def _chosen(connection: Connection, table: Table, load_id: int, where: str) -> Backup:
    for backup in backups.entries(connection, table):
        if backup.load_id == load_id and backups.hold(connection, backup):
            return backup
    raise DestinationError(
        f"there is no backup of load {load_id}", where=where, hint="`hakiri backup list` shows those that there are"
    )


@dataclass(frozen=True, slots=True)
class _Restoring:
    connections: Connections
    connection: Connection
    table: Table
    backup: Backup
    fence: Fence
    run_id: str
    where: str

    def done(self) -> Restored:
        found = find(self.connection, self.table.target_schema, self.table.target_name)
        if found is None:
            raise DestinationError(
                "there is no target to put the rows back into", where=self.where, hint="apply makes it; then restore"
            )
        mode = self._mode(found)
        columns, left_out = self._columns(found)
        load = self._load(found, columns)
        fence.name_attempt(self.connection, load)
        undoable = backups.keep_rows(self.connection, load, "restore")
        candidate = _BackupRows(self.connections, self.backup.relation, columns, self.where)
        staged = mode.stage(Work(self.connections, self.connection, load, found, Blocks(candidate), _NOTHING))
        try:
            void_claims(self.connection, self.table)
            marks.forget(self.connection, self.table)
            staged.expose()
            self.connection.commit()
        except BaseException:
            self.connection.rollback()
            staged.discard()
            raise
        staged.finish()
        kept = self.table.load.backup_before_load
        if kept is not None:
            backups.prune(self.connections, self.table, kept.keep)
        return Restored(staged.rows, self.backup, left_out, undoable)

    def _mode(self, found: Found) -> Mode:
        """PostgreSQL truncates no table that foreign keys refer to."""
        mode = MODES["blue_green" if found.referenced_by else "truncate"]
        wrong = mode.objections(self.connection, self.table, found, [])
        if wrong:
            raise DestinationError("; ".join(wrong), where=self.where)
        return mode

    def _columns(self, found: Found) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """Those that both have, and those of the backup that the target has no more."""
        kept = find(self.connection, SCHEMA, self.backup.relation)
        assert kept is not None, "it was there when it was chosen, and is held since"
        had = {column.name for column in kept.target.columns}
        computed = {name for (name,) in self.connection.execute(_COMPUTED, (found.oid,))}
        there = [column.name for column in found.target.columns]
        left_out = [c.name for c in kept.target.columns if c.name not in there]
        return tuple(name for name in there if name in had and name not in computed), tuple(left_out)

    def _load(self, found: Found, columns: tuple[str, ...]) -> Load:
        whole = WholeTable()
        return Load(
            table=self.table,
            slice=Slice(Chunk(RESTORE_KEY, whole), whole),
            fence=self.fence,
            run_id=self.run_id,
            attempt=1,
            target=found.target,
            columns=columns,
        )


_COMPUTED = "SELECT attname::text FROM pg_attribute WHERE attrelid = %s AND attnum > 0 AND attgenerated <> ''"


@dataclass(slots=True)
class _BackupRows(Candidate):
    """As text, so that a column whose type has changed since takes them as it would from anybody, or says why not."""

    connections: Connections
    relation: str
    columns: tuple[str, ...]
    where: str
    _rows: int = field(default=0, init=False)

    def blocks(self) -> Iterator[bytes]:
        statement = sql.SQL("COPY {} ({}) TO STDOUT (FORMAT text)").format(
            relation(SCHEMA, self.relation), names(self.columns)
        )
        with (
            self.connections.transaction(self.where) as connection,
            connection.cursor() as cursor,
            cursor.copy(statement) as copy,
        ):
            pending = bytearray()
            for row in copy:
                pending += row
                self._rows += 1
                if len(pending) >= _BLOCK_BYTES:
                    yield _told_from_binary(pending)
                    pending = bytearray()
            if pending:
                yield _told_from_binary(pending)

    @property
    def rows(self) -> int:
        return self._rows

    @property
    def bytes(self) -> int:
        return 0

    @property
    def cursor_max(self) -> int | None:
        return None

    @property
    def set_aside(self) -> int:
        return 0


def _told_from_binary(block: bytearray) -> bytes:
    return bytes(b"\\" + block if block[0] <= _BINARY_LOOK else block)
