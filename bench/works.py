"""What is measured: each work is a manifest, what is done around it, and how much it may cost."""

from __future__ import annotations

import json
import statistics
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psutil
import pyarrow.parquet as pq
from drive import Applied, Engine, apply_cold, load_location
from memory import PeakMemory
from projects import SCHEMA, Project, fresh_project
from questions import SQL_QUESTIONS, asked_seconds, loaded_by_hand, query_seconds
from readers import Reads, reading
from reference import (
    Warehouse,
    copy_seconds,
    dlt_seconds,
    expectations_seconds,
    keyed_copy_seconds,
    scd2_seconds,
    upsert_seconds,
)
from rules import EVERY_ROW, EXPRESSION, IN_ONE_PASS, ONE_IN_A_HUNDRED, SPARKS_EXPRESSION, TWENTY, UNIQUE, Rule
from tpch import KEYS, Data, small_files

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

    def against_yardstick(self, title: str, ours: Callable[[], float], at_most: float) -> Row:
        seconds, yardstick = self.interleaved(ours, YARDSTICK, lambda: copy_seconds(self.warehouse, self.data))
        return _ratio(title, seconds, YARDSTICK, yardstick, at_most)


LINEITEM = """
[[pipeline]]
id = "work"
source = { connector = "files", config = { path = "work" } }
tables = [{ name = "lineitem", path = "work/*.parquet" }]
load = { mode = "truncate" }
"""
RULED = """
[[pipeline]]
id = "work"
source = { connector = "files", config = { path = "work" } }
tables = [{ name = "lineitem", path = "work/*.parquet" }]
load = { mode = "truncate" }
row_level = RULES
dataset_level = VALIDATORS
"""
ALL_BAD = """
[[pipeline]]
id = "work"
source = { connector = "files", config = { path = "work" } }
tables = [{ name = "lineitem", path = "work/*.parquet" }]
load = { mode = "truncate", fail_on_empty_source = false }
validate = { row_level = RULES, quarantine = { allow_all = true } }
"""
POINT_READS = """
\\set order random(1, ORDERS)
SELECT l_quantity FROM measured.lineitem WHERE l_orderkey = :order AND l_linenumber = 1;
"""
SCANS = """
SELECT l_shipmode, sum(l_extendedprice * (1 - l_discount)), count(DISTINCT l_suppkey) FROM measured.lineitem GROUP BY 1;
"""
MONTHLY = """
[[pipeline]]
id = "work"
source = { connector = "files", config = { path = "work" } }
incremental = "l_shipdate"
tables = [{ name = "lineitem", path = "work/*.parquet" }]
load = { mode = "append" }
backfill = { window = "1mo" }
"""
UPSERT = """
[[pipeline]]
id = "work"
source = { connector = "files", config = { path = "work" } }
tables = [{ name = "TABLE", path = "work/*.parquet", primary_key = KEYS }]
load = { mode = "upsert" }
"""
SCD2 = """
[[pipeline]]
id = "work"
source = { connector = "files", config = { path = "work" } }
tables = [{ name = "TABLE", path = "work/*.parquet", primary_key = KEYS }]
load = { mode = "scd2", close_missing = false }
"""
BLUE_GREEN = """
[[pipeline]]
id = "work"
source = { connector = "files", config = { path = "work" } }
tables = [{ name = "lineitem", path = "work/*.parquet", primary_key = KEYS }]
load = { mode = "blue_green" }
"""
FROM_POSTGRES = """
[[pipeline]]
id = "work"
source = { connector = "postgres", config = { url = "${BENCH_URL}", schema = "origin" } }
tables = ["lineitem"]
load = { mode = "truncate" }
"""
SMALL_CHUNKS = """
[[pipeline]]
id = "work"
source = { connector = "files", config = { path = "work" } }
tables = [{ name = "many", path = "work/*.parquet" }]
load = { mode = "append" }
"""
COLD = """
[[pipeline]]
id = "work"
source = { connector = "files", config = { path = "work" } }
tables = [{ name = "one", path = "work/*.parquet" }]
load = { mode = "truncate" }
"""


