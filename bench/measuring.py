"""How a work is measured, and what a row of the results says."""

from __future__ import annotations

import statistics
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from pathlib import Path

import pyarrow.parquet as pq
from drive import Applied, Engine
from projects import SCHEMA, Project, fresh_project
from reference import Warehouse, copy_seconds
from tpch import Data

from hakiri_dagster.engine.embedded_postgres import Server

YARDSTICK = "psql \\copy"
BY_HAND = "by hand"


@dataclass(frozen=True)
class Row:
    """`met` is None where nothing was promised."""

    work: str
    ours: str
    compared: str
    result: str
    limit: str
    met: bool | None


@dataclass
class Bench:
    """`told` hears of each measurement as it is made."""

    server: Server
    work_dir: Path
    scale: float
    repeats: int
    told: Callable[[str], None]
    warehouse: Warehouse = field(init=False)
    dagster_url: str = field(init=False)

    def __post_init__(self) -> None:
        self.warehouse = Warehouse(self.server)
        self.server.ensure_database("bench_dagster")
        self.dagster_url = self.server.url("bench_dagster")

    @property
    def data(self) -> Data:
        return self.at_scale(self.scale)

    def at_scale(self, scale: float) -> Data:
        return Data(self.work_dir, scale)

    def project(self, manifest: str) -> AbstractContextManager[Project]:
        return fresh_project(self.work_dir, self.warehouse, self.dagster_url, manifest)

    def seconds(self, what: str, measure: Callable[[], float]) -> float:
        self.warehouse.settle()
        seconds = measure()
        self.told(f"{what}: {seconds:.2f} s")
        return seconds

    def interleaved(
        self, ours: Callable[[], float], compared: str, reference: Callable[[], float]
    ) -> tuple[float, float]:
        """The reference is measured before, between and after, for machines change their pace. Medians."""
        references = [self.seconds(compared, reference)]
        measured = []
        for _ in range(self.repeats):
            measured.append(self.seconds("hakiri", ours))
            references.append(self.seconds(compared, reference))
        return statistics.median(measured), statistics.median(references)

    def against_yardstick(self, title: str, ours: Callable[[], float], at_most: float | None) -> Row:
        seconds, yardstick = self.interleaved(ours, YARDSTICK, lambda: copy_seconds(self.warehouse, self.data))
        return ratio(title, seconds, YARDSTICK, yardstick, at_most)


def lineitem_seconds(bench: Bench, manifest: str) -> float:
    source = bench.data.parquet("lineitem")
    with bench.project(manifest) as project:
        project.link(source, "work/lineitem.parquet")
        return loaded_seconds(bench, project)


def loaded_seconds(bench: Bench, project: Project) -> float:
    expected = pq.ParquetFile(bench.data.parquet("lineitem")).metadata.num_rows
    applied = applied_warm(project, expected)
    stored = bench.warehouse.count(SCHEMA, "lineitem") + applied.quarantined
    if stored != expected:
        raise SystemExit(f"{stored} rows are stored or set aside, {expected} expected")
    return applied.seconds


def applied_warm(project: Project, expected_rows: int) -> Applied:
    with Engine(project.folder, project.env) as engine:
        engine.apply("warm-up")
        applied = engine.apply("work")
    if applied.rows + applied.quarantined != expected_rows:
        raise SystemExit(f"{applied.rows} rows were loaded, {expected_rows} expected")
    return applied


def ratio(title: str, seconds: float, compared: str, reference: float, at_most: float | None) -> Row:
    """`at_most` None: it is measured, and nothing is promised."""
    ratio = seconds / reference
    limit, met = ("", None) if at_most is None else (f"{at_most}x", ratio <= at_most)
    return Row(title, told_seconds(seconds), f"{compared} {told_seconds(reference)}", f"{ratio:.2f}x", limit, met)


def absolute(title: str, seconds: float, at_most: float) -> Row:
    return Row(title, told_seconds(seconds), "", told_seconds(seconds), told_seconds(at_most), seconds <= at_most)


def limited(title: str, measured: float, unit: str, at_most: float) -> Row:
    return Row(
        title, f"{measured:.1f} {unit}", "", f"{measured:.1f} {unit}", f"{at_most:g} {unit}", measured <= at_most
    )


def at_least(title: str, measured: float, unit: str, limit: float | None) -> Row:
    """None: it is measured, and nothing is promised."""
    told, met = ("", None) if limit is None else (f"≥ {limit:g} {unit}", measured >= limit)
    return Row(title, f"{measured:.0f} {unit}", "", f"{measured:.0f} {unit}", told, met)


def told_seconds(seconds: float) -> str:
    return f"{seconds:.2f} s"
