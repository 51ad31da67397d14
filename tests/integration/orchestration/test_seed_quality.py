"""The examples of the seed documents, pasted into a manifest as they stand."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from uuid import UUID

from tests.integration.orchestration.conftest import ShopProject

AS_IT_STANDS = """{
"datasetLevel": {
    "rowCount":     { "min": 100, "max": 1000000, "onFail": "abort" },
    "freshness":    { "withinHours": 24, "column": "updated_at", "onFail": "warn" },
    "fkIntegrity":  { "column": "customer_id", "refTable": "starbucks.customers", "refColumn": "id", "onFail": "abort" },
    "cardinality":  { "column": "country", "minDistinct": 5, "onFail": "warn" },
    "duplicateKey": { "columns": ["customer_id", "order_date"], "onFail": "abort" }
  },
"rowLevel": [
    { "type": "notNull",   "field": "id",     "onFail": "abort" },
    { "type": "regex",     "field": "email",  "pattern": "^.+@.+$", "onFail": "skip" },
    { "type": "range",     "field": "age",    "min": 0, "max": 150, "onFail": "warn" },
    { "type": "maxLength", "field": "name",   "max": 200, "onFail": "skip" },
    { "type": "fieldType", "field": "id",     "expected": "uuid", "onFail": "abort" }
  ],
"quarantine": { "enabled": true, "table": "dlq.orders" }
}"""  # noqa: E501  # the lines are as the seed has them
HEAD = "id,email,age,name,customer_id,country,order_date,updated_at\n"


def order(number: int, **changes: object) -> str:
    values = {
        "id": UUID(int=number), "email": "a@b", "age": 30, "name": "ann", "customer_id": number,
        "country": f"C{number % 6}", "order_date": "2024-01-31", "updated_at": datetime.now(UTC).isoformat(),
    } | changes  # fmt: skip
    return ",".join(map(str, values.values())) + "\n"


def declared(shop: ShopProject) -> None:
    shop.manifest(
        {
            "id": "shop",
            "source": {"connector": "files", "config": {"path": "data", "format": "csv"}},
            "tables": ["orders"],
            **json.loads(AS_IT_STANDS),
        }
    )
    shop.execute("CREATE SCHEMA starbucks; CREATE TABLE starbucks.customers AS SELECT generate_series(1, 200) AS id")


def test_good_rows_pass_and_bad_ones_are_quarantined(shop: ShopProject) -> None:
    declared(shop)
    odd = order(101, email="nobody") + order(102, name="x" * 201) + order(103, age=200)
    shop.file("data/orders.csv", HEAD + "".join(map(order, range(1, 101))) + odd)
    told = shop.apply()["orders"]
    assert (told["error"], told["rows"], told["quarantined"]) == (None, 101, 2)
    assert shop.rows('SELECT "ruleId", "onFail" FROM dlq.orders ORDER BY 1') == [
        ("max_length_name", "skip"),
        ("range_age", "warn"),
        ("regex_email", "skip"),
    ]


def test_each_gate_holds_the_load_back(shop: ShopProject) -> None:
    declared(shop)
    shop.file("data/orders.csv", HEAD + "".join(map(order, [*range(1, 99), 300])) + order(1, id="no"))
    error = shop.apply()["orders"]["error"]
    for gate in (
        "field_type_id: 1 of 100",
        "fk_integrity_customer_id: 1 of 100",
        "duplicate_key_customer_id_order_date: 2",
    ):
        assert gate in error
    assert shop.rows("SELECT count(*) FROM raw.orders") == [(0,)]
