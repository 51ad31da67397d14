"""Pages say what is so: links lead somewhere, commands exist, settings are read, manifests are valid."""

from __future__ import annotations

import ast
import re
import shlex
from pathlib import Path

import pytest
import typer
from typer.core import TyperCommand, TyperGroup

from hakiri_dagster.cli.main import app
from hakiri_dagster.manifest.not_yet import FEATURES, PROJECT_FEATURES
from hakiri_dagster.manifest.project import read_project
from tests.unit.docs.pages import PAGES, ROOT, Block, anchors, blocks, first_column, links, prose, sections

COMMANDS = typer.main.get_command(app)
OURS = sorted((ROOT / "hakiri_dagster").rglob("*.py"))

_OUR_VARIABLE = re.compile(r'"(HAKIRI_[A-Z_]+|FLOW_[A-Z_]+|SPARK_CONNECT_AUTHENTICATE_TOKEN)"')
_READ_VARIABLE = re.compile(r'environ(?:ment)?(?:\.get\(|\[)"([A-Z_]+)"')
_EVERYBODYS = {"PATH", "PYTHONPATH"}

MANIFESTS = [
    block for page in PAGES for block in blocks(page) if block.language in ("toml", "json") and "tables" in block.text
]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_relative_link_leads_somewhere(page: Path) -> None:
    for link in links(page):
        target, _, anchor = link.partition("#")
        path = (page.parent / target).resolve() if target else page
        assert path.exists(), link
        if anchor:
            assert anchor in anchors(path), link


def shell_lines(page: Path) -> list[list[str]]:
    lines = [line for block in blocks(page) if block.language == "sh" for line in block.text.splitlines()]
    inline = re.findall(r"`([^`\n]+)`", prose(page))
    ours = [line for line in [*lines, *inline] if line.split()[:1] in (["hakiri"], ["make"])]
    return [shlex.split(line, comments=True) for line in ours]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_command_shown_exists_with_its_options(page: Path) -> None:
    targets = set(re.findall(r"^([a-z]+):", (ROOT / "Makefile").read_text(), re.M))
    for program, *words in shell_lines(page):
        if program == "make":
            assert not words or words[0] in targets, words
        elif not any("COMMAND" in word for word in words):
            assert_known(words)


def assert_known(words: list[str]) -> None:
    command = COMMANDS
    rest = list(words)
    while isinstance(command, TyperGroup) and rest:
        word = rest.pop(0)
        if word.startswith("--"):
            assert word in options(command), words
            rest = rest[1:]
            continue
        assert word in command.commands, words
        command = command.commands[word]
    if not command.context_settings.get("ignore_unknown_options"):
        assert {word for word in rest if word.startswith("-")} <= options(command), words


def options(command: TyperCommand | TyperGroup) -> set[str]:
    return {name for parameter in command.params for name in parameter.opts if name.startswith("--")}


def test_every_setting_that_the_code_reads_is_in_operations_and_none_else() -> None:
    text = "\n".join(path.read_text(encoding="utf-8") for path in OURS)
    read = {*_OUR_VARIABLE.findall(text), *_READ_VARIABLE.findall(text)} - _EVERYBODYS
    told = first_column(sections(ROOT / "docs" / "operations.md")["Settings"])
    assert sorted(told) == sorted(read)


def messages_of_the_code() -> str:
    """Texts as Python sees them: parts of one that stand in several lines are one."""
    trees = [ast.parse(path.read_text(encoding="utf-8")) for path in OURS]
    nodes = [node for tree in trees for node in ast.walk(tree)]
    return "\n".join(node.value for node in nodes if isinstance(node, ast.Constant) and isinstance(node.value, str))


def test_every_message_that_troubleshooting_explains_is_one_of_the_codes() -> None:
    table = sections(ROOT / "docs" / "operations.md")["Troubleshooting"]
    rows = [line.split(" | ")[0] for line in table.splitlines() if line.startswith("| `")]
    told = [part.strip() for row in rows for text in re.findall(r"`([^`]+)`", row) for part in re.split("[…,]", text)]
    known = messages_of_the_code()
    assert rows
    assert [part for part in told if part not in known] == []


def test_manifests_are_shown() -> None:
    assert {block.page.name for block in MANIFESTS} >= {"README.md"}


@pytest.mark.parametrize("block", MANIFESTS, ids=lambda block: f"{block.page.name}-{block.text[:40]!r}")
def test_every_manifest_shown_is_valid(block: Block, tmp_path: Path) -> None:
    if block.title:
        return  # an answer of the command line: test_cli_page
    name = re.match(r"# (\S+)", block.text)
    assert name, "a manifest's first line says which file it is"
    path = tmp_path / name[1]
    path.parent.mkdir(parents=True)
    path.write_text(block.text)
    environment = dict.fromkeys(re.findall(r"\$\{(\w+)\}", block.text), "postgresql://user:pw@example.com/db")
    reading = read_project(tmp_path, environment)
    assert (reading.problems, reading.warnings) == ((), ())
    assert reading.pipeline_ids


def test_the_readme_names_all_that_is_not_built() -> None:
    told = set(re.findall(r"`([^`]+)`", sections(ROOT / "README.md")["What is not built yet"]))
    keys = {path[-1] for path in [*FEATURES, *PROJECT_FEATURES]}
    assert {*keys} <= {word.strip("[]") for word in told}


def test_the_ten_line_manifest_has_ten_lines() -> None:
    shown = sections(ROOT / "README.md")["A manifest"]
    text = shown.partition("```toml\n")[2].partition("```")[0]
    assert len([line for line in text.splitlines() if line and not line.startswith("#")]) <= 10


def test_every_decision_is_in_the_index() -> None:
    index = prose(ROOT / "docs" / "adr" / "README.md")
    for page in (ROOT / "docs" / "adr").glob("0*.md"):
        title = page.read_text(encoding="utf-8").splitlines()[0].partition(". ")[2]
        assert f"]({page.name}) | {title} |" in index


def test_the_repositorys_manifests_are_the_demos() -> None:
    packaged = ROOT / "hakiri_dagster" / "scaffold" / "demo"
    for path in (path for path in (ROOT / "manifests").rglob("*") if path.is_file()):
        assert path.read_text() == (packaged / path.name).read_text()
