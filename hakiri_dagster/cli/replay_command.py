"""`hakiri quarantine replay`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, TypedDict, assert_never

from rich.markup import escape

from hakiri_dagster.cli.documents import print_json
from hakiri_dagster.cli.opening import chosen_pipeline, chosen_tables, opened_project
from hakiri_dagster.cli.quarantine_commands import Filters
from hakiri_dagster.cli.screen import grid, screen
from hakiri_dagster.cli.tally import Tally
from hakiri_dagster.errors import HakiriError
from hakiri_dagster.manifest.tables import Table
from hakiri_dagster.pipeline.hooks_run import HookRun
from hakiri_dagster.pipeline.replay import ReplayStep, Tries, tries
from hakiri_dagster.pipeline.replay_verdicts import ReplayedChunk
from hakiri_dagster.pipeline.runtime import Runtime
from hakiri_dagster.planning.replays import LeftAlone
from hakiri_dagster.settings import Settings

if TYPE_CHECKING:
    from hakiri_dagster.orchestration.replay import Replayer


class HeldDocument(TypedDict):
    rule: str
    rows: int


class LeftDocument(TypedDict):
    reason: str
    rows: int


class ReplayDocument(TypedDict):
    pipeline_id: str
    table: str
    quarantine_table: str
    replayed: int
    held: list[HeldDocument]
    left: list[LeftDocument]
    overtaken: int
    chunks: dict[str, int]
    warnings: list[str]
    error: str | None


@dataclass
class ReplayTally:
    """What became of the quarantine of one table."""

    label: str
    replayed: int = 0
    held: Counter[str] = field(default_factory=Counter)
    left: Counter[str] = field(default_factory=Counter)
    overtaken: int = 0
    done: int = 0
    failed: int = 0
    error: str | None = None

    def add(self, step: ReplayStep) -> None:
        match step:
            case ReplayedChunk():
                self._add_chunk(step)
            case LeftAlone(reason, rows):
                self.left[reason] += rows
            case HookRun():
                if step.error is not None and not step.warns:
                    self.error = self.error or str(step.error)
            case _:
                assert_never(step)

    def _add_chunk(self, chunk: ReplayedChunk) -> None:
        self.replayed += chunk.replayed
        self.held.update(chunk.held)
        self.left.update(chunk.left)
        self.overtaken += chunk.overtaken
        if chunk.error is None:
            self.done += 1
        else:
            self.failed += 1
            self.error = self.error or f"chunk {chunk.key}: {chunk.error.told_within(self.label)}"

    def document(self, table: Table, warnings: Sequence[str]) -> ReplayDocument:
        return ReplayDocument(
            pipeline_id=table.pipeline_id,
            table=table.name,
            quarantine_table=table.quarantine_place,
            replayed=self.replayed,
            held=[HeldDocument(rule=rule, rows=rows) for rule, rows in self.held.most_common()],
            left=[LeftDocument(reason=reason, rows=rows) for reason, rows in self.left.most_common()],
            overtaken=self.overtaken,
            chunks={"done": self.done, "failed": self.failed},
            warnings=list(warnings),
            error=self.error,
        )


def replay(root: Path, pipeline_id: str, name: str | None, filters: Filters, *, as_json: bool) -> int:
    project = opened_project(root)
    tables = chosen_tables(chosen_pipeline(project, pipeline_id), name)
    tally = Tally()
    with Runtime(project, Settings.from_env(), tally) as runtime:

        def through_dagster() -> AbstractContextManager[Replayer]:
            from hakiri_dagster.orchestration.replay import opened_replayer

            return opened_replayer(runtime)

        documents = replay_tables(runtime, tables, filters, tally, through_dagster)
    if as_json:
        print_json({"tables": documents})
    else:
        _print(documents)
    return 1 if any(document["error"] for document in documents) else 0


def replay_tables(
    runtime: Runtime,
    tables: Sequence[Table],
    filters: Filters,
    tally: Tally,
    opened: Callable[[], AbstractContextManager[Replayer]],
) -> list[ReplayDocument]:
    """Where nothing is to be tried, neither Dagster nor Spark is even imported."""
    runtime.sweep()
    told = {table.label: ReplayTally(table.label) for table in tables}
    worth = [
        (table, found) for table in tables if (found := _tries(runtime, table, filters, told[table.label])) is not None
    ]
    if worth:
        with opened() as replayer:
            for table, found in worth:
                _replay(replayer, table, filters, found, told[table.label])
    return [told[table.label].document(table, tally.of(table).warnings) for table in tables]


def _tries(runtime: Runtime, table: Table, filters: Filters, told: ReplayTally) -> Tries | None:
    try:
        found = tries(runtime.destination(table), table, filters.choice(table))
    except HakiriError as error:
        told.error = str(error)
        return None
    if found.any:
        return found
    for left in found.left:
        told.add(left)
    return None


def _replay(replayer: Replayer, table: Table, filters: Filters, found: Tries, told: ReplayTally) -> None:
    try:
        for step in replayer.replay(table, filters.choice(table), found.kept):
            told.add(step)
    except HakiriError as error:
        told.error = told.error or str(error)


def _print(documents: Sequence[ReplayDocument]) -> None:
    console = screen()
    for document in documents:
        label = f"{document['pipeline_id']}/{document['table']}"
        console.print(f"[bold]{escape(label)}[/bold], in {escape(document['quarantine_table'])}")
        if document["error"]:
            console.print(f"[red]error[/]: {escape(document['error'].removeprefix(f'{label}: '))}")
        rows = list(_rows(document))
        if rows:
            made = grid(("", ""), ("rows",))
            for what, why, count in rows:
                made.add_row(what, escape(why), f"{count:,}")
            console.print(made)
        elif not document["error"]:
            console.print("  nothing is kept")
        for warning in document["warnings"]:
            console.print(f"[yellow]warning[/]: {escape(warning)}")


def _rows(document: ReplayDocument) -> Iterator[tuple[str, str, int]]:
    if document["replayed"]:
        yield "replayed", "they are in the target", document["replayed"]
    for held in document["held"]:
        yield "still held", held["rule"], held["rows"]
    for left in document["left"]:
        yield "left alone", left["reason"], left["rows"]
    if document["overtaken"]:
        yield "gone", "a later load has read them again", document["overtaken"]
