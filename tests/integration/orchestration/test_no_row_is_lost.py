"""Rows in are rows published and rows set aside, in every load mode, whatever the rows and the rules.

One apply loads a table of each mode, made up by hypothesis, and a second one meets a gate. `model_of_loads.py` says
what must have become of each row.
"""

from __future__ import annotations

import csv
import io
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import date
from decimal import Decimal
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
from tests.integration.orchestration.model_of_loads import (
    COLUMNS,
    FAR_AWAY,
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
from tests.integration.orchestration.model_of_rules import EXPRESSIONS, OPERATORS

MODES = ("append", "truncate", "upsert", "delete_missing", "blue_green", "incremental_watermark", "scd2")
CURSORS: dict[str, list[str | None]] = {
    "append": ["day", "pos", None], "upsert": ["day", "pos", None], "delete_missing": ["pos", None],
    "truncate": [None], "blue_green": [None], "incremental_watermark": ["day", "pos"], "scd2": ["day", None],
}  # fmt: skip
ARROW = pa.schema(
    [
        ("row", pa.int32()), ("k", pa.int32()), ("n", pa.int32()), ("m", pa.int32()), ("t", pa.string()),
        ("u", pa.string()), ("price", pa.decimal128(6, 2)), ("day", pa.date32()), ("pos", pa.int64()),
    ]
)  # fmt: skip
TEXTS = ["a", "b", "abc", "B", "ä", " 7", "12", "1.5", "true", "2024-02-03", "2024-02-31", "x,y", 'say "hi"',
         "two\nlines", "[1]", "6f9619ff-8b86-d011-b42d-00c04fc964ff", "nul\0byte"]  # fmt: skip
DAYS = [date(2021, 1, 5), date(2021, 12, 31), date(2022, 1, 1), date(2022, 3, 9), FAR_AWAY]
UNREADABLE = {"n": "x", "price": "1.255", "day": "2024-13-45", "pos": "99999999999999999999"}

GATE = {"id": "gate", "type": "range", "field": "m", "max": 50, "on_fail": "abort"}
POISONED = Line(
    {
        "row": 901,
        "k": 1,
        "n": 1,
        "m": 99,
        "t": "a",
        "u": "b",
        "price": Decimal("1.50"),
        "day": date(2023, 4, 2),
        "pos": 45,
    }
)
"""It comes after all windows of a first load, in which no row breaks GATE."""


def or_nothing(values: Sequence[Any]) -> st.SearchStrategy[Any]:
    return st.sampled_from([*values, *values, None])


VALUES = st.fixed_dictionaries(
    {
        "k": or_nothing([1, 1, 2, 3, 4]),
        "n": or_nothing([0, 1, 2, 3, -1]),
        "m": or_nothing([0, 1, 2]),
        "t": or_nothing(TEXTS),
        "u": or_nothing(["a", "b", "ab"]),
        "price": or_nothing([Decimal("0.10"), Decimal("1.50"), Decimal("-2.00")]),
        "day": or_nothing(DAYS),
        "pos": or_nothing([1, 2, 9, 10, 31]),
    }
)


def _said(type_: str, **more: Any) -> st.SearchStrategy[dict[str, Any]]:
    return st.fixed_dictionaries(
        {"type": st.just(type_), **{k: v if isinstance(v, st.SearchStrategy) else st.just(v) for k, v in more.items()}}
    )


SAYINGS = st.one_of(
    _said("expression", expression=st.sampled_from(list(EXPRESSIONS))),
    _said("compare", field="n", op=st.sampled_from(list(OPERATORS)), other=st.sampled_from(["m", "price"])),
    _said("compare", field="t", op=st.sampled_from(list(OPERATORS)), other="u"),
    _said("field_type", field="t", expected=st.sampled_from(["integer", "float", "boolean", "date", "json", "uuid"])),
    _said("one_of", field="t", values=st.lists(st.sampled_from(TEXTS[:-1]), min_size=10, unique=True)),
    _said("one_of", field="n", values=st.lists(st.sampled_from([0, 1, 2, 3, -1]), min_size=3, unique=True)),
    _said("max_length", field="t", max=st.integers(2, 5)),
    _said("min_length", field="t", min=st.integers(0, 2)),
    _said("range", field="n", min=st.integers(-1, 1), max=st.integers(2, 3)),
    _said("range", field="price", min=st.sampled_from([-2, 0.1]), max=st.sampled_from([1.49, 1.5])),
    _said("range", field="day", min=st.sampled_from(["2021-01-06", "2022-01-01"])),
    _said("regex", field="t", pattern=st.sampled_from(["^[^a]", "[^c]$", "^[^,]*$", "."])),
    _said("not_null", field=st.sampled_from(["n", "t", "day", "k"])),
)
FATES = st.sampled_from(
    [
        *[{"on_fail": "warn"}] * 4, *[{"on_fail": "skip"}] * 4, {"on_fail": "skip", "max_failed_ratio": 0.5},
        {"on_fail": "skip", "max_failed_rows": 2}, {"on_fail": "abort"},
    ]
)  # fmt: skip
VALIDATORS = st.fixed_dictionaries(
    {},
    optional={
        "row_count": st.builds(lambda most, how: {"max": most, "on_fail": how}, st.integers(1, 8), st.sampled_from(
            ["warn", "abort"])),
        "null_ratio": st.builds(lambda most, how: {"column": "n", "max": most, "on_fail": how}, st.sampled_from(
            [0.25, 0.5]), st.sampled_from(["warn", "abort"])),
        "row_count_matches_source": st.just({"on_fail": "abort"}),
    },
)  # fmt: skip


@st.composite
def lines(draw: st.DrawFn, numbers: Iterator[int], *, of_text: bool) -> tuple[Line, ...]:
    return tuple(draw(line(next(numbers), of_text=of_text)) for _ in range(draw(st.integers(1, 8))))


@st.composite
def line(draw: st.DrawFn, number: int, *, of_text: bool) -> Line:
    drawn = {"row": number, **draw(VALUES)}
    values = {column: drawn[column] for column in COLUMNS}
    if not of_text:
        return Line({**values, "t": draw(st.sampled_from([values["t"], ""]))})
    flaw = draw(st.sampled_from([*([None] * 12), "too long", *UNREADABLE]))
    if flaw is None:
        return Line(values)
    plain = {**values, "t": None} | ({} if flaw == "too long" else {flaw: UNREADABLE[flaw]})
    return Line({}, as_csv([*plain.values(), *(["more"] if flaw == "too long" else [])]).removesuffix("\n"))


@st.composite
def scenarios(draw: st.DrawFn, mode: str) -> Scenario:
    format_ = draw(st.sampled_from(["csv", "csv", "parquet"]))
    numbers = count(1)
    sayings = draw(st.lists(st.tuples(SAYINGS, FATES), min_size=2, max_size=5))
    names = [f"{name}.{format_}" for name in ("a", "b", "c")[: draw(st.integers(1, 3))]]
    return Scenario(
        mode=mode,
        format=format_,
        cursor=draw(st.sampled_from(CURSORS[mode])),
        rules=(*({"id": f"r{i}", **said, **fate} for i, (said, fate) in enumerate(sayings)), GATE),
        files={name: draw(lines(numbers, of_text=format_ == "csv")) for name in names},
        bad_rows=draw(st.sampled_from([*["quarantine"] * 7, "abort"])),
        allow_all=draw(st.booleans()),
        fail_on_empty_source=draw(st.booleans()),
        validators=draw(VALIDATORS),
    )


def tells_something(scenario: Scenario) -> bool:
    found = outcome(scenario)
    return any(judged.rows and judged.aside for judged in found.published.values())


def poisoned(scenario: Scenario) -> Scenario:
    """With one more file, whose rows are of one chunk, one of which no gate lets pass."""
    another = Line({**POISONED.values, "row": 902, "m": 1, "t": "abc"})
    return scenario.with_file(poison_of(scenario), (POISONED, another))


def poison_of(scenario: Scenario) -> str:
    return f"z.{scenario.format}"


def as_csv(cells: Sequence[Any]) -> str:
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerow(cells)
    return text.getvalue()


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
        for one in _evaluations(self.shop.instance, dg.AssetKey([self.pipeline, self.name])):
            whole = self.scenario.whole or one.partition is not None  # the others sum a run up
            if one.check_name in found and whole and not one.passed:
                numbers = (one.metadata[name].value for name in ("violations", "rows"))
                found[one.check_name][tuple(numbers)] += 1
        return found


def _kept_row(row: dict[str, Any]) -> str:
    return f"line {row['line']}" if set(row) == {"line"} else f"row {sorted(row.items())}"


def _evaluations(instance: dg.DagsterInstance, asset: dg.AssetKey) -> Iterator[dg.AssetCheckEvaluation]:
    for run in instance.get_runs():
        for entry in instance.all_logs(run.run_id, of_type=dg.DagsterEventType.ASSET_CHECK_EVALUATION):
            evaluation = entry.get_dagster_event().asset_check_evaluation_data
            if evaluation.asset_key == asset:
                yield evaluation


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
