"""TPC-H data: Parquet to load from, header-less CSV for the yardstick, and changed rows for the upserts."""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
import pyarrow.parquet as pq

TABLES = ("lineitem", "orders")
_ROW_GROUP = 250_000
_NEW_KEYS = 1_000_000_000  # beyond every key that the generator makes

LINEITEM = """
    l_orderkey bigint NOT NULL, l_partkey bigint NOT NULL, l_suppkey bigint NOT NULL, l_linenumber integer NOT NULL,
    l_quantity numeric(15,2) NOT NULL, l_extendedprice numeric(15,2) NOT NULL, l_discount numeric(15,2) NOT NULL,
    l_tax numeric(15,2) NOT NULL, l_returnflag text NOT NULL, l_linestatus text NOT NULL, l_shipdate date NOT NULL,
    l_commitdate date NOT NULL, l_receiptdate date NOT NULL, l_shipinstruct text NOT NULL, l_shipmode text NOT NULL,
    l_comment text NOT NULL
"""
ORDERS = """
    o_orderkey bigint NOT NULL, o_custkey bigint NOT NULL, o_orderstatus text NOT NULL,
    o_totalprice numeric(15,2) NOT NULL, o_orderdate date NOT NULL, o_orderpriority text NOT NULL,
    o_clerk text NOT NULL, o_shippriority integer NOT NULL, o_comment text NOT NULL
"""
COLUMNS = {"lineitem": LINEITEM, "orders": ORDERS}
KEYS = {"lineitem": ("l_orderkey", "l_linenumber"), "orders": ("o_orderkey",)}


class Data:
    """Files of one scale factor, made when they are first asked for."""

    def __init__(self, folder: Path, scale: float) -> None:
        self.scale = scale
        self.folder = folder / f"sf{scale:g}"

    def parquet(self, table: str) -> Path:
        return self._made(self.folder / f"{table}.parquet", lambda path: self._plain(table, path))

    def halves(self, table: str) -> list[Path]:
        """The same rows as CSV without a header, in two files."""
        return [
            self._made(self.folder / f"{table}.{half}.csv", lambda path, half=half: self._half(table, half, path))
            for half in (1, 2)
        ]

    def json_lines(self, table: str) -> Path:
        """The same rows, an object a line. Decimals keep their places, dates are texts."""
        rows = self.parquet(table)
        return self._made(self.folder / f"{table}.jsonl", lambda path: _as_json_lines(rows, path))

    def changed(self, table: str, one_in: int) -> tuple[Path, Path]:
        """Every n-th row with another comment, and a tenth as many new ones; Parquet and CSV."""
        stem = f"{table}-changed-{one_in}"
        parquet = self._made(
            self.folder / f"{stem}.parquet",
            lambda path: pq.write_table(_changed(pq.read_table(self.parquet(table)), table, one_in), path),
        )
        csv = self._made(self.folder / f"{stem}.csv", lambda path: _as_csv(pq.read_table(parquet), path))
        return parquet, csv

    def unchanged(self, table: str, one_in: int) -> Path:
        """Every n-th row as it is."""
        rows = self.parquet(table)
        return self._made(
            self.folder / f"{table}-unchanged-{one_in}.parquet",
            lambda path: pq.write_table(_some(pq.read_table(rows), one_in), path),
        )

    def _plain(self, table: str, path: Path) -> None:
        """The generator notes string views in its files, which dlt cannot read."""
        generated = path.with_suffix(".generated")
        self._generate("parquet", table, generated)
        source = pq.ParquetFile(generated)
        fields = [f.with_type(pa.string()) if f.type == pa.string_view() else f for f in source.schema_arrow]
        plain = pa.schema(fields)
        with pq.ParquetWriter(path, plain) as target:
            for batch in source.iter_batches(_ROW_GROUP):
                target.write_batch(batch.cast(plain))
        generated.unlink()

    def _half(self, table: str, half: int, path: Path) -> None:
        with_header = path.with_suffix(".header")
        self._generate("csv", table, with_header, f"--parts=2 --part={half}".split())
        with with_header.open("rb") as source, path.open("wb") as target:
            source.readline()
            shutil.copyfileobj(source, target, 1 << 20)
        with_header.unlink()

    def _generate(self, kind: str, table: str, path: Path, more: list[str] | None = None) -> None:
        generator = Path(sys.executable).parent / "tpchgen-cli"
        folder = self.folder / f"generated-{path.name}"
        command = [generator, kind, "-s", f"{self.scale:g}", f"--tables={table}", f"--output-dir={folder}"]
        subprocess.run([*command, *(more or [])], check=True, stdout=subprocess.DEVNULL)
        [made] = [file for file in folder.rglob("*") if file.is_file()]
        made.rename(path)
        shutil.rmtree(folder)

    def _made(self, path: Path, make: Callable[[Path], object]) -> Path:
        if not path.exists():
            self.folder.mkdir(parents=True, exist_ok=True)
            unfinished = path.with_name(f"unfinished-{path.name}")
            make(unfinished)
            unfinished.rename(path)
        return path


def _some(rows: pa.Table, one_in: int) -> pa.Table:
    return rows.take(pa.array(range(0, rows.num_rows, one_in)))


def _changed(rows: pa.Table, table: str, one_in: int) -> pa.Table:
    some = _some(rows, one_in)
    comment = next(name for name in rows.column_names if name.endswith("_comment"))
    place = rows.column_names.index(comment)
    changed = some.set_column(place, comment, pc.binary_join_element_wise(some[comment], pa.scalar("changed"), " "))
    key = KEYS[table][0]
    new = changed.take(pa.array(range(0, changed.num_rows, 10)))
    new = new.set_column(rows.column_names.index(key), key, pc.add(new[key], _NEW_KEYS))
    return pa.concat_tables([changed, new.cast(changed.schema)])


def _as_csv(rows: pa.Table, path: Path) -> None:
    pyarrow.csv.write_csv(rows, path, pyarrow.csv.WriteOptions(include_header=False))


def _as_json_lines(rows: Path, path: Path) -> None:
    with path.open("wb") as target:
        for batch in pq.ParquetFile(rows).iter_batches(_ROW_GROUP):
            members = [_members(name, batch[name]) for name in batch.schema.names]
            lines = pc.binary_join_element_wise(*members, ",").cast(pa.large_string())
            target.writelines(f"{{{line}}}\n".encode() for line in lines.to_pylist())


def _members(name: str, values: pa.Array) -> pa.Array:
    """TPC-H's texts hold nothing that JSON would have to escape."""
    quote = "" if pa.types.is_integer(values.type) or pa.types.is_decimal(values.type) else '"'
    return pc.binary_join_element_wise(f'"{name}":{quote}', values.cast(pa.string()), quote, "")


def small_files(folder: Path, count: int, rows: int) -> Iterator[Path]:
    folder.mkdir(parents=True, exist_ok=True)
    for number in range(count):
        path = folder / f"{number:05d}.parquet"
        ids = pa.array(range(number * rows, (number + 1) * rows), pa.int64())
        pq.write_table(pa.table({"id": ids, "note": pa.array([f"row {i}" for i in ids.to_pylist()])}), path)
        yield path
