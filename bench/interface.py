"""Dagster's UI as a browser drives it: `hakiri serve`, and what its pages send to GraphQL."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from hakiri_dagster.engine.postgres_settings import free_port

_PATIENCE = 300
_LOOK_SECONDS = 0.1
_LAUNCH = """
mutation Launch($params: LaunchBackfillParams!) {
  launchPartitionBackfill(backfillParams: $params) { __typename ... on LaunchBackfillSuccess { backfillId }
    ... on PythonError { message } }
}
"""
_PARTITIONS = """
query Partitions($asset: AssetKeyInput!) {
  assetNodeOrError(assetKey: $asset) { ... on AssetNode { partitionKeys } }
}
"""
_BACKFILL = """
query Backfill($id: String!) {
  partitionBackfillOrError(backfillId: $id) { ... on PartitionBackfill { status
    runs(limit: 100) { status startTime endTime } }
    ... on PythonError { message } }
}
"""


@contextmanager
def served(project: Path, env: Mapping[str, str]) -> Iterator[Interface]:
    port = free_port(None)
    hakiri = Path(sys.executable).parent / "hakiri"
    process = subprocess.Popen(
        [hakiri, "--project", project, "serve", "--port", str(port)],
        env={**os.environ, **env},
        stderr=subprocess.DEVNULL,
    )
    try:
        interface = Interface(f"http://127.0.0.1:{port}/graphql")
        interface.wait_until_up(process)
        yield interface
    finally:
        process.terminate()
        process.wait()


class Interface:
    def __init__(self, url: str) -> None:
        self._url = url

    def wait_until_up(self, process: subprocess.Popen[bytes]) -> None:
        while process.poll() is None:
            try:
                self.ask("{ version }", {})
            except (urllib.error.URLError, ConnectionError):
                time.sleep(_LOOK_SECONDS)
            else:
                return
        raise SystemExit("hakiri serve ended")

    def ask(self, query: str, variables: Mapping[str, Any]) -> Any:
        body = json.dumps({"query": query, "variables": variables}).encode()
        request = urllib.request.Request(self._url, body, {"Content-Type": "application/json"})
        with urllib.request.urlopen(request, timeout=60) as answer:
            told = json.load(answer)
        if told.get("errors"):
            raise SystemExit(f"the UI refused: {told['errors'][0]['message']}")
        return told["data"]

    def partitions(self, asset: Sequence[str], count: int) -> list[str]:
        """Once a sensor has found them."""
        deadline = time.monotonic() + _PATIENCE
        while time.monotonic() < deadline:
            node = self.ask(_PARTITIONS, {"asset": {"path": asset}})["assetNodeOrError"]
            found = list(node.get("partitionKeys", ()))  # none while the project is still being loaded
            if len(found) == count:
                return found
            time.sleep(_LOOK_SECONDS)
        raise SystemExit(f"{asset} never had {count} partitions")

    def backfill_seconds(self, asset: Sequence[str], partitions: Sequence[str]) -> float:
        """From the start of its first run to the end of its last."""
        params = {"assetSelection": [{"path": asset}], "partitionNames": partitions}
        launched = self.ask(_LAUNCH, {"params": params})["launchPartitionBackfill"]
        if "backfillId" not in launched:
            raise SystemExit(f"the backfill was not launched: {launched}")
        while True:
            told = self.ask(_BACKFILL, {"id": launched["backfillId"]})["partitionBackfillOrError"]
            if told["status"].startswith("COMPLETED"):
                break
            if told["status"] in ("FAILED", "CANCELED"):
                raise SystemExit(f"the backfill ended as {told['status']}")
            time.sleep(_LOOK_SECONDS)
        runs = told["runs"]
        if any(run["status"] != "SUCCESS" for run in runs):
            raise SystemExit(f"runs of the backfill failed: {[run['status'] for run in runs]}")
        return max(run["endTime"] for run in runs) - min(run["startTime"] for run in runs)
