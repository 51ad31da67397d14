"""What was set aside, seen and deleted from the command line."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from hakiri_dagster.cli.quarantine_commands import Filters, purge, show
from hakiri_dagster.errors import UsageError
from tests.integration.orchestration.conftest import ShopProject

Capture = pytest.CaptureFixture[str]

RULES = [
    {"type": "regex", "field": "email", "pattern": "@", "on_fail": "skip"},
    {"type": "range", "field": "age", "min": 0, "on_fail": "warn"},
]


@pytest.fixture
def kept(csv_shop: Callable[..., ShopProject]) -> ShopProject:
    shop = csv_shop(row_level=RULES, columns={"age": "integer"})
    shop.file("data/orders.csv", "id,email,age\n1,a@b,1\n2,nobody,1\n3,nowhere,1\n4,a@b,-1\n5,a@b,old\n")
    assert shop.apply()["orders"]["quarantined"] == 3
    return shop


def shown(shop: ShopProject, capsys: Capture, limit: int = 10, **filters: str) -> dict[str, Any]:
    capsys.readouterr()
    assert show(shop.root, "shop", None, Filters(**filters), limit, as_json=True) == 0
    (table,) = json.loads(capsys.readouterr().out)["tables"]
    return table


def counted(shop: ShopProject, capsys: Capture, **filters: str) -> dict[str, int]:
    return {count["rule"]: count["rows"] for count in shown(shop, capsys, **filters)["counts"]}


def test_rows_are_counted_by_rule_and_shown(kept: ShopProject, capsys: Capture) -> None:
    assert counted(kept, capsys) == {"regex_email": 2, "malformed": 1, "range_age": 1}
    (row,) = shown(kept, capsys, rule="range_age")["sample"]
    assert (row["on_fail"], row["row"]["id"], row["message"]) == ("warn", 4, "it does not hold that age is at least 0")
    assert row["source_file"].endswith("data/orders.csv")


def test_they_are_chosen_by_rule_field_run_and_chunk(kept: ShopProject, capsys: Capture) -> None:
    assert counted(kept, capsys, field="email") == {"regex_email": 2}
    assert counted(kept, capsys, field="id") == {}
    assert counted(kept, capsys, run_id="another") == {}
    row = shown(kept, capsys, limit=1)["sample"][0]
    assert len(counted(kept, capsys, run_id=row["run_id"], chunk=row["chunk"])) == 3


def test_what_is_purged_is_gone_and_the_rest_stays(kept: ShopProject, capsys: Capture) -> None:
    with pytest.raises(UsageError, match="nobody is there to be asked"):
        purge(kept.root, "shop", None, Filters(), unasked=False)
    assert purge(kept.root, "shop", None, Filters(rule="regex_email"), unasked=True) == 0
    assert "2 row(s) of shop/orders deleted from hakiri.quarantine_shop_orders." in capsys.readouterr().out
    assert counted(kept, capsys) == {"malformed": 1, "range_age": 1}


def test_who_purges_rows_of_a_rule_that_has_none_is_told_which_rules_have(kept: ShopProject, capsys: Capture) -> None:
    assert purge(kept.root, "shop", None, Filters(rule="regexp_email"), unasked=True) == 0
    assert capsys.readouterr().out.splitlines()[-2:] == [
        "0 row(s) of shop/orders deleted from hakiri.quarantine_shop_orders.",
        "It keeps 2 of regex_email, 1 of malformed, 1 of range_age.",
    ]


def test_a_table_that_has_set_nothing_aside_says_so(csv_shop: Callable[..., ShopProject], capsys: Capture) -> None:
    shop = csv_shop()
    assert show(shop.root, "shop", None, Filters(), 10, as_json=False) == 0
    assert "nothing is kept" in capsys.readouterr().out
    assert purge(shop.root, "shop", None, Filters(), unasked=True) == 0


def test_a_table_in_the_shape_of_the_seed_is_read_too(csv_shop: Callable[..., ShopProject], capsys: Capture) -> None:
    shop = csv_shop(quarantine={"table": "dlq.orders"})
    shop.execute("CREATE SCHEMA dlq")
    shop.execute(
        'CREATE TABLE dlq.orders (id bigserial PRIMARY KEY, "pipelineId" text NOT NULL, "runId" text NOT NULL, '
        '"nodeId" text NOT NULL, "ruleId" text NOT NULL, "row" jsonb NOT NULL, "createdAt" timestamptz NOT NULL '
        "DEFAULT now())"
    )
    shop.execute(
        'INSERT INTO dlq.orders ("pipelineId", "runId", "nodeId", "ruleId", "row") '
        "VALUES ('shop', 'r', 'orders', 'x', '{}')"
    )
    assert counted(shop, capsys) == {"x": 1}