def truncate(bench: Bench) -> Iterator[Row]:
    title = f"lineitem, Parquet → `truncate`, SF {bench.scale:g}"
    yield bench.against_yardstick(title, lambda: _lineitem(bench, LINEITEM), 2.2)


def truncate_against_dlt(bench: Bench) -> Iterator[Row]:
    dlt_seconds(bench.warehouse, bench.data, "lineitem")  # its first run installs and compiles it
    seconds, dlt = bench.interleaved(
        lambda: _lineitem(bench, LINEITEM), "dlt", lambda: dlt_seconds(bench.warehouse, bench.data, "lineitem")
    )
    yield _ratio("the same, beside dlt (Parquet, ADBC)", seconds, "dlt", dlt, 1.0)


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
        manifest = _ruled(rules, IN_ONE_PASS)
        seconds, without = bench.interleaved(
            lambda manifest=manifest: _lineitem(bench, manifest), "without", lambda: _lineitem(bench, LINEITEM)
        )
        yield _ratio(title, seconds, "without", without, at_most)


def great_expectations(bench: Bench) -> Iterator[Row]:
    """It only asks, so it is compared with what asking adds to our load; and with the whole of that, which moves the
    rows as well."""
    theirs = statistics.median(
        bench.seconds("Great Expectations", lambda: expectations_seconds(bench.data, "lineitem", TWENTY))
        for _ in range(bench.repeats)
    )
    ruled, without = bench.interleaved(
        lambda: _lineitem(bench, _ruled(TWENTY, {})), "without rules", lambda: _lineitem(bench, LINEITEM)
    )
    yield _ratio("20 row rules over lineitem, what they add to a load", ruled - without, "GX on Spark", theirs, 0.2)
    yield _ratio("the whole load with them", ruled, "GX on Spark, which loads nothing", theirs, 1.0)


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
        yield _ratio(f"lineitem: {title}", seconds, BY_HAND, reference, 1.2)


def _ruled(rules: Sequence[Rule], validators: Mapping[str, Any], manifest: str = RULED) -> str:
    return manifest.replace("RULES", _toml(list(rules))).replace("VALIDATORS", _toml(validators))


def _toml(value: Any) -> str:
    match value:
        case dict():
            return "{ " + ", ".join(f"{key} = {_toml(inner)}" for key, inner in value.items()) + " }"
        case list():
            return f"[{', '.join(map(_toml, value))}]"
        case _:
            return json.dumps(value)


def all_bad(bench: Bench) -> Iterator[Row]:
    """Each row breaks a rule, and is kept in the quarantine table: that costs time, but no memory for each of them."""
    clean = _watched(bench, LINEITEM, kept=False)
    for on_fail, becomes in (("skip", "set aside"), ("warn", "loaded, and kept in quarantine too")):
        bad = _watched(bench, _ruled([EVERY_ROW | {"on_fail": on_fail}], {}, ALL_BAD), kept=True)
        title = f"lineitem → `truncate`, every row {becomes}"
        yield _ratio(title, bad.seconds, "without", clean.seconds, 5)
        more = (bad.gigabytes - clean.gigabytes) * 1000
        yield Row(
            "the same: peak memory of our processes", f"{bad.gigabytes:.2f} GB", f"without {clean.gigabytes:.2f} GB",
            f"{more:+.0f} MB", "+ 300 MB", more <= 300,
        )  # fmt: skip


def append_monthly(bench: Bench) -> Iterator[Row]:
    title = "lineitem → `append` in 84 monthly chunks"
    yield bench.against_yardstick(title, lambda: _lineitem(bench, MONTHLY), 3.5)


def blue_green(bench: Bench) -> Iterator[Row]:
    manifest = BLUE_GREEN.replace("KEYS", _listed(KEYS["lineitem"]))
    seconds, by_hand = bench.interleaved(
        lambda: _lineitem(bench, manifest), BY_HAND, lambda: keyed_copy_seconds(bench.warehouse, bench.data)
    )
    yield _ratio("lineitem with a primary key → `blue_green`", seconds, BY_HAND, by_hand, 1.8)


