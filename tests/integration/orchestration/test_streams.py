"""snapshot-id: streams with a log each, in order within a stream and side by side across them."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import dagster as dg
from typing_extensions import override

from hakiri_dagster.cli.tally import Tally
from hakiri_dagster.manifest.project import load_project
from hakiri_dagster.orchestration.names import asset_key
from hakiri_dagster.orchestration.partitions import partitions_of
from hakiri_dagster.pipeline.runtime import Runtime
from hakiri_dagster.planning.chunks import Slice
from tests.integration.orchestration.conftest import ShopProject
from tests.integration.orchestration.streams import over_streams, registered, streams_of

REPOSITORY = Path(__file__).parents[3]

Log = list[tuple[int, str | None]]


class StreamShop(ShopProject):
    @override
    def runtime(self, tally: Tally | None = None) -> Runtime:
        return Runtime(over_streams(load_project(self.root, env=self.env)), self.settings, tally)

    @property
    def data(self) -> Path:
        return self.root / "streams.json"

    def hold(self, **logs: Log) -> None:
        self.data.write_text(json.dumps(logs))

    def declare(self, **table: Any) -> None:
        self.manifest(
            {
                "id": "wal",
                "source": {"connector": "files", "config": {"path": "data"}},
                "tables": [{"name": "changes", "incremental": "lsn", "load": {"mode": "append"}} | table],
            }
        )

    def changes(self) -> list[tuple[str, int]]:
        return self.rows("SELECT stream, lsn FROM raw.changes ORDER BY stream, lsn")  # type: ignore[return-value]

    def published(self, stream: str) -> list[str]:
        """In the order of their publishes."""
        query = "SELECT chunk_key FROM hakiri.ledger ORDER BY published_at, load_id"
        return [key for (key,) in self.rows(query) if key.startswith(f"{stream}|")]


def stream_shop(shop: ShopProject) -> StreamShop:
    return StreamShop(shop.root, shop.url, shop.instance, shop.env, shop.settings)


def log(*positions: int) -> Log:
    return [(position, f"change {position}") for position in positions]


def test_streams_go_side_by_side_each_in_the_order_of_its_log(shop: ShopProject) -> None:
    wal = stream_shop(shop)
    wal.declare()
    wal.hold(orders=log(1, 5, 12, 25), items=log(3, 14, 22))
    passes: list[list[str]] = []

    def noted(slices: Sequence[Slice]) -> None:
        passes.append([one.chunk.key for one in slices])

    with registered(streams_of(wal.data, ["orders", "items"], reads=noted, slices_a_pass=2)):
        loaded = wal.apply()["changes"]
        assert (loaded["error"], loaded["rows"]) == (None, 7)
        assert wal.changes() == [("items", n) for n in (3, 14, 22)] + [("orders", n) for n in (1, 5, 12, 25)]
        windows = [f"id-{n:010}..{n + 10:010}" for n in (0, 10, 20)]
        assert passes == [[f"orders|{window}", f"items|{window}"] for window in windows]
        assert wal.published("orders") == [f"orders|{window}" for window in windows]
        with wal.runtime() as runtime:
            (table,) = runtime.project.tables
            survey = runtime.survey(table)
            partitions = partitions_of(table, survey.source, survey.stored_plan)
        assert isinstance(partitions, dg.MultiPartitionsDefinition)
        assert shop.instance.get_materialized_partitions(asset_key(table)) == {chunk.key for chunk in survey.chunks}


def test_more_passes_than_streams_are_refused_and_the_default_is_no_more_than_there_are(shop: ShopProject) -> None:
    wal = stream_shop(shop)
    wal.hold(orders=log(1), items=log(2))
    with registered(streams_of(wal.data, ["orders", "items"])):
        wal.declare(backfill={"parallelism": 3})
        with wal.runtime() as runtime:
            (plan,) = runtime.plan(runtime.project.tables).plan.tables
        (refusal,) = plan.refusals
        assert "backfill.parallelism = 3 is more than a cursor of the kind snapshot-id can bear" in refusal
        assert "set backfill.parallelism to 2" in refusal
        wal.apply()
        assert wal.rows("SELECT to_regclass('raw.changes')") == [(None,)], "nothing is loaded"
    with registered(streams_of(wal.data, ["orders"])):
        wal.declare()
        with wal.runtime() as runtime:
            (plan,) = runtime.plan(runtime.project.tables).plan.tables
        assert (plan.refusals, plan.parallelism) == ((), 1)


def test_a_stream_stops_at_its_chunk_that_fails_and_the_others_go_on(shop: ShopProject) -> None:
    wal = stream_shop(shop)
    wal.declare(validate={"row_level": [{"type": "not_null", "field": "what", "on_fail": "abort"}]})
    wal.hold(orders=[(1, "a"), (12, None), (25, "c")], items=log(3, 14, 22))
    with registered(streams_of(wal.data, ["orders", "items"])):
        broken = wal.apply()["changes"]
        assert "not_null" in broken["error"]
        assert wal.changes() == [("items", 3), ("items", 14), ("items", 22), ("orders", 1)]
        wal.hold(orders=[(1, "a"), (12, "b"), (25, "c")], items=log(3, 14, 22))
        assert wal.apply()["changes"]["error"] is None
        assert wal.changes() == [("items", n) for n in (3, 14, 22)] + [("orders", n) for n in (1, 12, 25)]
        assert wal.published("orders") == sorted(wal.published("orders"))


def test_who_is_killed_in_the_middle_has_lost_and_doubled_nothing_and_each_stream_goes_on(shop: ShopProject) -> None:
    wal = stream_shop(shop)
    wal.declare()
    wal.hold(orders=log(1, 5, 12, 25), items=log(3, 14, 22))
    command = [sys.executable, "-m", "tests.integration.orchestration.streams_process", str(wal.root), str(wal.data)]
    with subprocess.Popen(
        [*command, "orders", "items"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=REPOSITORY
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        first = next(line for line in process.stdout if line.startswith("reads"))
        print(file=process.stdin, flush=True)
        second = next(line for line in process.stdout if line.startswith("reads"))
        process.kill()
    assert [len(line.split()) for line in (first, second)] == [3, 3]
    assert wal.changes() == [("items", 3), ("orders", 1), ("orders", 5)], "the first pass is published"

    passes: list[list[str]] = []

    def noted(slices: Sequence[Slice]) -> None:
        passes.append([one.chunk.key for one in slices])

    with registered(streams_of(wal.data, ["orders", "items"], reads=noted)):
        assert wal.apply()["changes"]["error"] is None
    assert wal.changes() == [("items", n) for n in (3, 14, 22)] + [("orders", n) for n in (1, 5, 12, 25)]
    assert not {key for one in passes for key in one} & set(first.split())
