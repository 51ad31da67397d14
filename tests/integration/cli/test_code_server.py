"""Dagster's code server as `hakiri serve` starts and watches it: two real processes, of which the inner one is hit."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import psutil
import pytest

from hakiri_dagster.cli.children import Children, children_of
from hakiri_dagster.cli.code_server import (
    CODE_SERVER,
    CODE_SERVER_ENVIRONMENT,
    PATIENCE,
    CodeServerWatch,
    code_server_command,
)
from hakiri_dagster.engine.postgres_settings import free_port
from tests.acceptance.command_line import command_of, eventually


class Served:
    def __init__(self, children: Children, watch: CodeServerWatch) -> None:
        self.children = children
        self.watch = watch

    def answers(self) -> bool:
        assert self.watch.trouble() is None
        return self.watch.answers and self.watch._refusals == 0

    def trouble(self) -> str | None:
        """The one that it gets into."""
        told: list[str] = []

        def happened() -> bool:
            told.extend(filter(None, [self.watch.trouble()]))
            return bool(told)

        return told[0] if eventually(happened) else None

    @property
    def inner(self) -> psutil.Process:
        processes = psutil.Process().children(recursive=True)
        (found,) = [process for process in processes if " api grpc " in command_of(process)]
        return found


@pytest.fixture
def loaded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> Iterator[Served]:
    text, patience = getattr(request, "param", ("import dagster as dg\ndefs = dg.Definitions()\n", PATIENCE))
    (tmp_path / "project_of_a_test.py").write_text(text)
    monkeypatch.chdir(tmp_path)
    port = free_port(None)
    with children_of(tmp_path) as children, closing(CodeServerWatch(port, patience)) as watch:
        children.start(CODE_SERVER, code_server_command(port, "project_of_a_test"), **CODE_SERVER_ENVIRONMENT)
        served = Served(children, watch)
        assert eventually(served.answers), children.log(CODE_SERVER).read_text()
        yield served


def test_a_code_server_whose_inner_process_was_killed_is_in_trouble_and_answers_when_it_was_started_again(
    loaded: Served,
) -> None:
    before = loaded.inner
    before.kill()
    assert loaded.trouble() == "has lost the process that holds the project"
    loaded.children.refuse_ended()  # the outer process lives on
    loaded.children.start_again(CODE_SERVER)
    loaded.watch.begin()
    assert eventually(loaded.answers)
    assert loaded.inner.pid != before.pid


@pytest.mark.parametrize("loaded", [("import dagster as dg\ndefs = dg.Definitions()\n", 1.0)], indirect=True)
def test_a_code_server_that_answers_nothing_is_in_trouble_after_a_while(loaded: Served) -> None:
    answered = loaded.watch._next
    assert eventually(lambda: loaded.answers() and loaded.watch._next > answered), "it is asked more than once"
    os.kill(loaded.inner.pid, signal.SIGSTOP)
    assert loaded.trouble() == "does not answer"


@pytest.mark.parametrize("loaded", [("this is no Python", PATIENCE)], indirect=True)
def test_a_project_that_cannot_be_loaded_is_no_trouble_of_the_code_server(loaded: Served) -> None:
    """The UI shows why; it is reloaded there."""
    assert loaded.answers()
