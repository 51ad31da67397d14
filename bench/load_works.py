"""What loads cost, mode by mode."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import LiteralString

import pyarrow.parquet as pq
from drive import Engine, read_json_seconds
from measuring import BY_HAND, Bench, Row, limited, lineitem_seconds, loaded_seconds, ratio, told_seconds
from pipelines import (
    BLUE_GREEN,
    FROM_POSTGRES,
    FROM_POSTGRES_IN_WINDOWS,
    JSON_LINES,
    LINEITEM,
    MONTHLY,
    POINT_READS,
    SCANS,
    SCD2,
    UPSERT,
    as_toml,
)
from projects import SCHEMA, Project
from psycopg import sql
from readers import Reads, reading
from reference import dlt_seconds, keyed_copy_seconds, scd2_seconds, upsert_seconds
from tpch import KEYS


def truncate(bench: Bench) -> Iterator[Row]:
    title = f"lineitem, Parquet → `truncate`, SF {bench.scale:g}"
    yield bench.against_yardstick(title, lambda: lineitem_seconds(bench, LINEITEM), 2.2)


def truncate_against_dlt(bench: Bench) -> Iterator[Row]:
    dlt_seconds(bench.warehouse, bench.data, "lineitem")  # its first run installs and compiles it
    seconds, dlt = bench.interleaved(
        lambda: lineitem_seconds(bench, LINEITEM), "dlt", lambda: dlt_seconds(bench.warehouse, bench.data, "lineitem")
    )
    yield ratio("the same, beside dlt (Parquet, ADBC)", seconds, "dlt", dlt, 1.0)


def json_lines(bench: Bench) -> Iterator[Row]:
    """Once as a load, and once without one: types and rows, as far as Spark's Python workers."""
    source = bench.data.json_lines("lineitem")
    title = f"lineitem, JSON lines → `truncate`, SF {bench.scale:g}"
    yield bench.against_yardstick(title, lambda: _json_lines_seconds(bench, source), None)
    seconds, spark = bench.interleaved(
        lambda: read_json_seconds("hakiri", source), "Spark's reader", lambda: read_json_seconds("spark", source)
    )
    yield ratio("the same lines, types inferred and rows read only", seconds, "Spark's reader", spark, 2.5)


def _json_lines_seconds(bench: Bench, source: Path) -> float:
    with bench.project(JSON_LINES) as project:
        project.link(source, "work/lineitem.jsonl")
        return loaded_seconds(bench, project)


def append_monthly(bench: Bench) -> Iterator[Row]:
    title = "lineitem → `append` in 84 monthly chunks"
    yield bench.against_yardstick(title, lambda: lineitem_seconds(bench, MONTHLY), 3.5)


def blue_green(bench: Bench) -> Iterator[Row]:
    manifest = BLUE_GREEN.replace("KEYS", as_toml(KEYS["lineitem"]))
    seconds, by_hand = bench.interleaved(
        lambda: lineitem_seconds(bench, manifest), BY_HAND, lambda: keyed_copy_seconds(bench.warehouse, bench.data)
    )
    yield ratio("lineitem with a primary key → `blue_green`", seconds, BY_HAND, by_hand, 1.8)


def blue_green_readers(bench: Bench) -> Iterator[Row]:
    """The first load is nobody's concern; the second one exchanges what all read."""
    manifest = BLUE_GREEN.replace("KEYS", as_toml(KEYS["lineitem"]))
    source = bench.data.parquet("lineitem")
    orders = pq.ParquetFile(bench.data.parquet("orders")).metadata.num_rows
    with bench.project(manifest) as project:
        project.link(source, "work/lineitem.parquet")
        with Engine(project.folder, project.env) as engine:
            engine.apply("work")
            reads = _exchanged_under(bench, project, engine, POINT_READS.replace("ORDERS", str(4 * orders)), 20)
            longest = max(reads.waits, default=0)
            yield limited("`blue_green`: 20 point readers' longest wait for a lock", longest, "ms", 50)
            title = f"the slowest of their {reads.count:,} reads, none of which failed"
            yield limited(title, reads.slowest_ms, "ms", 200)
            reads = _exchanged_under(bench, project, engine, SCANS, 4)
            title = "`blue_green` under 4 readers that scan all rows: until the exchange got in"
            yield limited(title, reads.exchange_seconds, "s", 60)
            longest = max(reads.waits, default=0) / 1000
            yield limited("those readers' longest wait for a lock (the lock timeout)", longest, "s", 5.1)


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
        "orders: a tenth changed, `upsert`", told_seconds(seconds), f"{BY_HAND} {told_seconds(by_hand)}",
        f"{seconds - by_hand:+.2f} s", "+ 1.0 s", seconds - by_hand <= 1.0,
    )  # fmt: skip


