from __future__ import annotations

from datetime import date
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from hakiri_dagster.cli.demo_data import write_shop_data

TODAY = date(2024, 3, 15)


@pytest.fixture(scope="module")
def shop(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("shop")
    write_shop_data(folder, TODAY)
    return folder


def written(folder: Path) -> dict[str, tuple[int, bytes]]:
    files = [path for path in folder.rglob("*") if path.is_file()]
    return {str(path.relative_to(folder)): (path.stat().st_mtime_ns, path.read_bytes()) for path in files}


def test_the_shop_has_twenty_four_months_up_to_today(shop):
    months = sorted(path.stem for path in (shop / "orders").iterdir())
    assert (len(months), months[0], months[-1]) == (24, "2022-04", "2024-03")
    assert [path.stem for path in sorted((shop / "order_items").iterdir())] == months
    last = pq.read_table(shop / "orders" / "2024-03.parquet")
    assert max(last["ordered_at"].to_pylist()).date() == TODAY


def test_the_shop_is_of_the_promised_size_and_has_its_flaws(shop):
    orders = pq.read_table(shop / "orders")
    items = "".join(path.read_text() for path in (shop / "order_items").iterdir()).splitlines()
    customers = (shop / "customers.csv").read_text().splitlines()
    assert 20_000 < orders.num_rows < 28_000
    assert orders["order_id"].combine_chunks().unique().__len__() == orders.num_rows
    assert 0 < orders["updated_at"].null_count < 30
    assert 50_000 < len(items) < 70_000
    assert 0 < sum(not line.endswith("}") for line in items) < 24
    assert sum(line.startswith(("2001,", "2002,", "2003,")) for line in customers) == 3
    assert "Małgorzata" in " ".join(customers)


def test_writing_again_touches_nothing(shop):
    before = written(shop)
    write_shop_data(shop, TODAY)
    assert written(shop) == before


def test_the_next_day_changes_the_current_month_only(shop, tmp_path):
    write_shop_data(tmp_path, TODAY)
    before = written(tmp_path)
    write_shop_data(tmp_path, date(2024, 3, 16))
    changed = {name for name, contents in written(tmp_path).items() if before.get(name) != contents}
    assert changed == {"orders/2024-03.parquet", "order_items/2024-03.jsonl"}


def test_a_damaged_file_is_written_again(shop):
    path = shop / "customers.csv"
    whole = path.read_bytes()
    path.write_bytes(whole[:100])
    write_shop_data(shop, TODAY)
    assert path.read_bytes() == whole
