"""Rows in are rows published and rows set aside, in every load mode, whatever the rows and the rules.

One apply loads a table of each mode, made up by hypothesis, and a second one meets a gate. `model_of_loads.py` says
what must have become of each row.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from typing import Any

import dagster as dg
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, Phase, assume, given, settings
from hypothesis import strategies as st

from tests.integration.orchestration.conftest import ShopProject
from tests.integration.orchestration.made_up_tables import (
    MODES,
    POISONED,
    as_csv,
    poison_of,
    poisoned,
    scenarios,
    tells_something,
)
from tests.integration.orchestration.model_of_loads import (
    COLUMNS,
    Judged,
    Kept,
    Line,
    Outcome,
    Scenario,
    chunk_of,
    outcome,
    quarantined,
    shown,
    target_of,
)

ARROW = pa.schema(
    [
        ("row", pa.int32()), ("k", pa.int32()), ("n", pa.int32()), ("m", pa.int32()), ("t", pa.string()),
        ("u", pa.string()), ("price", pa.decimal128(6, 2)), ("day", pa.date32()), ("pos", pa.int64()),
    ]
)  # fmt: skip


@dataclass(frozen=True)
class Loaded:
    """A scenario as a table of the shop."""

    scenario: Scenario
    name: str
    shop: ShopProject
    told: dict[str, Any] = field(default_factory=dict)
    """What the newest apply said of the table."""

    def declare(self) -> None:
        told = self.scenario
        load: dict[str, Any] = {"mode": told.mode, "bad_rows": told.bad_rows}
        load["fail_on_empty_source"] = told.fail_on_empty_source
        table: dict[str, Any] = {"name": self.name, "path": f"data/{self.name}/*.{told.format}", "load": load}
        if told.format == "csv":
            table["columns"] = COLUMNS
        if told.keyed:
            table["primary_key"] = ["k"]
        if told.cursor is not None:
            table["incremental"] = told.cursor
            table["backfill"] = {"window": {"day": "1y", "pos": 10}[told.cursor]}
        if told.mode == "incremental_watermark":
            load["watermark_column"] = told.cursor
        quarantine = {"table": f"dlq.{self.name}", "allow_all": told.allow_all}
        table["validate"] = {
            "row_level": list(told.rules), "dataset_level": dict(told.validators), "quarantine": quarantine,
        }  # fmt: skip
        source = {"connector": "files", "config": {"path": "data", "format": told.format}}
        self.shop.manifest({"id": self.pipeline, "source": source, "tables": [table]})
        for name, rows in told.files.items():
            self._write(self.shop.root / "data" / self.name / name, rows)

    @property
    def pipeline(self) -> str:
        return self.name.replace("_", "-")

    def _write(self, path: Path, rows: Sequence[Line]) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        if self.scenario.format == "parquet":
            pq.write_table(pa.Table.from_pylist([dict(line.values) for line in rows], schema=ARROW), path)
            return
        records = (
            as_csv([line.values[c] for c in COLUMNS]) if line.broken is None else f"{line.broken}\n" for line in rows
        )
        path.write_text(f"{','.join(COLUMNS)}\n{''.join(records)}", newline="")

    def target(self) -> list[dict[str, Any]]:
        rows = self._selected(f"SELECT {', '.join(COLUMNS)} FROM raw.{self.name}")
        return [dict(zip(COLUMNS, row, strict=True)) for row in rows]

    def versions(self) -> list[tuple[Any, ...]]:
        """Of every row, of whatever column, and who wrote it."""
        return self._selected(f"SELECT xmin::text, ctid::text, o::text FROM raw.{self.name} o ORDER BY 2")

    def quarantine(self) -> Counter[Kept]:
        rows = self._selected(f'SELECT "ruleId", "onFail", "row", "sourceFile" FROM dlq.{self.name}')
        return Counter(Kept(rule, on_fail, _kept_row(row), Path(file).name) for rule, on_fail, row, file in rows)

    def differs(self, **found_and_expected: tuple[Any, Any]) -> Iterator[str]:
        for what, (found, expected) in found_and_expected.items():
            if found != expected:
                if isinstance(found, Counter):
                    found, expected = found - expected, expected - found
                yield f"{what} of {self.name}\nfound:    {found}\nexpected: {expected}\n{self.told}\n{self.scenario}"

    def _selected(self, query: str) -> list[tuple[Any, ...]]:
        schema = query.split(" FROM ")[1].split()[0]
        return self.shop.rows(query) if self.shop.rows(f"SELECT to_regclass('{schema}')") != [(None,)] else []

    def evaluations(self) -> dict[str, Counter[tuple[int, int]]]:
        """Of each rule's check, how many of how many rows broke it; of each chunk."""
        found: dict[str, Counter[tuple[int, int]]] = {rule["id"]: Counter() for rule in self.scenario.rules}
        for one in self._last_evaluations():
            if one.check_name in found and not one.passed:
                found[one.check_name].update(_numbers(one))
        return found

    def _last_evaluations(self) -> Iterable[dg.AssetCheckEvaluation]:
        """Of each check and partition; the others sum a run up."""
        asset = dg.AssetKey([self.pipeline, self.name])
        told = [one for one in _evaluations(self.shop.instance, asset) if self.scenario.whole or one.partition]
        return {(one.check_name, one.partition): one for one in told}.values()


