"""Measures the works of `works.py` and writes `RESULTS.md`. Everything it starts it stops.

python bench/run.py                        all works
python bench/run.py --only truncate cold   some of them
python bench/run.py --list                 their names
"""

from __future__ import annotations

import argparse
import os
import platform
import shutil
import sys
import time
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path

import psutil
from measuring import Bench, Row
from works import WORKS

from hakiri_dagster.engine.embedded_postgres import hold

BENCH = Path(__file__).resolve().parent
DATA = BENCH / "data"
RESULTS = BENCH / "RESULTS.md"


def main(arguments: Sequence[str]) -> int:
    options = _options(arguments)
    if options.list:
        print("\n".join(WORKS))
        return 0
    rows: list[Row] = []
    DATA.mkdir(exist_ok=True)
    with hold(DATA / "postgres") as server:
        bench = Bench(server, DATA, options.scale, options.repeats, _tell)
        for name in options.only or WORKS:
            _tell(f"— {name}")
            rows += WORKS[name](bench)
    text = "\n".join(_document(rows, options))
    print(text)
    if not options.only:
        RESULTS.write_text(text + "\n")
    shutil.rmtree(DATA / "postgres", ignore_errors=True)
    return 0 if all(row.met is not False for row in rows) else 1


def _options(arguments: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Measured ratios, in one run.")
    parser.add_argument("--only", nargs="+", choices=list(WORKS), metavar="WORK", help="names from --list")
    parser.add_argument("--repeats", type=int, default=3, help="how often each work is measured; medians are told")
    parser.add_argument("--scale", type=float, default=1, help="TPC-H scale factor; below 1 to try a work")
    parser.add_argument("--list", action="store_true", help="the names of the works")
    return parser.parse_args(arguments)


def _tell(text: str) -> None:
    print(f"{time.strftime('%H:%M:%S')} {text}", file=sys.stderr, flush=True)


def _document(rows: Sequence[Row], options: argparse.Namespace) -> Iterator[str]:
    memory = psutil.virtual_memory().total / 2**30
    yield "# Benchmark results"
    yield ""
    machine = f"{os.cpu_count()} cores ({_processor()}), {memory:.0f} GB, {platform.system()}"
    yield f"{datetime.now(UTC):%Y-%m-%d} · {machine}"
    yield f"Python {platform.python_version()} · TPC-H SF {options.scale:g} · medians of {options.repeats}"
    yield ""
    yield "Reference times are measured before, between and after ours, in the same run, on the same server."
    yield "`psql \\copy` is lineitem as CSV, two files in parallel into one table."
    yield ""
    yield "| work | hakiri | reference | result | at most | met |"
    yield "|---|---|---|---|---|---|"
    for row in rows:
        met = {True: "yes", False: "**no**", None: ""}[row.met]
        yield f"| {row.work} | {row.ours} | {row.compared} | {row.result} | {row.limit} | {met} |"


def _processor() -> str:
    for line in Path("/proc/cpuinfo").read_text().splitlines() if Path("/proc/cpuinfo").exists() else ():
        if line.startswith("model name"):
            return line.partition(":")[2].strip()
    return platform.machine()


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
