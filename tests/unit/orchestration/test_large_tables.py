"""Tables with so many chunks that their runs take more than a hundred of them."""

from __future__ import annotations

import json
from pathlib import Path

import dagster as dg

from hakiri_dagster.audit.database import open_audit
from hakiri_dagster.definitions import project_definitions
from hakiri_dagster.manifest.project import load_project
from hakiri_dagster.orchestration.names import partitions_name
from hakiri_dagster.orchestration.partitions import dynamic_partitions
from hakiri_dagster.orchestration.requests import chunk_ranges
from hakiri_dagster.planning.chunks import CursorRange, Interval
from hakiri_dagster.planning.states import ChunkState
from hakiri_dagster.settings import Settings

MANIFEST = {
    "id": "shop",
    "source": {"connector": "files", "config": {"path": "data", "format": "csv"}},
    "tables": [{"name": "large", "incremental": "id"}, {"name": "small", "incremental": "id"}],
}


def test_the_ui_takes_a_fiftieth_of_a_large_table_a_run(tmp_path: Path) -> None:
    (tmp_path / "manifests" / "pipelines").mkdir(parents=True)
    (tmp_path / "manifests" / "pipelines" / "shop.json").write_text(json.dumps(MANIFEST))
    with open_audit(None, tmp_path / ".hakiri") as audit:
        for table, count in (("large", 6_000), ("small", 60)):
            states = [ChunkState(f"{n:05}", CursorRange(Interval(n, n + 1))) for n in range(count)]
            audit.chunks.save("shop", table, states)
    definitions = project_definitions(load_project(tmp_path, env={}), Settings())
    graph = definitions.resolve_asset_graph()
    policies = {table: graph.get(dg.AssetKey(["shop", table])).backfill_policy for table in ("large", "small")}
    assert policies == {"large": dg.BackfillPolicy.multi_run(120), "small": dg.BackfillPolicy.multi_run(100)}


def test_apply_does_likewise(tmp_path: Path) -> None:
    (tmp_path / "manifests" / "pipelines").mkdir(parents=True)
    (tmp_path / "manifests" / "pipelines" / "shop.json").write_text(json.dumps(MANIFEST))
    table = load_project(tmp_path, env={}).tables[0]
    partitions, keys = dynamic_partitions(table), [f"{n:05}" for n in range(6_000)]
    with dg.DagsterInstance.ephemeral() as instance:
        instance.add_dynamic_partitions(partitions_name(table), keys)
        ranges = chunk_ranges(table, partitions, keys[100:], instance)
    assert [chunks.count for chunks in ranges] == [120] * 49 + [20]