def _kept_row(row: dict[str, Any]) -> str:
    return f"line {row['line']}" if set(row) == {"line"} else f"row {sorted(row.items())}"


def _evaluations(instance: dg.DagsterInstance, asset: dg.AssetKey) -> Iterator[dg.AssetCheckEvaluation]:
    for run in instance.get_runs():
        for entry in instance.all_logs(run.run_id, of_type=dg.DagsterEventType.ASSET_CHECK_EVALUATION):
            evaluation = entry.get_dagster_event().asset_check_evaluation_data
            if evaluation.asset_key == asset:
                yield evaluation


def _numbers(evaluation: dg.AssetCheckEvaluation) -> Iterator[tuple[int, int]]:
    """Of the partition's own chunk, and of those that were told with it."""
    for name, value in evaluation.metadata.items():
        if name.endswith("violations") and value.value:
            yield value.value, evaluation.metadata[f"{name.removesuffix('violations')}rows"].value


def broken_by_rule(scenario: Scenario, *judged: Judged) -> dict[str, Counter[tuple[int, int]]]:
    return {
        rule["id"]: Counter((one.broken[rule["id"]], one.read) for one in judged if one.broken[rule["id"]])
        for rule in scenario.rules
    }


tables = count(1)


@settings(
    max_examples=3,
    derandomize=True,
    database=None,
    deadline=None,
    phases=(Phase.generate,),  # a failing example is told at once: to make it smaller would take minutes
    suppress_health_check=list(HealthCheck),
)
@given(st.tuples(*map(scenarios, MODES)))
def test_rows_in_are_rows_published_and_rows_set_aside(shop: ShopProject, made_up: tuple[Scenario, ...]) -> None:
    assume(sum(map(tells_something, made_up)) > len(MODES) / 2)
    loaded = [Loaded(scenario, f"{scenario.mode}_{next(tables)}", shop) for scenario in made_up]
    apply(shop, loaded)
    all_agree(difference for one in loaded for difference in differences(one, outcome(one.scenario)))
    before = {one.name: one.versions() for one in loaded}
    stopped = [Loaded(poisoned(one.scenario), one.name, shop) for one in loaded]
    apply(shop, stopped)
    all_agree(difference for one in stopped for difference in changes(one, before[one.name]))


def all_agree(differences: Iterator[str]) -> None:
    found = "\n\n".join(differences)
    if found:
        pytest.fail(found, pytrace=False)


def apply(shop: ShopProject, loaded: Sequence[Loaded]) -> None:
    for one in loaded:
        one.declare()
    told = shop.apply(*(one.pipeline for one in loaded))
    for one in loaded:
        one.told.update(told[one.name])


def differences(one: Loaded, expected: Outcome) -> Iterator[str]:
    told, published, failed = one.told, expected.published.values(), expected.failed.values()
    found = one.target()
    rows = target_of(one.scenario, expected.published, {row["row"] for row in found})
    yield from one.differs(
        failed=(told["chunks"]["failed"], len(failed)),
        error=(told["error"] is not None, bool(failed)),
        rows=(told["rows"], sum(len(judged.rows) for judged in published)),
        quarantined=(told["quarantined"], sum(len(judged.aside) for judged in published)),
        target=(Counter(map(shown, found)), Counter(map(shown, rows))),
        quarantine=(one.quarantine(), Counter(quarantined(*published, *failed))),
        checks=(one.evaluations(), broken_by_rule(one.scenario, *published, *failed)),
    )


def changes(one: Loaded, before: list[tuple[Any, ...]]) -> Iterator[str]:
    """Though a gate has stopped the load, whose rows are kept."""
    first, now = outcome(one.scenario.without_file(poison_of(one.scenario))), outcome(one.scenario)
    chunk = chunk_of(one.scenario, poison_of(one.scenario), POISONED)
    tried = first.tried if chunk in now.waiting else {**first.tried, chunk: now.failed[chunk]}
    yield from one.differs(
        versions=(one.versions(), before),
        error=(one.told["error"] is not None, True),
        quarantine=(one.quarantine(), Counter(quarantined(*tried.values()))),
    )