def blue_green_readers(bench: Bench) -> Iterator[Row]:
    """The first load is nobody's concern; the second one exchanges what all read."""
    manifest = BLUE_GREEN.replace("KEYS", _listed(KEYS["lineitem"]))
    source = bench.data.parquet("lineitem")
    orders = pq.ParquetFile(bench.data.parquet("orders")).metadata.num_rows
    with bench.project(manifest) as project:
        project.link(source, "work/lineitem.parquet")
        with Engine(project.folder, project.env) as engine:
            engine.apply("work")
            reads = _exchanged_under(bench, project, engine, POINT_READS.replace("ORDERS", str(4 * orders)), 20)
            longest = max(reads.waits, default=0)
            yield _limited("`blue_green`: 20 point readers' longest wait for a lock", longest, "ms", 50)
            title = f"the slowest of their {reads.count:,} reads, none of which failed"
            yield _limited(title, reads.slowest_ms, "ms", 200)
            reads = _exchanged_under(bench, project, engine, SCANS, 4)
            title = "`blue_green` under 4 readers that scan all rows: until the exchange got in"
            yield _limited(title, reads.exchange_seconds, "s", 60)
            longest = max(reads.waits, default=0) / 1000
            yield _limited("those readers' longest wait for a lock (the lock timeout)", longest, "s", 5.1)


def _exchanged_under(bench: Bench, project: Project, engine: Engine, statements: str, clients: int) -> Reads:
    """Loads the same rows once more: a new name makes the file a new one."""
    work = project.folder / "work"
    (file,) = work.glob("*.parquet")
    file.rename(work / f"again{file.name}")
    with reading(bench.warehouse, statements, clients) as reads:
        engine.apply("work")
    return reads


def upsert_orders(bench: Bench) -> Iterator[Row]:
    seconds, by_hand = _upsert(bench, "orders", 10)
    yield Row(
        "orders: a tenth changed, `upsert`", _time(seconds), f"{BY_HAND} {_time(by_hand)}",
        f"{seconds - by_hand:+.2f} s", "+ 1.0 s", seconds - by_hand <= 1.0,
    )  # fmt: skip


def upsert_lineitem(bench: Bench) -> Iterator[Row]:
    seconds, by_hand = _upsert(bench, "lineitem", 4)
    yield _ratio("lineitem: a quarter changed, `upsert`", seconds, BY_HAND, by_hand, 1.3)


def upsert_unchanged(bench: Bench) -> Iterator[Row]:
    """Loaded twice over: the relation's pages before and after."""
    manifest = UPSERT.replace("TABLE", "lineitem").replace("KEYS", _listed(KEYS["lineitem"]))
    with bench.project(manifest) as project:
        project.link(bench.data.parquet("lineitem"), "work/1.parquet")
        with Engine(project.folder, project.env) as engine:
            engine.apply("work")
            before = bench.warehouse.size(SCHEMA, "lineitem")
            project.link(bench.data.unchanged("lineitem", 4), "work/2.parquet")
            seconds = engine.apply("work").seconds
            grown = bench.warehouse.size(SCHEMA, "lineitem") - before
    yield Row(
        "lineitem: a quarter loaded again unchanged, `upsert`: the table grows by",
        _time(seconds), "", f"{grown} bytes", "0 bytes", grown == 0,
    )  # fmt: skip


def scd2(bench: Bench) -> Iterator[Row]:
    seconds, by_hand = _merged(
        bench, SCD2, "orders", 10, lambda: scd2_seconds(bench.warehouse, bench.data, "orders", 10)
    )
    yield _ratio("orders: a tenth changed, `scd2`", seconds, BY_HAND, by_hand, 2.0)


def from_postgres(bench: Bench) -> Iterator[Row]:
    bench.warehouse.forget("origin")
    bench.warehouse.create("origin", "lineitem", keyed=False)
    for process in [
        bench.warehouse.psql(f"\\copy origin.lineitem from '{half}' with (format csv)", "ANALYZE origin.lineitem")
        for half in bench.data.halves("lineitem")
    ]:
        if process.wait() != 0:
            raise SystemExit("psql failed; its message is above")
    yield bench.against_yardstick("lineitem PostgreSQL → PostgreSQL, `truncate`", lambda: _from_postgres(bench), 3.5)
    bench.warehouse.forget("origin")


