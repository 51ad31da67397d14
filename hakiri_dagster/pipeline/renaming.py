"""`hakiri pipeline rename`: the loads of a pipeline or table get its new name, in the destinations and in the audit DB.

The destination is the commit point of a load, so it is renamed first; the audit DB follows. A rename that was killed is
recorded as begun, and is finished by the same command: each step finds what the one before it has left.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from hakiri_dagster.audit.renames import Rename
from hakiri_dagster.engine.process_identity import is_dead, where_it_ran
from hakiri_dagster.errors import HakiriError, UsageError
from hakiri_dagster.manifest.tables import Project
from hakiri_dagster.pipeline.runtime import Runtime
from hakiri_dagster.planning.publishers import Move, Moved, TargetPublishers, identity_of, is_ours_by_name


@dataclass(frozen=True, slots=True)
class Renamed:
    """`records` are rows of the audit DB. `shown` are chunks that Dagster shows under the new name, by table."""

    rename: Rename
    moved: tuple[Moved, ...]
    records: int
    shown: tuple[int, ...]


def parse_rename(old: str, new: str) -> Rename:
    old_pipeline, _, old_table = old.partition("/")
    new_pipeline, _, new_table = new.partition("/")
    if bool(old_table) != bool(new_table) or not (old_pipeline and new_pipeline):
        raise UsageError(
            f"`{old}` and `{new}` are not both pipelines or both tables",
            hint="hakiri pipeline rename OLD NEW, or hakiri pipeline rename OLD/TABLE NEW/TABLE",
        )
    if old == new:
        raise UsageError(f"`{old}` is the name that it has")
    return Rename(old_pipeline, new_pipeline, old_table, new_table)


def find_moves(project: Project, rename: Rename) -> tuple[Move, ...]:
    """Pair each table that the manifest declares under the new name with its old one. The manifest comes first: what it
    declares is what a schedule loads meanwhile."""
    pipeline = project.pipeline(rename.new_pipeline)
    tables = () if pipeline is None else pipeline.tables
    if rename.new_table:
        tables = tuple(table for table in tables if table.name == rename.new_table)
    if not tables:
        raise UsageError(
            f"no manifest declares `{rename.new}`", hint="rename it in the manifest first, and then run this again"
        )
    old = project.pipeline(rename.old_pipeline)
    if old is not None and (not rename.old_table or old.table(rename.old_table) is not None):
        declared = old if not rename.old_table else old.table(rename.old_table)
        where = "" if declared is None else f"{declared.origin.file}:{declared.origin.line}"
        raise UsageError(
            f"`{rename.old}` is still declared beside `{rename.new}`, so it has not been renamed",
            where=where,
            hint="give it its new name there; two that exchange their names are renamed by way of a third",
        )
    return tuple(Move(rename.old_pipeline, rename.old_table or table.name, table) for table in tables)


def rename_loads(
    runtime: Runtime, rename: Rename, show_in_dagster: Callable[[Sequence[Move]], tuple[int, ...]]
) -> Renamed | None:
    """Return None where this was done before, and nothing is left under the old name."""
    moves, renames = find_moves(runtime.project, rename), runtime.audit.renames
    resumed = rename in renames.unfinished()
    if not resumed:
        doubtful = [(move, _publishers(runtime, move)) for move in moves]
        if not _is_known(runtime, rename, doubtful):
            if renames.was_finished(rename):
                return None
            raise UsageError(
                f"nothing was ever loaded as `{rename.old}`",
                hint="`hakiri plan` names the pipeline or table that the target holds rows of",
            )
        _refuse_two_publishers(doubtful)
    _refuse_other_targets(runtime, moves, resumed=resumed)
    _refuse_while_loading(runtime, moves)
    renames.begin(rename)
    moved = {
        moved.move.table.label: moved
        for destination, tables in runtime.databases([move.table for move in moves])
        for moved in destination.rename([move for move in moves if move.table in tables])
    }
    records = renames.move(rename)
    shown = show_in_dagster(moves)
    renames.finish(rename)
    return Renamed(rename, tuple(moved[move.table.label] for move in moves), records, shown)


def _is_known(runtime: Runtime, rename: Rename, found: Sequence[tuple[Move, TargetPublishers]]) -> bool:
    if runtime.audit.renames.knows(rename.old_pipeline, rename.old_table):
        return True
    return any(_has_published(move, publishers) for move, publishers in found)


def _publishers(runtime: Runtime, move: Move) -> TargetPublishers:
    ours = identity_of(move.table, runtime.source(move.table).lineage)
    if ours is None:
        return TargetPublishers()
    return runtime.destination(move.table).publishers(move.table, ours)


def _has_published(move: Move, publishers: TargetPublishers) -> bool:
    return any(one.label == move.old_label for one in publishers.doubtful)


def _refuse_two_publishers(found: Sequence[tuple[Move, TargetPublishers]]) -> None:
    """Chunks of one name would be there for both, and a load of one would replace the rows of the other."""
    for move, publishers in found:
        if publishers.has_own and _has_published(move, publishers):
            target = f"{move.table.target_schema}.{move.table.target_name}"
            raise HakiriError(
                f"{target} holds rows of both {move.old_label} and {move.table.label}, which are not to be joined",
                where=move.table.label,
                hint="`hakiri plan` says what can be done",
            )


def _refuse_other_targets(runtime: Runtime, moves: Sequence[Move], *, resumed: bool) -> None:
    """The history of a table would go to one that has none of its rows, and nothing brings it back."""
    for move in moves:
        ours = identity_of(move.table, runtime.source(move.table).lineage)
        if ours is None:
            continue
        found = runtime.destination(move.table).published_elsewhere(move, resumed=resumed)
        known = runtime.audit.runs.known(one.newest_run for one in found.values() if one.newest_run is not None)
        elsewhere = [
            target
            for target, one in found.items()
            if is_ours_by_name(one.project, ours, run_known=one.newest_run in known)
        ]
        if elsewhere:
            target = f"{move.table.target_schema}.{move.table.target_name}"
            raise HakiriError(
                f"{move.old_label} has published to {', '.join(elsewhere)} and not to {target}, the target of "
                f"{move.table.label}, so nothing is renamed",
                where=move.table.label,
                hint=f"if they are one table, give {move.table.label} the target of its rows, rename it, and change "
                "the target after that",
            )


def _refuse_while_loading(runtime: Runtime, moves: Sequence[Move]) -> None:
    """What they load would be refused at the publish, by its fence: so nothing is lost but their time."""
    for move in moves:
        for name in ((move.old_pipeline, move.old_table), (move.table.pipeline_id, move.table.name)):
            for chunk in runtime.audit.chunks.held(*name, is_dead):
                raise HakiriError(
                    f"chunk {chunk.key} is being loaded ({where_it_ran(chunk.holder)})",
                    where="/".join(name),
                    hint="wait until it is done, or stop it, and run this again",
                )
