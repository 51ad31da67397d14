"""A quarantine table in another shape stops its own table before any row moves."""

from __future__ import annotations

from tests.integration.orchestration.conftest import ShopProject


def test_plan_and_apply_refuse_the_table_and_others_go_on(shop: ShopProject) -> None:
    shop.execute('CREATE SCHEMA dlq; CREATE TABLE dlq.orders (id bigserial, "pipelineId" text, "row" text)')
    shop.file("data/orders.csv", "id\n1\n")
    shop.file("data/lines.csv", "id\n1\n")
    orders = {"name": "orders", "validate": {"quarantine": {"table": "dlq.orders"}}}
    shop.manifest(
        {
            "id": "shop",
            "source": {"connector": "files", "config": {"path": "data", "format": "csv"}},
            "tables": [orders, "lines"],
        }
    )
    with shop.runtime() as runtime:
        (table,) = [found for found in runtime.project.tables if found.name == "orders"]
        refusals = runtime.survey(table).refusals
    wrong = 'the quarantine table dlq.orders has the column "row" as text, which cannot take what is kept there; '
    assert any(text.startswith(wrong) for text in refusals)
    assert any('has no column "ruleId" (text)' in text for text in refusals)
    told = shop.apply()
    assert wrong in told["orders"]["error"]
    assert told["lines"]["error"] is None
    assert shop.rows("SELECT to_regclass('raw.orders')") == [(None,)]
    shop.execute("DROP TABLE dlq.orders")
    assert shop.apply()["orders"]["rows"] == 1
