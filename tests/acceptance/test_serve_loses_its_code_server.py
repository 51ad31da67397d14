"""`hakiri serve` when the process is killed through which all ticks and launches go."""

from __future__ import annotations

import os
import signal

from hakiri_dagster.engine.postgres_settings import free_port
from tests.acceptance.command_line import Running, eventually, kill
from tests.acceptance.conftest import NewProject
from tests.acceptance.interface import Interface, answers


def test_ticks_go_on_after_the_process_that_holds_the_project_was_killed(new_project: NewProject) -> None:
    """A file that arrives is loaded by a tick, and by a run that the code server starts."""
    project, port = new_project("lost-code-server"), free_port()
    source = {"connector": "files", "config": {"path": "drop", "format": "csv"}}
    triggers = [{"type": "files", "settle": "1s"}]
    project.pipeline({"id": "drop", "source": source, "triggers": triggers, "tables": ["parcels"]})
    project.file("drop/parcels/.keep", "")
    serve = project.start("serve", "--port", str(port))
    assert eventually(lambda: answers(port) or serve.poll() is not None), serve.communicate()
    assert eventually(lambda: Interface(port).knows("drop", "parcels"))
    (inner,) = project.processes_named(" api grpc ")
    kill(inner)
    _await_line(serve, "the code server has lost the process that holds the project: it is started again …")
    project.file("drop/parcels/one.csv", "parcel_id\n1\n2\n")
    there = "SELECT to_regclass('public.parcels') IS NOT NULL"
    assert eventually(lambda: project.rows(there) == [(True,)])
    assert eventually(lambda: project.rows("SELECT count(*) FROM public.parcels") == [(2,)])
    os.killpg(serve.pid, signal.SIGINT)
    assert project.finish(serve).code == 0
    project.assert_no_process_is_left(10)


def _await_line(process: Running, expected: str) -> None:
    assert process.stderr is not None
    told = []
    for line in process.stderr:
        told.append(line)
        if line.rstrip() == expected:
            return
    raise AssertionError(told)
