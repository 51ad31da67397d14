"""What rules, validators and the quarantine cost."""

from __future__ import annotations

import statistics
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow.parquet as pq
from drive import Engine
from measuring import BY_HAND, Bench, Row, lineitem_seconds, ratio
from memory import PeakMemory
from pipelines import ALL_BAD, LINEITEM, RULED, as_toml
from questions import SQL_QUESTIONS, asked_seconds, loaded_by_hand, query_seconds
from reference import copied_again_seconds, copy_seconds, expectations_seconds
from rules import EVERY_ROW, EXPRESSION, IN_ONE_PASS, ONE_IN_A_HUNDRED, SPARKS_EXPRESSION, TWENTY, UNIQUE, Rule


def row_rules(bench: Bench) -> Iterator[Row]:
    """Against the same load without any; 1% of the rows to set aside are told, and not loaded."""
    asked: dict[str, tuple[Sequence[Rule], float | None]] = {
        "lineitem → `truncate` with 20 row rules and 10 validators of the six kinds that one pass answers": (
            TWENTY,
            1.25,
        ),
        "the same, 1% of the rows to quarantine": ([*TWENTY, ONE_IN_A_HUNDRED], 1.4),
        "the same without bad rows, one of the 20 an `expression`": ([*TWENTY[1:], EXPRESSION], 1.25),
        "the same, one of them `unique_within_load` as well": ([*TWENTY[2:], EXPRESSION, UNIQUE], 1.25),
        "the same, but an `expression` that only Spark computes": ([*TWENTY[1:], SPARKS_EXPRESSION], None),
    }
    for title, (rules, at_most) in asked.items():
        yield _beside_none(bench, title, _ruled(rules, IN_ONE_PASS), at_most)


def _beside_none(bench: Bench, title: str, manifest: str, at_most: float | None) -> Row:
    seconds, without = bench.interleaved(
        lambda: lineitem_seconds(bench, manifest), "without", lambda: lineitem_seconds(bench, LINEITEM)
    )
    return ratio(title, seconds, "without", without, at_most)


def great_expectations(bench: Bench) -> Iterator[Row]:
    """It only asks, so it is compared with what asking adds to our load; and with the whole of that, which moves the
    rows as well."""
    theirs = statistics.median(
        bench.seconds("Great Expectations", lambda: expectations_seconds(bench.data, "lineitem", TWENTY))
        for _ in range(bench.repeats)
    )
    ruled, without = bench.interleaved(
        lambda: lineitem_seconds(bench, _ruled(TWENTY, {})), "without rules", lambda: lineitem_seconds(bench, LINEITEM)
    )
    yield ratio("20 row rules over lineitem, what they add to a load", ruled - without, "GX on Spark", theirs, 0.2)
    yield ratio("the whole load with them", ruled, "GX on Spark, which loads nothing", theirs, 1.0)


def validators_in_sql(bench: Bench) -> Iterator[Row]:
    """Of a table that is there, against the query that a careful person would write."""
    for table in ("lineitem", "orders"):
        loaded_by_hand(bench.warehouse, bench.data, table)
    for title, measure, by_hand in SQL_QUESTIONS:
        seconds, reference = bench.interleaved(
            lambda measure=measure: asked_seconds(bench.warehouse.url, measure),
            BY_HAND,
            lambda by_hand=by_hand: query_seconds(bench.warehouse, by_hand),
        )
        yield ratio(f"lineitem: {title}", seconds, BY_HAND, reference, 1.2)


def all_bad(bench: Bench) -> Iterator[Row]:
    """Each row breaks a rule, and is kept in the quarantine table: that costs time, but no memory for each of them.
    By hand: COPY of these very rows, written out before, into a table of the same shape; and of lineitem, where it is
    loaded too."""
    clean = _watched(bench, LINEITEM)
    for on_fail, becomes in (("skip", "set aside"), ("warn", "loaded, and kept in quarantine too")):
        bad = _watched(bench, _ruled([EVERY_ROW | {"on_fail": on_fail}], {}, ALL_BAD), kept=True)
        loaded = copy_seconds(bench.warehouse, bench.data) if on_fail == "warn" else 0
        by_hand = bad.kept_by_hand + loaded
        yield ratio(f"lineitem → `truncate`, every row {becomes}", bad.seconds, BY_HAND, by_hand, 1.5)
        more = (bad.gigabytes - clean.gigabytes) * 1000
        yield Row(
            "the same: peak memory of our processes", f"{bad.gigabytes:.2f} GB", f"without {clean.gigabytes:.2f} GB",
            f"{more:+.0f} MB", "+ 300 MB", more <= 300,
        )  # fmt: skip


def _ruled(rules: Sequence[Rule], validators: Mapping[str, Any], manifest: str = RULED) -> str:
    return manifest.replace("RULES", as_toml(list(rules))).replace("VALIDATORS", as_toml(validators))


_KEPT = ("hakiri", "quarantine_work_lineitem")


@dataclass(frozen=True)
class _Watched:
    seconds: float
    gigabytes: float
    kept_by_hand: float


def _watched(bench: Bench, manifest: str, *, kept: bool = False) -> _Watched:
    """A load on a warm engine. `kept`: all rows must be in the quarantine table afterwards."""
    source = bench.data.parquet("lineitem")
    expected = pq.ParquetFile(source).metadata.num_rows
    with bench.project(manifest) as project:
        project.link(source, "work/lineitem.parquet")
        bench.warehouse.settle()
        with Engine(project.folder, project.env) as engine:
            engine.apply("warm-up")
            with PeakMemory(lambda: (engine.pid,)) as peak:  # the server's buffers are as large as it was told
                applied = engine.apply("work")
        if applied.rows + applied.quarantined != expected:
            raise SystemExit(f"{applied.rows} rows were loaded and {applied.quarantined} set aside of {expected}")
        if kept and (found := bench.warehouse.count(*_KEPT)) != expected:
            raise SystemExit(f"{found} rows are in the quarantine table, {expected} expected")
        by_hand = copied_again_seconds(bench.warehouse, *_KEPT, bench.work_dir) if kept else 0
    watched = _Watched(applied.seconds, peak.bytes / 1e9, by_hand)
    bench.told(f"hakiri: {watched.seconds:.2f} s, {watched.gigabytes:.2f} GB; kept by hand: {by_hand:.2f} s")
    return watched
