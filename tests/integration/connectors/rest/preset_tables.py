"""Tables of presets as a manifest declares them, walked over without Spark."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from contextlib import closing
from datetime import datetime
from pathlib import Path
from typing import Any, NoReturn

from hakiri_dagster.connectors.contract import Discovery, Known
from hakiri_dagster.connectors.network import Network
from hakiri_dagster.connectors.registry import source_table
from hakiri_dagster.connectors.rest.client import Client
from hakiri_dagster.connectors.rest.ranges import PositionOf, as_position
from hakiri_dagster.connectors.rest.table import RestTable
from hakiri_dagster.connectors.rest.walk import walked
from hakiri_dagster.manifest.project import load_project
from hakiri_dagster.planning.chunks import Interval


def preset_table(
    root: Path, connector: str, config: Mapping[str, Any], table: Any, env: Mapping[str, str]
) -> RestTable:
    folder = root / "manifests" / "pipelines"
    folder.mkdir(parents=True, exist_ok=True)
    source = {"connector": connector, "config": {"retry": {"first_pause": 0.01}, **config}}
    (folder / "api.json").write_text(json.dumps({"id": "api", "source": source, "tables": [table]}))
    project = load_project(root, {"HAKIRI_WEBHOOKS_TO_LOOPBACK": "true", **env})
    found = source_table(project.tables[0], network=Network(allow_loopback=True))
    assert isinstance(found, RestTable)
    return found


def _no_spark() -> NoReturn:
    raise AssertionError("Spark was asked for")


def discovered(table: RestTable, *, cursor: str) -> Discovery:
    return table.discover(cursor=cursor, known=Known(), spark=_no_spark)


def whole(table: RestTable) -> Sequence[Mapping[str, Any]]:
    with closing(Client(table.api, table.network, pause=lambda _: None)) as client:
        pages = list(walked(client, table.collection))
    return [record.value for page in pages for record in page]


def read(
    table: RestTable, lower: datetime | None = None, upper: datetime | None = None, *, cursor: str
) -> Sequence[Mapping[str, Any]]:
    """A range of the cursor, as a worker would."""
    interval = Interval(*(None if end is None else as_position(end) for end in (lower, upper)))
    assert table.asked is not None
    order = table.asked.order_of(PositionOf(cursor, "timestamp"), interval)
    with closing(Client(table.api, table.network, pause=lambda _: None)) as client:
        pages = list(walked(client, table.collection, table.asked.asked(interval), order))
    return [record.value for page in pages for record in page]
