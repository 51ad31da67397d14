"""What the pages of Dagster's UI ask of its GraphQL."""

from __future__ import annotations

import json
import socket
import urllib.error
import urllib.request
from collections.abc import Sequence
from typing import Any, Literal

from tests.acceptance.command_line import eventually

Strategy = Literal["ALL_STEPS", "FROM_FAILURE"]

_LAUNCH = """
mutation Launch($params: LaunchBackfillParams!) { launchPartitionBackfill(backfillParams: $params) {
  __typename ... on LaunchBackfillSuccess { backfillId } ... on PythonError { message } } }
"""
_LAUNCH_AGAIN = """
mutation Again($params: ReexecutionParams!) { reexecutePartitionBackfill(reexecutionParams: $params) {
  __typename ... on LaunchBackfillSuccess { backfillId } ... on PythonError { message } } }
"""
_CANCEL = """
mutation Cancel($id: String!) { cancelPartitionBackfill(backfillId: $id) {
  __typename ... on PythonError { message } } }
"""
_EXECUTE_AGAIN = """
mutation Again($params: ReexecutionParams!) { launchRunReexecution(reexecutionParams: $params) {
  __typename ... on LaunchRunSuccess { run { runId } } ... on PythonError { message } } }
"""
_BACKFILL = """
query Backfill($id: String!) { partitionBackfillOrError(backfillId: $id) { ... on PartitionBackfill { status
  numPartitions runs(limit: 100) { runId status } } ... on PythonError { message } } }
"""
_BACKFILLS = "{ partitionBackfillsOrError { ... on PartitionBackfills { results { id } } } }"
_PARTITIONS = """
query Partitions($asset: AssetKeyInput!) {
  assetNodeOrError(assetKey: $asset) { ... on AssetNode { partitionKeys } } }
"""
_RUN = "query Run($id: ID!) { runOrError(runId: $id) { ... on Run { status } } }"
_ENDED = ("SUCCESS", "FAILURE", "CANCELED", "COMPLETED", "COMPLETED_SUCCESS", "COMPLETED_FAILED", "FAILED")


class Interface:
    def __init__(self, port: int) -> None:
        self._url = f"http://127.0.0.1:{port}/graphql"

    def partitions(self, *asset: str) -> int:
        """None while the project is still being loaded."""
        node = self._ask(_PARTITIONS, asset={"path": asset})["assetNodeOrError"]
        return len(node.get("partitionKeys", ()))

    def knows(self, *asset: str) -> bool:
        """Whether the project is loaded."""
        return "partitionKeys" in self._ask(_PARTITIONS, asset={"path": asset})["assetNodeOrError"]

    def backfill(self, *asset: str, partitions: Sequence[str]) -> str:
        params = {"assetSelection": [{"path": asset}], "partitionNames": partitions}
        return str(self._ask(_LAUNCH, params=params)["launchPartitionBackfill"]["backfillId"])

    def backfill_again(self, backfill: str, strategy: Strategy) -> str:
        params = {"parentRunId": backfill, "strategy": strategy}
        return str(self._ask(_LAUNCH_AGAIN, params=params)["reexecutePartitionBackfill"]["backfillId"])

    def cancel(self, backfill: str) -> None:
        told = self._ask(_CANCEL, id=backfill)["cancelPartitionBackfill"]
        assert told["__typename"] == "CancelBackfillSuccess", told

    def newest_backfill(self) -> str:
        return str(self._ask(_BACKFILLS)["partitionBackfillsOrError"]["results"][0]["id"])

    def execute_again(self, run: str, strategy: Strategy) -> str:
        params = {"parentRunId": run, "strategy": strategy}
        return str(self._ask(_EXECUTE_AGAIN, params=params)["launchRunReexecution"]["run"]["runId"])

    def end_of_backfill(self, backfill: str) -> tuple[str, list[str]]:
        """How it ended, and what became of its runs."""
        eventually(lambda: self._backfill(backfill)["status"] in _ENDED, within=240)
        told = self._backfill(backfill)
        return str(told["status"]), sorted(run["status"] for run in told["runs"])

    def runs_of(self, backfill: str) -> list[str]:
        return [run["runId"] for run in self._backfill(backfill)["runs"]]

    def end_of_run(self, run: str) -> str:
        eventually(lambda: self._status(run) in _ENDED)
        return self._status(run)

    def _backfill(self, backfill: str) -> Any:
        return self._ask(_BACKFILL, id=backfill)["partitionBackfillOrError"]

    def _status(self, run: str) -> str:
        return str(self._ask(_RUN, id=run)["runOrError"]["status"])

    def _ask(self, query: str, **variables: Any) -> Any:
        body = json.dumps({"query": query, "variables": variables}).encode()
        request = urllib.request.Request(self._url, body, {"Content-Type": "application/json"})
        try:
            with urllib.request.urlopen(request, timeout=60) as answer:
                told = json.load(answer)
        except urllib.error.HTTPError as error:
            raise AssertionError(error.read().decode()) from None
        assert not told.get("errors"), told
        return told["data"]


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def answers(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0