def upsert_lineitem(bench: Bench) -> Iterator[Row]:
    seconds, by_hand = _upsert(bench, "lineitem", 4)
    yield ratio("lineitem: a quarter changed, `upsert`", seconds, BY_HAND, by_hand, 1.3)


def upsert_unchanged(bench: Bench) -> Iterator[Row]:
    """Loaded twice over: the relation's pages before and after."""
    manifest = UPSERT.replace("TABLE", "lineitem").replace("KEYS", as_toml(KEYS["lineitem"]))
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
        told_seconds(seconds), "", f"{grown} bytes", "0 bytes", grown == 0,
    )  # fmt: skip


def scd2(bench: Bench) -> Iterator[Row]:
    seconds, by_hand = _merged(
        bench, SCD2, "orders", 10, lambda: scd2_seconds(bench.warehouse, bench.data, "orders", 10)
    )
    yield ratio("orders: a tenth changed, `scd2`", seconds, BY_HAND, by_hand, 2.0)


def from_postgres(bench: Bench) -> Iterator[Row]:
    with postgres_origin(bench):
        title = "lineitem PostgreSQL → PostgreSQL, `truncate`"
        yield bench.against_yardstick(title, lambda: _from_postgres(bench, FROM_POSTGRES), 3.5)


def from_postgres_monthly(bench: Bench) -> Iterator[Row]:
    """The same rows, cut in windows by a cursor that has an index, beside all of them in one."""
    monthly, at_once = (FROM_POSTGRES_IN_WINDOWS.replace("WINDOW", window) for window in ("1mo", "20000d"))
    with postgres_origin(bench, "CREATE INDEX ON origin.lineitem (l_shipdate)"):
        seconds, one = bench.interleaved(
            lambda: _from_postgres(bench, monthly), "one chunk", lambda: _from_postgres(bench, at_once)
        )
    yield ratio("lineitem PostgreSQL → PostgreSQL, `append` in 84 monthly chunks", seconds, "one chunk", one, 2.0)


@contextmanager
def postgres_origin(bench: Bench, *statements: LiteralString) -> Iterator[None]:
    bench.warehouse.forget("origin")
    bench.warehouse.create("origin", "lineitem", keyed=False)
    for process in [
        bench.warehouse.psql(f"\\copy origin.lineitem from '{half}' with (format csv)")
        for half in bench.data.halves("lineitem")
    ]:
        if process.wait() != 0:
            raise SystemExit("psql failed; its message is above")
    for statement in (*statements, "ANALYZE origin.lineitem"):
        bench.warehouse.run(sql.SQL(statement))
    yield
    bench.warehouse.forget("origin")


def _from_postgres(bench: Bench, manifest: str) -> float:
    with bench.project(manifest) as project:
        return loaded_seconds(bench, project)


def _upsert(bench: Bench, table: str, one_in: int) -> tuple[float, float]:
    return _merged(bench, UPSERT, table, one_in, lambda: upsert_seconds(bench.warehouse, bench.data, table, one_in))


def _merged(bench: Bench, manifest: str, table: str, one_in: int, by_hand: Callable[[], float]) -> tuple[float, float]:
    """The whole table first, and then, which is measured, its changes."""
    manifest = manifest.replace("TABLE", table).replace("KEYS", as_toml(KEYS[table]))
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
