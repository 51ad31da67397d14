"""A quarantine table that exists in another shape is told before any row moves."""

from __future__ import annotations

import pytest

from hakiri_dagster.destinations.postgres.destination import open_destination
from hakiri_dagster.destinations.postgres.quarantine import ADDED
from hakiri_dagster.manifest.spec import QuarantineSpec, ValidateSpec
from tests.integration.destinations.postgres.conftest import MakeShop
from tests.integration.destinations.postgres.scenario import Shop
from tests.integration.destinations.postgres.test_errors import url_with
from tests.integration.destinations.postgres.test_quarantine import bad

SEED = (
    'id bigserial PRIMARY KEY, "pipelineId" text NOT NULL, "runId" text NOT NULL, "nodeId" text NOT NULL,'
    ' "ruleId" text NOT NULL, "row" jsonb NOT NULL, "createdAt" timestamptz NOT NULL DEFAULT now()'
)
PLACE = "the quarantine table dlq.orders "


@pytest.fixture
def shop(make_shop: MakeShop) -> Shop:
    shop = make_shop(validation=ValidateSpec(quarantine=QuarantineSpec(table="dlq.orders")))
    shop.query("CREATE SCHEMA dlq")
    return shop


def told(shop: Shop) -> list[str]:
    changes = shop.destination.planned_changes(shop.table, shop.schema, with_file_hash=False)
    return [change.description for change in changes if change.refused]


@pytest.mark.parametrize(
    "columns",
    [
        SEED,
        SEED.replace('"runId" text', '"runId" varchar(36)').replace('"nodeId" text', '"nodeId" varchar'),
        f"{SEED}, seen boolean NOT NULL DEFAULT false, remark text",
        f'{SEED}, "loadId" numeric, attempt bigint, message text NOT NULL',
    ],
)
def test_a_table_in_which_rows_can_be_kept_is_taken(shop: Shop, columns: str) -> None:
    shop.query(f"CREATE TABLE dlq.orders ({columns})")
    assert told(shop) == []
    assert shop.destination.quarantine(shop.load(), bad(1)) == 1


@pytest.mark.parametrize(
    ("columns", "reason"),
    [
        (SEED.replace('"row" jsonb', '"row" text'), 'has the column "row" as text, which cannot take'),
        (SEED.replace('"pipelineId" text', '"pipelineId" integer'), 'has the column "pipelineId" as integer'),
        (SEED.replace('"runId" text', '"runId" varchar(20)'), 'has the column "runId" as character varying(20)'),
        (SEED.replace('"ruleId" text', '"ruleId" text[]'), 'has the column "ruleId" as text[]'),
        (SEED.replace('"nodeId" text NOT NULL,', ""), 'has no column "nodeId" (text), by which its rows are found'),
        (SEED.replace("bigserial PRIMARY KEY", "bigint PRIMARY KEY"), 'has the column "id", which is NOT NULL without'),
        (f"{SEED}, owner text NOT NULL", 'has the column "owner", which is NOT NULL without a default; give it'),
        (f'{SEED}, "sourceFile" text NOT NULL', 'has the column "sourceFile" NOT NULL'),
        (f"{SEED}, message varchar(100)", 'has the column "message" as character varying(100)'),
        (f'{SEED}, "loadId" integer', 'has the column "loadId" as integer, which cannot take'),
        (f"{SEED}, target text GENERATED ALWAYS AS ('t') STORED", 'has the column "target" as a generated one'),
    ],
)
def test_another_shape_is_refused_with_the_column(shop: Shop, columns: str, reason: str) -> None:
    shop.query(f"CREATE TABLE dlq.orders ({columns})")
    (objection,) = told(shop)
    assert objection.startswith(PLACE + reason)
    assert objection.endswith("or name another table in validate.quarantine.table")


@pytest.mark.parametrize("name", ADDED)
def test_every_column_that_is_written_has_to_take_it(shop: Shop, name: str) -> None:
    shop.query(f'CREATE TABLE dlq.orders ({SEED}, "{name}" boolean)')
    (objection,) = told(shop)
    assert objection.startswith(f'{PLACE}has the column "{name}" as boolean, which cannot take what is kept there')


@pytest.mark.parametrize(
    ("statement", "kind"),
    [
        ("CREATE VIEW dlq.orders AS SELECT 1 AS id", "is a view"),
        ("CREATE MATERIALIZED VIEW dlq.orders AS SELECT 1 AS id", "is a materialized view"),
        ("CREATE SEQUENCE dlq.orders", "is a sequence"),
        (
            "CREATE FOREIGN DATA WRAPPER nowhere; CREATE SERVER nowhere FOREIGN DATA WRAPPER nowhere;"
            f" CREATE FOREIGN TABLE dlq.orders ({SEED.replace('bigserial PRIMARY KEY', 'bigint')}) SERVER nowhere",
            "is a foreign table",
        ),
    ],
)
def test_what_is_no_table_is_refused(shop: Shop, statement: str, kind: str) -> None:
    shop.query(statement)
    assert [text.startswith(PLACE + kind) for text in told(shop)] == [True]


def test_rights_that_are_lacking_are_told(shop: Shop) -> None:
    shop.ensure()
    shop.query(
        "CREATE TABLE dlq.orders (" + SEED + "); CREATE ROLE loads_raw_orders LOGIN PASSWORD 'secret';"
        "GRANT USAGE ON SCHEMA raw, dlq, hakiri TO loads_raw_orders;"
        "GRANT SELECT ON dlq.orders, hakiri.sibling TO loads_raw_orders"
    )
    try:
        url = url_with(shop.url, user="loads_raw_orders", password="secret")
        shop.destination.close()
        shop.destination = open_destination({"url": url}, label="warehouse")
        texts = told(shop)
        assert any(text.startswith(f"{PLACE}grants no INSERT, DELETE to the destination's user") for text in texts)
        assert any(text.startswith(f"{PLACE}takes numbers from dlq.orders_id_seq") for text in texts)
        lacks = ", ".join(f'"{name}" {kind}' for name, kind in ADDED.items())
        assert any(text.startswith(f"{PLACE}has no {lacks}, and only its owner can add columns") for text in texts)
    finally:
        shop.destination.close()
        shop.query("DROP OWNED BY loads_raw_orders; DROP ROLE loads_raw_orders")


def test_without_a_quarantine_nobody_asks(make_shop: MakeShop) -> None:
    shop = make_shop(validation=ValidateSpec(quarantine=QuarantineSpec(table="dlq.orders", enabled=False)))
    shop.query("CREATE SCHEMA dlq; CREATE VIEW dlq.orders AS SELECT 1")
    assert told(shop) == []