def cold(bench: Bench) -> Iterator[Row]:
    def once() -> float:
        with bench.project(COLD) as project:
            list(small_files(project.folder / "work", 1, 1000))
            return apply_cold(project.folder, project.env).seconds

    seconds = statistics.median(bench.seconds("hakiri apply", once) for _ in range(bench.repeats))
    yield _absolute("`hakiri apply` from cold, two tables of 1,000 rows, whole process", seconds, 12)


def converged(bench: Bench) -> Iterator[Row]:
    with bench.project(COLD) as project:
        list(small_files(project.folder / "work", 1, 1000))
        apply_cold(project.folder, project.env)
        java = _ProcessesNamed("java")
        with java:
            seconds = statistics.median(
                bench.seconds("hakiri apply", lambda: apply_cold(project.folder, project.env).seconds)
                for _ in range(bench.repeats)
            )
    row = _absolute("nothing to do: `apply` on a converged project", seconds, 3)
    yield row
    started = "started" if java.seen else "not started"
    yield Row("the same: Spark", started, "", started, "not started", not java.seen)


def small_chunks(bench: Bench) -> Iterator[Row]:
    count = 200

    def once() -> float:
        with bench.project(SMALL_CHUNKS) as project:
            list(small_files(project.folder / "work", count, 100))
            return _warm(project, count * 100).seconds

    seconds = statistics.median(bench.seconds("hakiri", once) for _ in range(bench.repeats)) / count
    yield _absolute("200 chunks of 100 rows, warm, each", seconds, 0.4)


def many_tables(bench: Bench) -> Iterator[Row]:
    names = "".join(
        f'\n[[pipeline]]\nid = "p{p}"\nsource = {{ connector = "files", config = {{ path = "p{p}" }} }}\ntables = ['
        + ", ".join(f'{{ name = "t{p}_{t}", path = "p{p}/t{t}.parquet" }}' for t in range(10))
        + "]\n"
        for p in range(50)
    )
    with bench.project(names) as project:
        seconds = statistics.median(
            bench.seconds("code location", lambda: load_location(project.folder, project.env))
            for _ in range(bench.repeats)
        )
    yield _absolute("a project of 500 tables: load the code location", seconds, 3)


def memory(bench: Bench) -> Iterator[Row]:
    peaks = {scale: _peak(bench, scale) for scale in (bench.scale, 5 * bench.scale)}
    for scale, peak in peaks.items():
        title = f"peak memory of all processes, lineitem → `truncate`, SF {scale:g}"
        yield Row(title, f"{peak:.2f} GB", "", f"{peak:.2f} GB", "3 GB", peak <= 3)
    small, large = peaks.values()
    apart = abs(large - small) / min(large, small)
    yield Row("the two, apart by", f"{apart:.0%}", "", f"{apart:.0%}", "15%", apart <= 0.15)


WORKS: dict[str, Callable[[Bench], Iterator[Row]]] = {
    "truncate": truncate,
    "dlt": truncate_against_dlt,
    "row-rules": row_rules,
    "great-expectations": great_expectations,
    "validators-in-sql": validators_in_sql,
    "all-bad": all_bad,
    "append": append_monthly,
    "blue-green": blue_green,
    "blue-green-readers": blue_green_readers,
    "upsert-orders": upsert_orders,
    "upsert-lineitem": upsert_lineitem,
    "upsert-unchanged": upsert_unchanged,
    "scd2": scd2,
    "from-postgres": from_postgres,
    "cold": cold,
    "small-chunks": small_chunks,
    "converged": converged,
    "many-tables": many_tables,
    "memory": memory,
}


def _lineitem(bench: Bench, manifest: str) -> float:
    source = bench.data.parquet("lineitem")
    with bench.project(manifest) as project:
        project.link(source, "work/lineitem.parquet")
        return _measured(bench, project)


def _from_postgres(bench: Bench) -> float:
    with bench.project(FROM_POSTGRES) as project:
        return _measured(bench, project)


