"""PostgreSQL as a destination: what `destinations/contract.py` asks for, put together from the modules around it."""

from __future__ import annotations

from collections.abc import Collection, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any

import pyarrow as pa

from hakiri_dagster.destinations.backups_contract import Backup, Restored
from hakiri_dagster.destinations.contract import (
    BadRow,
    Candidate,
    Doubt,
    EncoderPlan,
    Fence,
    LedgerEntry,
    Load,
    Mark,
    PreparedLoad,
    SchemaChange,
    Target,
)
from hakiri_dagster.destinations.hooks_contract import Attempt, HookSession
from hakiri_dagster.destinations.postgres import (
    backups,
    catalog,
    fence,
    ledger,
    loading,
    lost_loads,
    owed_hooks,
    publishers,
    quarantine,
    quarantined,
    replayable,
    replaying,
    vanished,
)
from hakiri_dagster.destinations.postgres.asked_rows import AskedRows
from hakiri_dagster.destinations.postgres.comparison import TargetComparison, quarantined_rows
from hakiri_dagster.destinations.postgres.connection import Connection, Connections
from hakiri_dagster.destinations.postgres.control_schema import ensure_control_schema, is_outdated
from hakiri_dagster.destinations.postgres.digesting import compared_forms
from hakiri_dagster.destinations.postgres.doubts import doubts
from hakiri_dagster.destinations.postgres.earlier_loads import beside
from hakiri_dagster.destinations.postgres.encoder_planning import plan_encoder
from hakiri_dagster.destinations.postgres.hook_session import hook_session
from hakiri_dagster.destinations.postgres.measuring import answered
from hakiri_dagster.destinations.postgres.modes.registry import mode_of
from hakiri_dagster.destinations.postgres.renamed_loads import adopt_loads, move_all
from hakiri_dagster.destinations.postgres.restoring import restore
from hakiri_dagster.destinations.postgres.swap.leftovers import unchecked
from hakiri_dagster.destinations.postgres.target_plan import TargetPlanner
from hakiri_dagster.destinations.postgres.target_setup import make_target, target_as_wanted
from hakiri_dagster.destinations.quarantine_contract import Kept, KeptChoice, KeptLine, Verdicts
from hakiri_dagster.errors import DestinationError
from hakiri_dagster.manifest.tables import Table
from hakiri_dagster.planning.chunks import Bounds
from hakiri_dagster.planning.columns import SourceSchema
from hakiri_dagster.planning.evolution import Widening
from hakiri_dagster.planning.hooks import OwedHook
from hakiri_dagster.planning.mode_switch import LastLoad
from hakiri_dagster.planning.publishers import Move, Moved, ProjectClaim, ProjectIdentity, Publisher, TargetPublishers
from hakiri_dagster.planning.replays import KeptOfLoad, LiveLoad
from hakiri_dagster.planning.verification import QuarantinedRows
from hakiri_dagster.quality.measures import Answers, Digest, Form, Measure, Unanswered
from hakiri_dagster.settings import DEFAULT_TENANT


