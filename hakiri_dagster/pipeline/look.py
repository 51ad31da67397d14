"""Looks at what a table's source holds, and at what is published of it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta

from hakiri_dagster.audit.database import AuditDb
from hakiri_dagster.connectors.contract import NO_LOOKBACK, Discovery, Known, SourceTable, SparkProvider
from hakiri_dagster.destinations.contract import Destination, Doubt, LedgerEntry, Mark, SchemaChange, Target
from hakiri_dagster.engine.spark_failures import translate_spark_errors
from hakiri_dagster.manifest.tables import Table
from hakiri_dagster.manifest.validator_spec import id_of
from hakiri_dagster.pipeline.evolution import is_missed, look_at_columns
from hakiri_dagster.pipeline.long_transactions import (
    find_long_transactions,
    leave_out_open_windows,
    warn_of_unknown_horizon,
)
from hakiri_dagster.pipeline.ownership import find_ownership
from hakiri_dagster.pipeline.shapes import (
    Shape,
    chunks_of,
    cursor_of,
    due_of,
    lag_of,
    plan_text_of,
    shape_of,
)
from hakiri_dagster.pipeline.survey import Survey
from hakiri_dagster.pipeline.word_of_loads import word_of_loads
from hakiri_dagster.planning.away_parts import kept_chunks
from hakiri_dagster.planning.chunks import Chunk
from hakiri_dagster.planning.evolution import Evolution, warnings_of
from hakiri_dagster.planning.generations import with_generation
from hakiri_dagster.planning.hooks import named
from hakiri_dagster.planning.horizon import Lookback
from hakiri_dagster.planning.mode_switch import Switch, switch
from hakiri_dagster.planning.progress import is_rewound
from hakiri_dagster.planning.repair import after_ledger
from hakiri_dagster.planning.rewind import RewoundChunk
from hakiri_dagster.planning.states import ChunkState, Due
from hakiri_dagster.planning.windows import from_position
from hakiri_dagster.quality.validators import registry as validators


@dataclass(frozen=True, slots=True)
class _Published:
    """What the destination and the audit DB say of a table's loads."""

    last_rewind: int
    mark: Mark | None
    states: tuple[ChunkState, ...]
    target: Target | None
    ledger: tuple[LedgerEntry, ...]


@dataclass(frozen=True, slots=True)
class _Plan:
    """How a table is cut. `cautions`: about how."""

    text: str
    changed: bool
    chunks: tuple[Chunk, ...]
    cautions: tuple[str, ...]


def look(
    table: Table,
    source: SourceTable,
    destination: Destination,
    audit: AuditDb,
    spark: SparkProvider,
    found: Discovery | None = None,
    *,
    patience: timedelta = timedelta(),
) -> Survey:
    """Asks source, destination and audit DB; changes nothing. `found`: what the source has been asked already.

    `patience`: for how long transactions are awaited that keep the cursor of a new table from being complete.
    """
    discovery = _discover(table, source, audit, spark, patience) if found is None else found
    moment = datetime.now(UTC)  # when the source had answered: else what it holds by its now might lie in the future
    if discovery.horizon is not None and not discovery.horizon.transactions.is_replica:
        moment = from_position(discovery.horizon.transactions.clock)  # what lies in the future is for its clock to say
    published = _published(table, destination, audit)
    evolution = _evolution(table, source, discovery, published.target, audit)
    shape, states = shape_of(table, source), published.states
    plan = _plan(table, source, shape, discovery, published, moment, audit)
    taken_in = audit.files.taken_in(table.pipeline_id, table.name)
    due = due_of(table, shape, discovery, plan.chunks, states, taken_in, moment, published.mark)
    long_transactions = find_long_transactions(table, discovery)
    if any(one.waits for one in long_transactions):
        due = leave_out_open_windows(due)
    doubts = _doubts(table, destination, evolution)
    switched = _switched(table, destination, published.target)
    rewound = _rewound(table, audit, states)
    ownership = find_ownership(table, source, destination, audit)
    return Survey(
        table=table,
        source=source,
        shape=shape,
        discovery=discovery,
        chunks=plan.chunks,
        states=states,
        due=with_generation(due, plan.chunks, states, plan.changed),
        plan=plan.text,
        plan_changed=plan.changed,
        target=published.target,
        mark=published.mark,
        switch=switched,
        ledger=published.ledger,
        evolution=evolution,
        changes=_changes(table, destination, evolution, with_file_hash=bool(discovery.files)),
        warnings=(
            *discovery.warnings,
            *(one.message for one in long_transactions),
            *warn_of_unknown_horizon(table, discovery),
            *plan.cautions,
            *due.warnings,
            *_warnings(table, destination, published, evolution, due, switched, doubts),
        ),
        doubts=doubts,
        moment=moment,
        taken_in=taken_in,
        owed_hooks=_owed_hooks(table, destination) if published.target is not None else (),
        last_rewind=published.last_rewind,
        rewound=rewound,
        mark_is_rewound=bool(rewound) and _is_rewound(published.mark, states),
        ownership=ownership,
    )