def _measured(bench: Bench, project: Project) -> float:
    expected = pq.ParquetFile(bench.data.parquet("lineitem")).metadata.num_rows
    applied = _warm(project, expected)
    stored = bench.warehouse.count(SCHEMA, "lineitem") + applied.quarantined
    if stored != expected:
        raise SystemExit(f"{stored} rows are stored or set aside, {expected} expected")
    return applied.seconds


def _warm(project: Project, expected_rows: int) -> Applied:
    with Engine(project.folder, project.env) as engine:
        engine.apply("warm-up")
        applied = engine.apply("work")
    if applied.rows + applied.quarantined != expected_rows:
        raise SystemExit(f"{applied.rows} rows were loaded, {expected_rows} expected")
    return applied


def _upsert(bench: Bench, table: str, one_in: int) -> tuple[float, float]:
    return _merged(bench, UPSERT, table, one_in, lambda: upsert_seconds(bench.warehouse, bench.data, table, one_in))


def _merged(bench: Bench, manifest: str, table: str, one_in: int, by_hand: Callable[[], float]) -> tuple[float, float]:
    """The whole table first, and then, which is measured, its changes."""
    manifest = manifest.replace("TABLE", table).replace("KEYS", _listed(KEYS[table]))
    changes, _ = bench.data.changed(table, one_in)

    def once() -> float:
        with bench.project(manifest) as project:
            project.link(bench.data.parquet(table), "work/1.parquet")
            with Engine(project.folder, project.env) as engine:
                engine.apply("work")
                project.link(changes, "work/2.parquet")
                bench.warehouse.settle()
                return engine.apply("work").seconds

    return bench.interleaved(once, BY_HAND, by_hand)


def _listed(names: Sequence[str]) -> str:
    """As TOML writes a list."""
    return json.dumps(names)


def _peak(bench: Bench, scale: float) -> float:
    source = bench.at_scale(scale).parquet("lineitem")
    with bench.project(LINEITEM) as project:
        project.link(source, "work/lineitem.parquet")
        with (
            Engine(project.folder, project.env) as engine,
            PeakMemory(lambda: (engine.pid, bench.warehouse.postmaster)) as peak,
        ):
            engine.apply("work")
    gigabytes = peak.bytes / 1e9
    bench.told(f"SF {scale:g}: {gigabytes:.2f} GB")
    return gigabytes


@dataclass(frozen=True)
class _Watched:
    seconds: float
    gigabytes: float


def _watched(bench: Bench, manifest: str, *, kept: bool) -> _Watched:
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
        if kept and (found := bench.warehouse.count("hakiri", "quarantine_work_lineitem")) != expected:
            raise SystemExit(f"{found} rows are in the quarantine table, {expected} expected")
    watched = _Watched(applied.seconds, peak.bytes / 1e9)
    bench.told(f"hakiri: {watched.seconds:.2f} s, {watched.gigabytes:.2f} GB")
    return watched


class _ProcessesNamed(PeakMemory):
    """Whether one appeared among our descendants meanwhile."""

    def __init__(self, name: str) -> None:
        super().__init__(lambda: self._look(name))
        self.seen = False

    def _look(self, name: str) -> tuple[int, ...]:
        family = psutil.Process().children(recursive=True)
        self.seen = self.seen or any(name in _name(process) for process in family)
        return ()


def _name(process: psutil.Process) -> str:
    try:
        return process.name()
    except psutil.NoSuchProcess:
        return ""


def _ratio(title: str, seconds: float, compared: str, reference: float, at_most: float | None) -> Row:
    """`at_most` None: it is measured, and nothing is promised."""
    ratio = seconds / reference
    limit, met = ("", None) if at_most is None else (f"{at_most}x", ratio <= at_most)
    return Row(title, _time(seconds), f"{compared} {_time(reference)}", f"{ratio:.2f}x", limit, met)


def _absolute(title: str, seconds: float, at_most: float) -> Row:
    return Row(title, _time(seconds), "", _time(seconds), _time(at_most), seconds <= at_most)


def _limited(title: str, measured: float, unit: str, at_most: float) -> Row:
    return Row(
        title, f"{measured:.1f} {unit}", "", f"{measured:.1f} {unit}", f"{at_most:g} {unit}", measured <= at_most
    )


def _time(seconds: float) -> str:
    return f"{seconds:.2f} s"