class PostgresDestination:
    """Safe to share between threads: each call takes a connection of its own."""

    def __init__(self, connections: Connections) -> None:
        self._connections = connections
        self._control_schema_ready = False
        self._control_schema_looked_at = False

    def describe(self, table: Table) -> Target | None:
        with self._connections.look(table.label) as connection:
            found = catalog.find(connection, table.target_schema, table.target_name)
        return None if found is None else found.target

    def planned_changes(
        self, table: Table, schema: SourceSchema, *, with_file_hash: bool = False, widened: Sequence[Widening] = ()
    ) -> Sequence[SchemaChange]:
        with self._connections.look(table.label) as connection:
            found = catalog.find(connection, table.target_schema, table.target_name)
            changes = TargetPlanner(connection, table, schema, with_file_hash, tuple(widened)).changes(found)
        return tuple(
            SchemaChange(change.description, refused=change.refused, column=change.column) for change in changes
        )

    def cautions(self, table: Table) -> Sequence[str]:
        with self._connections.look(table.label) as connection:
            found = catalog.find(connection, table.target_schema, table.target_name)
            return () if found is None else mode_of(table).cautions(connection, found)

    def ensure_target(
        self, table: Table, schema: SourceSchema, *, with_file_hash: bool, widened: Sequence[Widening] = ()
    ) -> Target:
        self._ensure_control_schema()

        def planner(connection: Connection) -> TargetPlanner:
            return TargetPlanner(connection, table, schema, with_file_hash, tuple(widened))

        with self._connections.look(table.label) as connection:
            target = target_as_wanted(planner(connection))
        if target is not None:
            return target
        with self._connections.transaction(table.label) as connection:
            return make_target(planner(connection))

    def encoder_plan(self, table: Table, target: Target, arrow_columns: Mapping[str, pa.DataType]) -> EncoderPlan:
        with self._connections.look(table.label) as connection:
            return plan_encoder(connection, table, target, arrow_columns)

    def ledger(self, table: Table, loads: Collection[int] = ()) -> Sequence[LedgerEntry]:
        self._bring_control_schema_up_to_date()
        with self._connections.transaction(table.label) as connection:
            return ledger.entries(connection, table, loads)

    def unknown_loads(self, table: Table) -> Sequence[int]:
        with self._connections.look(table.label) as connection:
            return lost_loads.unknown(connection, table)

    def without_rows(self, table: Table, loads: Collection[int]) -> Collection[int]:
        with self._connections.look(table.label) as connection:
            return vanished.without_rows(connection, table, loads)

    def loads_elsewhere(self, table: Table, loads: Collection[int]) -> Mapping[int, str]:
        with self._connections.look(table.label) as connection:
            return publishers.find_loads_elsewhere(connection, table, loads)

    def last_load(self, table: Table) -> LastLoad | None:
        with self._connections.transaction(table.label) as connection:
            return ledger.last_load(connection, table)

    def mark(self, table: Table) -> Mark | None:
        with self._connections.look(table.label) as connection:
            found = catalog.find(connection, table.target_schema, table.target_name)
            return None if found is None else mode_of(table).mark(connection, table, found, self._connections.tenant)

    def publishers(self, table: Table, ours: ProjectIdentity) -> TargetPublishers:
        self._bring_control_schema_up_to_date()
        with self._connections.look(table.label) as connection:
            return publishers.read_publishers(connection, table, ours)

    def published_elsewhere(self, move: Move, *, resumed: bool) -> Mapping[str, Publisher]:
        self._bring_control_schema_up_to_date()
        with self._connections.look(move.table.label) as connection:
            return publishers.find_published_elsewhere(connection, move, resumed=resumed)

    def adopt(self, table: Table, publishers: Sequence[Publisher], project: ProjectClaim) -> None:
        self._ensure_control_schema()
        with self._connections.transaction(table.label) as connection:
            adopt_loads(connection, table, publishers, project)

    def rename(self, moves: Sequence[Move]) -> Sequence[Moved]:
        self._bring_control_schema_up_to_date()
        with self._connections.transaction(", ".join(f"{move.old_label} → {move.table.label}" for move in moves)) as c:
            return move_all(c, moves)

    def claim(
        self, table: Table, chunk_keys: Sequence[str], holder: str, project: ProjectClaim | None = None
    ) -> Mapping[str, Fence]:
        self._ensure_control_schema()
        with self._connections.transaction(table.label) as connection:
            publishers.forget_vanished(connection, table)
            if project is not None:
                publishers.record_project(connection, table, project)
            return fence.claim(connection, table, chunk_keys, holder)

    def prepare(self, load: Load, candidate: Candidate) -> PreparedLoad:
        return loading.prepare(self._connections, load, candidate)

    def quarantine(self, load: Load, rows: Iterator[BadRow]) -> int:
        schema, name = load.table.quarantine_table
        with self._connections.transaction(f"{load.table.label} (quarantine {schema}.{name})") as connection:
            return quarantine.keep(connection, load, rows)

    def quarantined(self, table: Table, choice: KeptChoice, *, limit: int) -> Kept:
        with self._connections.look(table.label) as connection:
            return quarantined.look(connection, table, choice, limit)

    def purge_quarantine(self, table: Table, choice: KeptChoice) -> int:
        with self._connections.transaction(table.label) as connection:
            return quarantined.purge(connection, table, choice)

    def kept_by_load(self, table: Table, choice: KeptChoice) -> Sequence[KeptOfLoad]:
        self._ensure_control_schema()
        with self._connections.look(table.label) as connection:
            return replayable.by_load(connection, table, choice)

    def live_loads(self, table: Table, bounds: Bounds) -> Sequence[LiveLoad]:
        with self._connections.transaction(table.label) as connection:
            return beside(connection, table, bounds)

    def kept_lines(self, table: Table, choice: KeptChoice, loads: Collection[int]) -> Generator[KeptLine]:
        with self._connections.look(table.label) as connection:
            yield from replayable.lines(connection, table, choice, loads)

    def prepare_replay(self, load: Load, candidate: Candidate, verdicts: Verdicts) -> PreparedLoad:
        return replaying.prepare(self._connections, load, candidate, verdicts)

    def note_verdicts(self, load: Load, verdicts: Verdicts, refused: Iterable[BadRow]) -> None:
        with self._connections.transaction(load.table.label) as connection:
            replaying.settle(connection, load, verdicts, 0, refused)

    def doubts(self, table: Table, measures: Sequence[Measure], schema: SourceSchema | None) -> Sequence[Doubt]:
        if not measures:
            return ()
        with self._connections.look(table.label) as connection:
            return tuple(doubts(connection, table, measures, schema))

    def digest_forms(self, load: Load, digest: Digest) -> Sequence[tuple[str, Form]]:
        place = load.target.schema, load.target.name
        return compared_forms(AskedRows.of_candidate(load, place), digest)

    def ask(self, table: Table, measures: Sequence[Measure]) -> Answers:
        with self._connections.transaction(table.label) as connection:
            found = catalog.find(connection, table.target_schema, table.target_name)
            if found is None:
                return dict.fromkeys(measures, Unanswered("the target does not exist yet"))
            target = found.target
            added = frozenset(mode_of(table).added_columns(table))
            return answered(connection, AskedRows((target.schema, target.name), target, added), measures)

    def comparison(
        self, table: Table, names: Sequence[str], key: Sequence[str], *, with_values: bool
    ) -> TargetComparison | None:
        return TargetComparison.of(self._connections, table, names, key, with_values=with_values)

    def quarantined_rows(self, table: Table) -> Iterator[QuarantinedRows]:
        with self._connections.look(table.label) as connection:
            yield from quarantined_rows(connection, table)

    def hook_session(self, table: Table, attempt: Attempt | None) -> AbstractContextManager[HookSession]:
        return hook_session(self._connections, table, attempt)

    def owed_hooks(self, table: Table) -> Sequence[OwedHook]:
        with self._connections.transaction(table.label) as connection:
            return owed_hooks.owed(connection, table)

    def settle_hook(self, table: Table, hook: OwedHook) -> None:
        with self._connections.transaction(table.label) as connection:
            owed_hooks.settle(connection, table, hook)

    def parallel_prepare(self, table: Table, target: Target) -> bool:
        return mode_of(table).parallel(target)

    def unchecked_keys(self, table: Table) -> Sequence[str]:
        with self._connections.transaction(table.label) as connection:
            return [f"{key.constraint} of {key.table}" for key in unchecked(connection, table)]

    def backups(self, table: Table) -> Sequence[Backup]:
        with self._connections.transaction(table.label) as connection:
            return backups.entries(connection, table)

    def restore(self, table: Table, load_id: int, *, holder: str, run_id: str) -> Restored:
        self._ensure_control_schema()
        return restore(self._connections, table, load_id, holder=holder, run_id=run_id)

    def close(self) -> None:
        self._connections.close()

    def _bring_control_schema_up_to_date(self) -> None:
        """One that is not there is made by a load; one that an earlier version has made could not be asked."""
        if not self._control_schema_looked_at:
            with self._connections.transaction() as connection:
                outdated = is_outdated(connection)
            if outdated:
                self._ensure_control_schema()
            self._control_schema_looked_at = True

    def _ensure_control_schema(self) -> None:
        if not self._control_schema_ready:
            with self._connections.transaction() as connection:
                ensure_control_schema(connection)
            self._control_schema_ready = True


def open_destination(config: Mapping[str, Any], *, label: str, tenant: str = DEFAULT_TENANT) -> PostgresDestination:
    """`config` holds `url`; connects when first asked for something."""
    url = config.get("url")
    if not isinstance(url, str) or not url:
        raise DestinationError("the destination has no url", where=label)
    return PostgresDestination(Connections(url, label=label, tenant=tenant))
