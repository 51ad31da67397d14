"""An exchange is made with many rights. What others wrote gets none of them, and others get no rows by it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any
from urllib.parse import quote

import psycopg
import pytest

from hakiri_dagster.errors import DestinationError
from tests.integration.destinations.postgres.conftest import MakeShop
from tests.integration.destinations.postgres.scenario import Shop, order

ANALYST = "swap analyst"
LOADER = "swap loader"
Ask = Callable[[str], list[tuple[Any, ...]]]


@contextmanager
def role(shop: Shop, name: str) -> Iterator[None]:
    shop.query(f'CREATE ROLE "{name}"')
    yield
    shop.query(f'DROP OWNED BY "{name}" CASCADE')
    shop.query(f'DROP ROLE "{name}"')


@pytest.fixture
def shop(make_shop: MakeShop) -> Iterator[Shop]:
    shop = make_shop("blue_green", primary_key=("id",))
    shop.publish([order(1), order(2)])
    with role(shop, ANALYST):
        shop.query(f'GRANT USAGE, CREATE ON SCHEMA raw TO "{ANALYST}"')
        yield shop


@pytest.fixture
def analyst(shop: Shop) -> Ask:
    def ask(statement: str) -> list[tuple[Any, ...]]:
        with psycopg.connect(shop.url, autocommit=True) as connection:
            connection.execute(f'SET ROLE "{ANALYST}"'.encode())
            cursor = connection.execute(statement.encode())
            return cursor.fetchall() if cursor.description else []

    return ask


def test_a_materialized_view_is_built_with_its_owner_s_rights(shop: Shop, analyst: Ask) -> None:
    shop.query(f'GRANT SELECT ON raw.orders TO "{ANALYST}"')
    body = "BEGIN RETURN current_user; END"
    analyst(f"CREATE FUNCTION raw.who() RETURNS name LANGUAGE plpgsql AS '{body}'")
    analyst("CREATE MATERIALIZED VIEW raw.m AS SELECT id, raw.who() FROM raw.orders")
    analyst("CREATE UNIQUE INDEX ON raw.m (id)")
    analyst("CREATE MATERIALIZED VIEW raw.n AS SELECT who, raw.who() AS again FROM raw.m")
    shop.publish([order(3)])
    assert shop.query("SELECT * FROM raw.m") == [(3, ANALYST)]
    assert shop.query("SELECT * FROM raw.n") == [(ANALYST, ANALYST)]


def test_a_materialized_view_gets_no_rows_that_its_owner_may_not_read(shop: Shop, analyst: Ask) -> None:
    shop.query("CREATE TABLE raw.payroll (salary int)")
    for table in ("orders", "payroll"):
        shop.query(f'GRANT SELECT ON raw.{table} TO "{ANALYST}"')
    analyst("CREATE MATERIALIZED VIEW raw.m AS SELECT salary FROM raw.orders, raw.payroll")
    for table in ("payroll", "orders"):
        shop.query(f'REVOKE SELECT ON raw.{table} FROM "{ANALYST}"')
        with pytest.raises(DestinationError, match="permission denied"):
            shop.publish([order(3)])
        shop.query(f'GRANT SELECT ON raw.{table} TO "{ANALYST}"')
    shop.publish([order(3)])
    assert shop.ids() == [3]


def test_the_right_to_read_a_few_columns_is_enough_for_a_materialized_view_of_these(shop: Shop, analyst: Ask) -> None:
    shop.query(f'GRANT SELECT (id) ON raw.orders TO "{ANALYST}"')
    analyst("CREATE MATERIALIZED VIEW raw.m AS SELECT id FROM raw.orders")
    prepared = shop.prepare([order(3)])
    with pytest.raises(psycopg.errors.InsufficientPrivilege):
        analyst("SELECT id FROM raw.orders_new")
    prepared.publish(None, 0)
    assert shop.query("SELECT id FROM raw.m") == [(3,)]
    assert analyst("SELECT id FROM raw.orders") == [(3,)]


def test_a_materialized_view_whose_owner_sees_some_rows_only_is_refused_by_name(shop: Shop, analyst: Ask) -> None:
    shop.query(f'GRANT SELECT ON raw.orders TO "{ANALYST}"')
    shop.query("ALTER TABLE raw.orders ENABLE ROW LEVEL SECURITY")
    shop.query(f'CREATE POLICY one ON raw.orders TO "{ANALYST}" USING (id = 1)')
    analyst("CREATE MATERIALIZED VIEW raw.m AS SELECT id FROM raw.orders")
    with pytest.raises(DestinationError, match=r'keeps rows from "swap analyst", who owns materialized view raw\.m'):
        shop.ensure()


@pytest.mark.parametrize("grantee", [f'"{ANALYST}"', "PUBLIC"])
def test_rows_are_read_by_nobody_before_they_are_published(shop: Shop, analyst: Ask, grantee: str) -> None:
    shop.query(f"ALTER DEFAULT PRIVILEGES IN SCHEMA raw GRANT SELECT ON TABLES TO {grantee}")
    shop.query("CREATE MATERIALIZED VIEW raw.m AS SELECT id FROM raw.orders")
    shop.query(f"GRANT SELECT ON raw.orders TO {grantee}")
    prepared = shop.prepare([order(3), order(4, "secret")])
    for (relation,) in shop.query("SELECT relation::regclass FROM hakiri.sibling"):
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            analyst(f"SELECT * FROM {relation}")
    prepared.publish(None, 0)
    assert analyst("SELECT id FROM raw.orders ORDER BY 1") == [(3,), (4,)]
    shop.query(f"ALTER DEFAULT PRIVILEGES IN SCHEMA raw REVOKE SELECT ON TABLES FROM {grantee}")


def test_a_sequence_of_an_identity_keeps_its_rights_whatever_new_ones_are_given(shop: Shop, analyst: Ask) -> None:
    shop.query("ALTER TABLE raw.orders ADD no int GENERATED BY DEFAULT AS IDENTITY")
    shop.query(f'GRANT USAGE ON SEQUENCE raw.orders_no_seq TO "{ANALYST}"')
    shop.query("ALTER DEFAULT PRIVILEGES IN SCHEMA raw GRANT SELECT ON SEQUENCES TO PUBLIC")
    shop.publish([order(3)])
    analyst("SELECT nextval('raw.orders_no_seq')")
    with pytest.raises(psycopg.errors.InsufficientPrivilege):
        analyst("SELECT last_value FROM raw.orders_no_seq")


RIGHTS = """
SELECT grantor::regrole::text, grantee, privilege_type, is_grantable FROM pg_class CROSS JOIN aclexplode(relacl)
WHERE oid = 'raw.orders'::regclass ORDER BY 1, 2, 3
"""


def test_who_passed_a_right_on_may_take_it_back_after_a_load_too(shop: Shop, analyst: Ask) -> None:
    shop.query(f'GRANT SELECT ON raw.orders TO "{ANALYST}" WITH GRANT OPTION')
    analyst("GRANT SELECT ON raw.orders TO PUBLIC")
    shop.publish([order(3)])
    analyst("REVOKE SELECT ON raw.orders FROM PUBLIC")
    assert 0 not in [grantee for _, grantee, *_ in shop.query(RIGHTS)]


def test_a_right_is_passed_on_after_it_was_given_in_whatever_order_postgresql_tells_them(
    shop: Shop, analyst: Ask
) -> None:
    with role(shop, "swap clerk"):
        shop.query(
            f'GRANT USAGE ON SCHEMA raw TO "swap clerk"; GRANT SELECT ON raw.orders TO "{ANALYST}" WITH GRANT OPTION'
        )
        analyst("GRANT SELECT ON raw.orders TO PUBLIC")
        shop.query(
            'GRANT INSERT ON raw.orders TO "swap clerk" WITH GRANT OPTION; SET ROLE "swap clerk";'
            f'GRANT INSERT ON raw.orders TO "{ANALYST}" WITH GRANT OPTION'
        )
        analyst("GRANT INSERT ON raw.orders TO PUBLIC")  # which PostgreSQL tells beside the first, before the clerk's
        before = shop.query(RIGHTS)
        shop.publish([order(3)])
        assert shop.query(RIGHTS) == before


@pytest.fixture
def loader(shop: Shop) -> Iterator[Shop]:
    """Owns the target, and nothing else. Loads it, as `shop` does with all rights."""
    with role(shop, LOADER):
        shop.query(f'GRANT CREATE ON SCHEMA raw TO "{LOADER}"; GRANT ALL ON SCHEMA hakiri TO "{LOADER}"')
        shop.query(f'GRANT ALL ON ALL TABLES IN SCHEMA hakiri TO "{LOADER}"')
        shop.query(f'GRANT ALL ON ALL SEQUENCES IN SCHEMA hakiri TO "{LOADER}"')
        shop.query(f'GRANT USAGE ON SCHEMA raw TO "{LOADER}"; ALTER TABLE raw.orders OWNER TO "{LOADER}"')
        options = quote(f"-c role={LOADER.replace(' ', chr(92) + ' ')}")
        of_loader = Shop(f"{shop.url}?options={options}", shop.table)
        yield of_loader
        of_loader.close()


def refusals(shop: Shop) -> list[str]:
    changes = shop.destination.planned_changes(shop.table, shop.schema)
    return [change.description.removeprefix("blue_green cannot exchange the target: ") for change in changes]


VIEW = "CREATE VIEW raw.v AS SELECT id FROM raw.orders"
MATERIALIZED_VIEW = "CREATE MATERIALIZED VIEW raw.m AS SELECT id FROM raw.orders"
FUNCTION = "CREATE FUNCTION raw.f() RETURNS bigint BEGIN ATOMIC SELECT max(id) FROM raw.orders; END"


@pytest.mark.parametrize(
    ("made", "what"),
    [
        (VIEW, "view raw.v"),
        (MATERIALIZED_VIEW, "materialized view raw.m"),
        ("CREATE TABLE raw.lines (id bigint REFERENCES raw.orders)", "table raw.lines"),
        (FUNCTION, "function raw.f()"),
    ],
)
def test_what_belongs_to_others_is_told_before_any_row_moves(
    shop: Shop, analyst: Ask, loader: Shop, made: str, what: str
) -> None:
    shop.query(f'GRANT SELECT, REFERENCES ON raw.orders TO "{ANALYST}"')
    assert refusals(loader) == []
    analyst(made)
    database = loader.query("SELECT current_database()")[0][0]
    shop.query(f'GRANT CREATE ON DATABASE "{database}" TO "{LOADER}"')
    assert refusals(shop) == []
    assert refusals(loader) == [
        f'{what} belongs to "swap analyst", and "swap loader" is not a member of that role; '
        'GRANT "swap analyst" TO "swap loader"'
    ]
    shop.query(f'GRANT "{ANALYST}" TO "{LOADER}"')
    assert refusals(loader) == []
    loader.publish([order(3)])
    assert shop.ids() == [3]
    shop.query(f'REVOKE CREATE ON DATABASE "{database}" FROM "{LOADER}"')


def test_a_target_of_somebody_else_s_and_what_the_loader_may_not_create_are_told(
    shop: Shop, analyst: Ask, loader: Shop
) -> None:
    loader.query(MATERIALIZED_VIEW)
    assert "may not create a schema in the database" in refusals(loader)[0]
    shop.query("DROP MATERIALIZED VIEW raw.m")
    shop.query(f'REVOKE CREATE ON SCHEMA raw FROM "{LOADER}"')
    assert refusals(loader) == [
        '"swap loader" may not create anything in the schema raw, in which table raw.orders is made anew'
    ]
    shop.query(f'ALTER TABLE raw.orders OWNER TO "{ANALYST}"; GRANT CREATE ON SCHEMA raw TO "{LOADER}"')
    assert any('table raw.orders belongs to "swap analyst"' in text for text in refusals(loader))


def test_a_table_that_the_target_refers_to_and_the_loader_may_not_lock_is_told_before_a_load(
    shop: Shop, loader: Shop
) -> None:
    shop.query("CREATE TABLE raw.customers (name text PRIMARY KEY); INSERT INTO raw.customers VALUES ('ann')")
    shop.query(f'GRANT REFERENCES ON raw.customers TO "{LOADER}"')
    loader.query("ALTER TABLE raw.orders ADD CONSTRAINT whose FOREIGN KEY (customer) REFERENCES raw.customers")
    (told,) = loader.destination.cautions(loader.table)
    assert told.startswith(
        'table raw.customers, to which raw.orders refers by a foreign key: "swap loader" may not lock'
    )
    loader.publish([order(3)])
    shop.query(told.partition("; ")[2])
    assert loader.destination.cautions(loader.table) == []
    loader.publish([order(4)])
    assert shop.ids() == [4]


def test_a_right_that_cannot_be_given_in_the_name_of_who_gave_it_is_told_before_any_row_moves(
    shop: Shop, analyst: Ask, loader: Shop
) -> None:
    shop.query(f'GRANT SELECT ON raw.orders TO "{ANALYST}" WITH GRANT OPTION')
    analyst("GRANT SELECT (id) ON raw.orders TO PUBLIC")
    told = f'table raw.orders has rights that were given by "{ANALYST}", '
    assert refusals(loader) == [f'{told}and "{LOADER}" is not a member of that role; GRANT "{ANALYST}" TO "{LOADER}"']
    shop.query(f'GRANT "{ANALYST}" TO "{LOADER}"')
    loader.publish([order(3)])
    shop.query(f'REVOKE USAGE ON SCHEMA raw FROM "{ANALYST}"')
    assert refusals(loader) == [f'{told}who may not use the schema; GRANT USAGE ON SCHEMA raw TO "{ANALYST}"']
    shop.query(f'GRANT USAGE ON SCHEMA raw TO "{ANALYST}"; ALTER ROLE "{ANALYST}" SUPERUSER')
    (refusal,) = refusals(loader)
    assert refusal.startswith(f'{told}who could only give them in the name of the owner "{LOADER}" now; take')