def _discover(
    table: Table, source: SourceTable, audit: AuditDb, spark: SparkProvider, patience: timedelta
) -> Discovery:
    lookback = NO_LOOKBACK
    if cursor_of(table) is not None:
        history = audit.cursor_history.of_table(table.pipeline_id, table.name)
        lookback = Lookback(history, lag_of(table), patience // timedelta(microseconds=1))
    with translate_spark_errors(table.label):
        return source.discover(
            cursor=cursor_of(table), known=_known(audit, table, source), spark=spark, lookback=lookback
        )


def _known(audit: AuditDb, table: Table, source: SourceTable) -> Known:
    return Known(
        schema=audit.tables.schema(table.pipeline_id, table.name, source.read_as),
        files=audit.files.known(table.pipeline_id, table.name),
    )


def _published(table: Table, destination: Destination, audit: AuditDb) -> _Published:
    """The states are read last: they know of that rewind at least, and the mark is not ahead of them."""
    last_rewind = audit.rewinds.last(table.pipeline_id, table.name)
    mark = destination.mark(table)
    stored, target, ledger = word_of_loads(table, destination, audit)
    return _Published(last_rewind, mark, after_ledger(stored, ledger), target, ledger)


def _plan(
    table: Table,
    source: SourceTable,
    shape: Shape,
    discovery: Discovery,
    published: _Published,
    moment: datetime,
    audit: AuditDb,
) -> _Plan:
    states = published.states
    chunks, cautions = chunks_of(table, shape, discovery, states, moment, published.mark, source.hint)
    text = plan_text_of(table, shape, discovery, source.hint)
    changed = audit.tables.plan(table.pipeline_id, table.name) not in (None, text)
    # once it has changed, it is not known how those of parts that are away would be cut
    kept = () if changed else kept_chunks(states, discovery.away)
    return _Plan(text, changed, (*chunks, *kept), tuple(cautions))


def _evolution(
    table: Table, source: SourceTable, discovery: Discovery, target: Target | None, audit: AuditDb
) -> Evolution | None:
    """None where the source's columns are not known."""
    if discovery.schema is None:
        return None
    return look_at_columns(table, source, discovery.schema, target, audit, absent=discovery.absent)


def _switched(table: Table, destination: Destination, target: Target | None) -> Switch:
    last = None if target is None else destination.last_load(table)
    return Switch() if last is None else switch(last, table.mode, table.upsert_key, table.primary_key)


def _warnings(
    table: Table,
    destination: Destination,
    published: _Published,
    evolution: Evolution | None,
    due: Due,
    switched: Switch,
    doubts: Sequence[Doubt],
) -> Iterator[str]:
    """About what a load would do."""
    loads = bool(due.slices or due.busy)
    yield from switched.notes if loads else ()
    if published.target is not None and due.slices:
        yield from destination.cautions(table)
    if evolution is not None:
        missed = tuple(change.column for change in evolution.applied if is_missed(change, published.target))
        yield from warnings_of(evolution, missed)
    yield from (doubt.reason for doubt in doubts if doubt.may_pass and loads)


def _doubts(table: Table, destination: Destination, evolution: Evolution | None) -> tuple[Doubt, ...]:
    """In the name of the validators that ask."""
    asking = table.validation.dataset_level.validators
    loaded = None if evolution is None else evolution.loaded
    found = destination.doubts(table, validators.questions(asking), loaded)
    return tuple(
        replace(doubt, reason=f"validator {id_of(one)}: {doubt.reason}")
        for one in asking
        for doubt in found
        if doubt.about in validators.asks(one)
    )


def _owed_hooks(table: Table, destination: Destination) -> tuple[str, ...]:
    """How they are called, in the order of the manifest."""
    hooks = named(table.load.post_hook)
    owed = {owed.name.key for owed in destination.owed_hooks(table)} if hooks else set()
    return tuple(hook.name.text for hook in hooks if hook.name.key in owed)


def _rewound(table: Table, audit: AuditDb, states: Sequence[ChunkState]) -> Mapping[str, RewoundChunk]:
    if not any(state.is_rewound for state in states):
        return {}
    return audit.rewinds.waiting(table.pipeline_id, table.name)


def _is_rewound(mark: Mark | None, states: Sequence[ChunkState]) -> bool:
    return mark is not None and mark.position is not None and is_rewound(mark.position, states)


def _changes(
    table: Table, destination: Destination, evolution: Evolution | None, *, with_file_hash: bool
) -> tuple[SchemaChange, ...]:
    if evolution is None:
        return ()
    return tuple(
        destination.planned_changes(table, evolution.loaded, with_file_hash=with_file_hash, widened=evolution.widenings)
    )
