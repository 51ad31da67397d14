"""A source's columns beside those that were last accepted: what a load follows, refuses, keeps out, and notes."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import assert_never

from hakiri_dagster.audit.database import AuditDb
from hakiri_dagster.audit.schema_log import Decided
from hakiri_dagster.connectors.contract import SourceTable
from hakiri_dagster.destinations.contract import SchemaChange, Target
from hakiri_dagster.manifest.tables import Table
from hakiri_dagster.planning.columns import SourceSchema
from hakiri_dagster.planning.evolution import Decision, Evolution, Terms, evolution_of, permission
from hakiri_dagster.planning.schema_diff import Change, KnownSchema, Reading


def look_at_columns(
    table: Table,
    source: SourceTable,
    schema: SourceSchema,
    target: Target | None,
    audit: AuditDb,
    *,
    absent: tuple[str, ...] = (),
) -> Evolution:
    needed = {*table.columns, *table.primary_key, *table.upsert_key, *filter(None, _single_columns(table))}
    known = audit.schemas.known(table.pipeline_id, table.name)
    reading = Reading(
        schema,
        key=() if table.upsert_key or table.primary_key else schema.primary_key,  # else `mode_switch` has a word on it
        declared=table.columns,
        renamed=table.renamed,
        inferred=source.text_format,
        absent=tuple(name for name in absent if name not in needed),
    )
    terms = Terms(
        table.contract,
        accepted=audit.schemas.accepted(table.pipeline_id, table.name),
        held_key=_holds_key(target, known),
        needed=needed,
    )
    return evolution_of(known, reading, terms, is_new=target is None)


def _single_columns(table: Table) -> tuple[str | None, ...]:
    return table.cursor, table.load.hard_delete, table.load.watermark_column


def _holds_key(target: Target | None, known: KnownSchema | None) -> bool:
    """The target keeps rows apart by what told them apart before."""
    if target is None or known is None or not known.key:
        return False
    return any(set(key) == set(known.key) for key in target.unique_keys)


def refused_changes(
    evolution: Evolution, changes: Collection[SchemaChange], target: Target | None
) -> tuple[Change, ...]:
    """By the contract, and those that the target cannot follow by itself."""
    of_target = (evolution.change_of(change.column) for change in changes if change.refused and change.column)
    return (
        *evolution.refused,
        *(change for change in of_target if change is not None),
        *(change for change in evolution.applied if is_missed(change, target)),
    )


def is_missed(change: Change, target: Target | None) -> bool:
    """The source no longer has what every row of the target must have. Nobody can permit that."""
    if change.kind != "dropped" or target is None:
        return False
    return any(
        column.name == change.column and not (column.nullable or column.has_default or column.generated)
        for column in target.columns
    )


def refusals(table: Table, evolution: Evolution) -> Iterator[str]:
    for change in evolution.refused:
        yield f"{told(change)}; {_cure(table, change, evolution)}"


def told(change: Change) -> str:
    match change.kind:
        case "added":
            return f"column {change.column} ({change.after}) is new at the source"
        case "dropped":
            return f"column {change.column} ({change.before}) is gone from the source"
        case "renamed":
            return f"column {change.before} is now called {change.column}"
        case "narrowed":
            return f"column {change.column} was {change.before} and is now {change.after}, which holds less"
        case "widened":
            return f"column {change.column} was {change.before} and is now {change.after}, which holds more"
        case "changed":
            return f"column {change.column} was {change.before} and is now {change.after}, which is another type"
        case "key_changed":
            return (
                f"the key was ({change.before or 'none'}) and is now ({change.after or 'none'}), "
                "and the target still keeps rows apart by the earlier one"
            )
        case _:
            assert_never(change.kind)


def _cure(table: Table, change: Change, evolution: Evolution) -> str:
    if change.kind == "key_changed":
        place = f"{table.target_schema}.{table.target_name}"
        return (
            f"a key is migrated by hand: drop the constraint or index of the earlier key on {place} and put the new "
            "one on, or drop the table, so that it is made and loaded anew"
        )
    permit = permission(table, change.column)
    if evolution.contract == "freeze":
        return f'contract = "freeze" lets no column change; undo it at the source, or {permit}'
    if change.kind == "changed":
        return (
            f'cast it at the source; or declare its type, such as columns = {{ {change.column} = "text" }}; or keep '
            f"the target's type, so that values which do not fit it are set aside, and {permit}"
        )
    return f"cast it at the source, or {permit}"


def settle(audit: AuditDb, table: Table, evolution: Evolution, *, run_id: str | None = None) -> None:
    """Once the target has followed."""
    decided = [*_decided(evolution.applied, "applied"), *_decided(evolution.discarded, "discarded")]
    of_table = table.pipeline_id, table.name
    if evolution.known is None or evolution.applied:
        audit.schemas.settle(*of_table, evolution.known_after(), decided, run_id)
    elif decided:
        audit.schemas.note(*of_table, decided, run_id=run_id)


def note_refused(audit: AuditDb, table: Table, refused: Collection[Change], *, run_id: str | None = None) -> None:
    if refused:
        audit.schemas.note(table.pipeline_id, table.name, _decided(refused, "refused"), run_id=run_id)


def _decided(changes: Collection[Change], decision: Decision) -> list[Decided]:
    return [Decided(change, decision) for change in changes]
