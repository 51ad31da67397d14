"""`hakiri apply` and `hakiri run`."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from hakiri_dagster.cli.command_span import command_span
from hakiri_dagster.cli.documents import print_json
from hakiri_dagster.cli.opening import chosen_pipeline, chosen_pipelines, chosen_tables, opened_project
from hakiri_dagster.cli.progress import progress_shown
from hakiri_dagster.cli.report import report
from hakiri_dagster.cli.tally import TableTally, Tally
from hakiri_dagster.engine.state_folder import StateFolder, open_state_folder
from hakiri_dagster.errors import UsageError
from hakiri_dagster.manifest.tables import Pipeline, Table
from hakiri_dagster.pipeline.ownership import adopt_published
from hakiri_dagster.pipeline.planner import Planned
from hakiri_dagster.pipeline.refused_changes import tell_of_refused_changes_without_run
from hakiri_dagster.pipeline.remembering import remember, remember_source
from hakiri_dagster.pipeline.runtime import Runtime
from hakiri_dagster.pipeline.survey import Survey
from hakiri_dagster.pipeline.told_looks import tell_of_a_look
from hakiri_dagster.pipeline.unread_parts import told_unread, unread_part_of
from hakiri_dagster.planning.plan import TablePlan
from hakiri_dagster.settings import Settings

if TYPE_CHECKING:
    from hakiri_dagster.orchestration.apply import Applier


def apply(root: Path, ids: Sequence[str], *, as_json: bool, parallelism: int | None) -> int:
    project = opened_project(root)
    pipelines = chosen_pipelines(project, ids)
    tally = Tally()
    with open_state_folder(project.state_dir) as state:
        with Runtime(project, Settings.from_env(), tally) as runtime, command_span(runtime, "apply", tally):
            load_due(runtime, [table for pipeline in pipelines for table in pipeline.tables], tally, parallelism or 1)
        return tell(tally, pipelines, as_json, state)


def load_due(runtime: Runtime, tables: Sequence[Table], tally: Tally, parallelism: int = 1) -> Planned:
    """Where nothing is due, neither Dagster nor Spark is even imported."""

    def through_dagster() -> AbstractContextManager[Applier]:
        from hakiri_dagster.orchestration.apply import opened_applier

        return opened_applier(runtime)

    return work_through(runtime, tables, tally, through_dagster, parallelism)


def work_through(
    runtime: Runtime,
    tables: Sequence[Table],
    tally: Tally,
    opened_applier: Callable[[], AbstractContextManager[Applier]],
    parallelism: int = 1,
) -> Planned:
    runtime.sweep()
    planned = _adopt(runtime, runtime.plan(tables), tables)
    for table in tables:
        _note_plan(planned.of(table), tally.of(table))
    for table, survey in planned.surveys:
        tell_of_refused_changes_without_run(runtime.audit, tally, survey)
        if not planned.of(table).loads:
            remember(runtime.audit, survey, survey.due)
        elif not planned.of(table).refusals:
            remember_source(runtime.audit, survey)
    due = [(t, survey) for t, survey in planned.surveys if planned.of(t).needs_a_run]
    _tell_of_misses(runtime, planned)
    if due:
        with opened_applier() as applier, progress_shown(due, tally):
            _each(due, lambda t, s: _timed(tally, t, partial(applier.load_due, t, s)), parallelism)
    _note_unread(planned, tally)
    return planned


def _adopt(runtime: Runtime, planned: Planned, tables: Sequence[Table]) -> Planned:
    """Take over what tables with `load.adopt` find in their targets. What is due is planned again after that."""
    adopting = [(t, s) for t, s in planned.surveys if s.ownership.adopted and not planned.of(t).refusals]
    for table, survey in adopting:
        adopt_published(table, runtime.destination(table), survey.ownership)
    return runtime.plan(tables) if adopting else planned


def _tell_of_misses(runtime: Runtime, planned: Planned) -> None:
    """Of tables that no run is started for."""
    for table, error in planned.failures:
        tell_of_a_look(runtime, table, error)
    for table, survey in planned.surveys:
        if refusals := planned.of(table).refusals:
            told = f"{table.label}: {'; '.join(refusals)}"
            runtime.audit.runs.refused(table.pipeline_id, table.name, "permanent", told)
        if not (planned.of(table).loads or planned.of(table).hooks):
            tell_of_a_look(runtime, table, survey)


def _note_unread(planned: Planned, tally: Tally) -> None:
    """Not all that was asked for is loaded."""
    for table, survey in planned.surveys:
        told, counts = told_unread(survey), tally.of(table)
        counts.warnings = [warning for warning in counts.warnings if warning not in told]
        if told and not counts.broken:
            more = f" (and {len(told) - 1} more)" if len(told) > 1 else ""
            counts.error = f"{table.label}: {told[0]}{more}"


def _note_plan(plan: TablePlan, counts: TableTally) -> None:
    counts.warnings += plan.warnings
    counts.planned = len(plan.loads)
    counts.waiting = len(plan.waiting)
    _note_refusal(plan, counts)


def _note_refusal(plan: TablePlan, counts: TableTally) -> None:
    if plan.error or plan.refusals:
        counts.error = plan.error or f"{plan.pipeline_id}/{plan.table}: {'; '.join(plan.refusals)}"


def _each(due: Sequence[tuple[Table, Survey]], work: Callable[[Table, Survey], None], parallelism: int) -> None:
    if parallelism <= 1:
        for table, survey in due:
            work(table, survey)
        return
    pool = ThreadPoolExecutor(max_workers=parallelism)
    waits = True
    try:
        for future in [pool.submit(work, table, survey) for table, survey in due]:
            future.result()
    except KeyboardInterrupt:
        waits = False  # for tables that are being loaded: `main` ends their threads with the process
        raise
    finally:
        pool.shutdown(wait=waits, cancel_futures=not waits)


def _timed(tally: Tally, table: Table, work: Callable[[], Sequence[str]]) -> None:
    started = time.monotonic()
    failures = work()
    tally.took(table, time.monotonic() - started)
    counts = tally.of(table)
    if failures and not counts.broken:  # not an error of ours: whatever it is, it is told whole
        counts.error = failures[0]


def run(root: Path, pipeline_id: str, *, table: str | None, chunk: str | None, as_json: bool) -> int:
    project = opened_project(root)
    pipeline = chosen_pipeline(project, pipeline_id)
    if chunk is not None and table is None and len(pipeline.tables) > 1:
        raise UsageError("--chunk needs --table: a chunk belongs to one table")
    tables = chosen_tables(pipeline, table)
    tally = Tally()
    with open_state_folder(project.state_dir) as state:
        with Runtime(project, Settings.from_env(), tally) as runtime, command_span(runtime, "run", tally):
            _load_chosen(runtime, tables, chunk, tally)
        return tell(tally, [pipeline], as_json, state)


def _load_chosen(runtime: Runtime, tables: Sequence[Table], chunk: str | None, tally: Tally) -> None:
    planned = runtime.plan(tables)
    wanted = [(t, survey, _keys(survey, chunk)) for t, survey in planned.surveys]
    for missing in tables:
        _note_refusal(planned.of(missing), tally.of(missing))
    for failed, error in planned.failures:
        tell_of_a_look(runtime, failed, error)
    for told, survey, keys in wanted:
        if not keys:
            tell_of_a_look(runtime, told, survey)
    if wanted:
        _again(runtime, wanted, tally)
    if chunk is None:
        _note_unread(planned, tally)


def _keys(survey: Survey, chunk: str | None) -> list[str]:
    keys = [planned.key for planned in survey.chunks]
    if chunk is None:
        return keys
    if chunk not in keys:
        unread = unread_part_of(survey, chunk)
        if unread is not None:
            raise unread
        shown = f"{keys[0]} … {keys[-1]}" if keys else "none: the source is empty"
        raise UsageError(f"{survey.table.label} has no chunk `{chunk}`", hint=f"its chunks: {shown}")
    return [chunk]


def _again(runtime: Runtime, wanted: Sequence[tuple[Table, Survey, list[str]]], tally: Tally) -> None:
    from hakiri_dagster.orchestration.apply import opened_applier

    with opened_applier(runtime) as applier, progress_shown([(t, s) for t, s, _ in wanted], tally):
        for table, survey, keys in wanted:
            tally.of(table).planned = len(keys)
            _timed(tally, table, partial(applier.load_again, table, survey, keys))


def tell(tally: Tally, pipelines: list[Pipeline], as_json: bool, state: StateFolder) -> int:
    document = tally.document(pipelines)
    if as_json:
        print_json(document)
    else:
        report(document)
    if tally.anything_broken:
        state.refuse_deleted()  # whatever failed, failed for that
        return 1
    return 0
