"""docs/cli.md and the program say the same."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import fields
from pathlib import Path
from typing import Any, get_type_hints

import pytest
from typer.core import TyperCommand, TyperGroup

from hakiri_dagster.audit.deliveries import DeliveryNumbers
from hakiri_dagster.audit.renames import Rename
from hakiri_dagster.audit.status import ChunkNumbers, FailedChunk, OpenRewind, TableError, Throughput
from hakiri_dagster.cli.alerts_command import AlertDocument
from hakiri_dagster.cli.backup_commands import BackupDocument
from hakiri_dagster.cli.check_command import CheckDocument
from hakiri_dagster.cli.check_command import TableDocument as CheckedTable
from hakiri_dagster.cli.deliveries_command import DeliveryDocument
from hakiri_dagster.cli.explain import document as plan_document
from hakiri_dagster.cli.manifest_commands import init, pipeline_list, validate
from hakiri_dagster.cli.open_transactions import transaction_document
from hakiri_dagster.cli.profile_command import ColumnDocument, ProfileDocument, ValueDocument
from hakiri_dagster.cli.quarantine_commands import CountDocument, RowDocument, TableDocument
from hakiri_dagster.cli.rename_command import document as rename_document
from hakiri_dagster.cli.replay_command import HeldDocument, LeftDocument, ReplayDocument
from hakiri_dagster.cli.rewind_command import RewindDocument
from hakiri_dagster.cli.status_command import PipelineStatus
from hakiri_dagster.cli.tally import TableTally, Tally
from hakiri_dagster.cli.verify_command import ChunkDocument
from hakiri_dagster.cli.verify_command import TableDocument as VerifiedTable
from hakiri_dagster.engine.doctor import Check
from hakiri_dagster.errors import Problem
from hakiri_dagster.manifest.project import load_project
from hakiri_dagster.pipeline.renaming import Renamed
from hakiri_dagster.planning.horizon import OpenTransaction
from hakiri_dagster.planning.plan import AdoptLoads, Limits, ProjectPlan, RereadStretch, TablePlan
from hakiri_dagster.planning.publishers import Move, Moved
from tests.unit.docs.pages import ROOT, blocks, first_column, sections
from tests.unit.docs.test_docs import COMMANDS, options

PAGE = ROOT / "docs" / "cli.md"
SECTIONS = sections(PAGE)
ANSWERS = {block.title: json.loads(block.text) for block in blocks(PAGE) if block.language == "json"}


def commands(command: TyperCommand | TyperGroup, name: str) -> Iterator[tuple[str, TyperCommand | TyperGroup]]:
    if isinstance(command, TyperGroup):
        for word, inner in command.commands.items():
            yield from commands(inner, f"{name} {word}")
    else:
        yield name, command


ALL = dict(commands(COMMANDS, "hakiri"))


def test_every_command_has_its_section_and_no_other_does() -> None:
    assert sorted(SECTIONS) == sorted(ALL)


@pytest.mark.parametrize("name", ALL)
def test_a_section_has_the_help_and_the_options_of_its_command(name: str) -> None:
    command = ALL[name]
    assert command.help
    assert SECTIONS[name].lstrip().startswith(command.help + "\n")
    assert sorted(first_column(SECTIONS[name])) == sorted(options(command) - {"--help"})


def test_all_commands_that_answer_json_show_it() -> None:
    told = {name.removeprefix("hakiri ") for name, command in ALL.items() if "--json" in options(command)}
    assert told == {*ANSWERS, "run", "pipeline show"}  # told in words there


OPEN = OpenTransaction("1")


def keys(value: Any) -> Any:
    """What a document looks like: nested keys, without values."""
    match value:
        case dict():
            return {name: keys(inner) for name, inner in value.items()}
        case [dict() as first, *_]:
            return [keys(first)]
        case _:
            return None


def names(kind: type) -> dict[str, None]:
    return dict.fromkeys(get_type_hints(kind))


@pytest.fixture
def project(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Path:
    init(tmp_path / "new")
    capsys.readouterr()
    return tmp_path / "new"


def test_the_answer_of_validate(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    validate(project, as_json=True)
    assert list(json.loads(capsys.readouterr().out)) == list(ANSWERS["validate"])
    assert list(ANSWERS["validate"]["errors"][0]) == [field.name for field in fields(Problem)]


def test_the_answer_of_plan() -> None:
    adopted, reread = (AdoptLoads("shop-db/orders", 24),), RereadStretch(1, 2, (OPEN,))
    table = TablePlan("shop", "orders", "public.orders", "upsert", is_new=True, stages=adopted, reread=reread)
    plan = ProjectPlan((table,), (Limits("shop"),))
    assert keys(ANSWERS["plan"]) == keys(plan_document(plan))


def test_the_answer_of_apply(project: Path) -> None:
    pipelines = load_project(project).pipelines[:1]
    tally = Tally()
    tally.of(pipelines[0].tables[0])
    assert keys(ANSWERS["apply"]) == keys(tally.document(list(pipelines)))
    assert list(TableTally().document("t")) == list(ANSWERS["apply"]["pipelines"][0]["tables"][0])


def test_the_answer_of_status() -> None:
    nested = {"chunks": names(ChunkNumbers), "throughput": names(Throughput), "rewinds": [names(OpenRewind)]}
    nested |= {"deliveries": names(DeliveryNumbers), "errors": [names(TableError)]}
    nested["failed_chunks"] = [names(FailedChunk)]
    nested["rereads"] = [keys({"table": None, "from": None, "because_of": [transaction_document(OPEN)]})]
    assert keys(ANSWERS["status"]) == names(PipelineStatus) | nested


def test_the_answer_of_deliveries() -> None:
    (delivery,) = ANSWERS["deliveries"]["deliveries"]
    assert list(delivery) == list(names(DeliveryDocument))


def test_the_answer_of_backfill_rewind() -> None:
    (rewound,) = ANSWERS["backfill rewind"]["rewinds"]
    assert list(rewound) == list(names(RewindDocument))


def test_the_answer_of_alerts() -> None:
    (alert,) = ANSWERS["alerts"]["alerts"]
    assert list(alert) == list(names(AlertDocument))


def test_the_answer_of_backup_list() -> None:
    (backup,) = ANSWERS["backup list"]["backups"]
    assert list(backup) == list(names(BackupDocument))


def test_the_answer_of_pipeline_rename(project: Path) -> None:
    moved = Moved(Move("shop-db", "orders", load_project(project).tables[0]))
    shown = rename_document("shop-db", "shop", Renamed(Rename("shop-db", "shop"), (moved,), 131, (24,)))
    assert keys(ANSWERS["pipeline rename"]) == keys(shown)


def test_the_answer_of_check() -> None:
    (table,) = ANSWERS["check"]["tables"]
    assert list(table) == list(names(CheckedTable))
    assert [list(check) for check in table["checks"]] == [list(names(CheckDocument))]


def test_the_answer_of_verify() -> None:
    (table,) = ANSWERS["verify"]["tables"]
    assert list(table) == list(names(VerifiedTable))
    assert [list(chunk) for chunk in table["differences"]] == [list(names(ChunkDocument))]


def test_the_answer_of_quarantine_show() -> None:
    (table,) = ANSWERS["quarantine show"]["tables"]
    assert list(table) == list(names(TableDocument))
    assert [list(count) for count in table["counts"]] == [list(names(CountDocument))]
    assert [list(row) for row in table["sample"]] == [list(names(RowDocument))]


def test_the_answer_of_quarantine_replay() -> None:
    (table,) = ANSWERS["quarantine replay"]["tables"]
    assert list(table) == list(names(ReplayDocument))
    assert [list(held) for held in table["held"]] == [list(names(HeldDocument))]
    assert [list(left) for left in table["left"]] == [list(names(LeftDocument))]


def test_the_answer_of_profile() -> None:
    (table,) = ANSWERS["profile"]["tables"]
    assert list(table) == list(names(ProfileDocument))
    assert [list(column) for column in table["columns"]] == [list(names(ColumnDocument))]
    assert [list(value) for value in table["columns"][0]["values"]] == [list(names(ValueDocument))] * 2


def test_the_answer_of_doctor() -> None:
    assert [list(check) for check in ANSWERS["doctor"]] == [[field.name for field in fields(Check)]]


def test_the_answer_of_pipeline_list(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pipeline_list(project, as_json=True)
    assert keys(ANSWERS["pipeline list"]) == keys(json.loads(capsys.readouterr().out))
