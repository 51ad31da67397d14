"""`hakiri serve` when the Connect server that its runs share is killed."""

from __future__ import annotations

import json
import os
import signal
import urllib.error
import urllib.request
from typing import Any

from hakiri_dagster.engine.postgres_settings import free_port
from tests.acceptance.command_line import ProjectFolder, eventually, kill, name_of
from tests.acceptance.conftest import NewProject
from tests.acceptance.held_api import MONTHS, Readings, assert_loaded_exactly_once, readings_table
from tests.integration.connectors.rest.api_server import serving

LAUNCH = """
mutation ($params: ExecutionParams!) {
  launchRun(executionParams: $params) {
    __typename ... on LaunchRunSuccess { run { runId } } ... on PythonError { message }
  }
}
"""
RUNS = "{ runsOrError { ... on Runs { results { status } } } }"
ENDED = ("SUCCESS", "FAILURE", "CANCELED")


def test_a_run_whose_connect_server_is_killed_ends_with_the_right_rows(new_project: NewProject) -> None:
    project, readings, port = new_project("lost-connect"), Readings(), free_port()
    project.env = {"HAKIRI_WEBHOOKS_TO_LOOPBACK": "true"}
    with serving(readings.answer) as api:
        readings_table(project, api.url)
        serve = project.start("serve", "--port", str(port))
        assert eventually(lambda: _launched(port) or serve.poll() is not None)
        assert serve.poll() is None, serve.communicate()
        assert eventually(lambda: readings.held.is_set() or _ended(port)), _runs(port)
        kill(next(process for process in project.processes() if name_of(process) == "java"))
        readings.released.set()
        assert eventually(lambda: _ended(port)), _runs(port)
        assert _runs(port) == [{"status": "SUCCESS"}]
        assert_loaded_exactly_once(project)
    os.killpg(serve.pid, signal.SIGINT)
    done = project.finish(serve)
    assert (done.code, "the Spark Connect server is up again" in done.err) == (0, True), done
    _assert_nothing_is_left(project)


def _launched(port: int) -> bool:
    """Not before the UI is up and has loaded the project."""
    try:
        told = _ask(port, LAUNCH, {"params": _load_of_all_months()})["launchRun"]
    except (urllib.error.URLError, ConnectionError):
        return False
    assert told["__typename"] in ("LaunchRunSuccess", "PipelineNotFoundError"), told
    return bool(told["__typename"] == "LaunchRunSuccess")


def _load_of_all_months() -> dict[str, Any]:
    job = {"repositoryLocationName": "hakiri", "repositoryName": "__repository__", "jobName": "lab_pipeline"}
    tags = {"dagster/asset_partition_range_start": MONTHS[0], "dagster/asset_partition_range_end": MONTHS[-1]}
    return {
        "selector": job,
        "executionMetadata": {"tags": [{"key": key, "value": value} for key, value in tags.items()]},
    }


def _ask(port: int, query: str, variables: dict[str, Any] | None = None) -> Any:
    body = json.dumps({"query": query, "variables": variables or {}}).encode()
    request = urllib.request.Request(f"http://127.0.0.1:{port}/graphql", body, {"Content-Type": "application/json"})
    with urllib.request.urlopen(request, timeout=30) as answer:
        told = json.load(answer)
    assert "errors" not in told, told
    return told["data"]


def _runs(port: int) -> list[dict[str, str]]:
    runs: list[dict[str, str]] = _ask(port, RUNS)["runsOrError"]["results"]
    return runs


def _ended(port: int) -> bool:
    return any(run["status"] in ENDED for run in _runs(port))


def _assert_nothing_is_left(project: ProjectFolder) -> None:
    project.assert_no_process_is_left(10)
    assert not list(project.state.glob("candidates/*/*/attempt-*"))
