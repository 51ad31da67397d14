"""What the preset `stripe` asks of an API like Stripe's, and what it finds there."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from hakiri_dagster.connectors.rest.ranges import as_position
from hakiri_dagster.connectors.rest.table import RestTable
from hakiri_dagster.errors import SourceError
from hakiri_dagster.manifest.presets.stripe import TABLES
from tests.integration.connectors.rest import preset_tables
from tests.integration.connectors.rest.api_server import ApiServer, Asked, Said, serving
from tests.integration.connectors.rest.preset_tables import preset_table, whole
from tests.integration.connectors.rest.stripe_api import Stripe

START = datetime(2024, 1, 1, tzinfo=UTC)


def day(number: float) -> datetime:
    return START + timedelta(days=number)


def table_of(root: Path, api: ApiServer, name: Any, **config: Any) -> RestTable:
    said = {"api_key": "${STRIPE_KEY}", "base_url": f"{api.url}/v1"} | config
    return preset_table(root, "stripe", said, name, {"STRIPE_KEY": Stripe.key})


discovered, read = partial(preset_tables.discovered, cursor="created"), partial(preset_tables.read, cursor="created")


def charges(count: int, limit: int = 3) -> Stripe:
    stripe = Stripe(limit=limit)
    for number in range(count):
        stripe.put("charges", f"ch_{number}", day(number), amount=100)
    return stripe


def test_pages_follow_the_last_record_until_there_are_no_more(tmp_path: Path) -> None:
    with serving(charges(8).answer) as api:
        rows = read(table_of(tmp_path, api, "charges"))
    assert [row["id"] for row in rows] == [f"ch_{n}" for n in reversed(range(8))]
    assert api.params("starting_after") == [None, "ch_5", "ch_2"]


def test_a_window_is_asked_for_with_both_its_bounds(tmp_path: Path) -> None:
    with serving(charges(8).answer) as api:
        rows = read(table_of(tmp_path, api, "charges"), day(2), day(5))
    assert [row["id"] for row in rows] == ["ch_4", "ch_3", "ch_2"]
    (asked,) = api.asked
    bounds = {"created[gte]": f"{day(2).timestamp():.0f}", "created[lt]": f"{day(5).timestamp():.0f}"}
    assert asked.params == {"limit": "100"} | bounds


def test_every_request_names_the_version_and_the_account(tmp_path: Path) -> None:
    with serving(charges(8).answer) as api:
        read(table_of(tmp_path, api, "charges", version="2025-01-27.acacia", account="acct_1"))
    assert {asked.headers["Stripe-Version"] for asked in api.asked} == {"2025-01-27.acacia"}
    assert {asked.headers["Stripe-Account"] for asked in api.asked} == {"acct_1"}


def test_seconds_since_1970_are_times(tmp_path: Path) -> None:
    with serving(charges(2).answer) as api:
        table = table_of(tmp_path, api, "charges")
        found = discovered(table)
        assert [row["created"] for row in read(table)] == ["2024-01-02T00:00:00Z", "2024-01-01T00:00:00Z"]
    assert found.cursor_kind == "timestamp"
    assert found.extent is not None
    assert found.extent.upper == as_position(day(1))


def test_a_plan_asks_for_one_page(tmp_path: Path) -> None:
    with serving(charges(8).answer) as api:
        discovered(table_of(tmp_path, api, "charges"))
        assert len(api.asked) == 1


@pytest.mark.parametrize("name", sorted(TABLES))
def test_an_account_without_objects_has_its_columns(tmp_path: Path, name: str) -> None:
    with serving(Stripe().answer) as api:
        found = discovered(table_of(tmp_path, api, name))
    assert found.schema is not None
    assert {"id", "created", "metadata"} <= {column.name for column in found.schema.columns}


def test_objects_that_come_meanwhile_shift_nothing(tmp_path: Path) -> None:
    stripe = charges(8)

    def meanwhile(_asked: Asked, n: int) -> Said | None:
        stripe.put("charges", f"ch_new_{n}", day(100 + n), amount=1)
        return None

    stripe.trouble = meanwhile
    with serving(stripe.answer) as api:
        found = [row["id"] for row in read(table_of(tmp_path, api, "charges"))]
    assert sorted(found) == sorted([*(f"ch_{n}" for n in range(8)), "ch_new_1"])


def test_an_object_that_is_deleted_at_a_seam_is_an_error_and_no_end(tmp_path: Path) -> None:
    stripe = charges(8)

    def meanwhile(asked: Asked, _n: int) -> Said | None:
        gone = asked.params.get("starting_after")
        stripe.objects["charges"] = [row for row in stripe.objects["charges"] if row["id"] != gone]
        return None

    stripe.trouble = meanwhile
    with serving(stripe.answer) as api, pytest.raises(SourceError, match="No such charges: 'ch_5'"):
        read(table_of(tmp_path, api, "charges"))


def test_the_key_is_in_no_error(tmp_path: Path) -> None:
    stripe = Stripe(key="another")
    with serving(stripe.answer) as api, pytest.raises(SourceError) as raised:
        discovered(table_of(tmp_path, api, "charges"))
    assert "answered 401" in raised.value.what
    assert Stripe.key not in str(raised.value)


def test_lines_of_an_invoice_that_shows_only_some_are_asked_for(tmp_path: Path) -> None:
    stripe = Stripe(within=2, limit=2)
    for number, lines in enumerate((1, 5, 0)):
        stripe.invoice(f"in_{number}", day(number), lines)
    with serving(stripe.answer) as api:
        table = table_of(tmp_path, api, "invoice_lines")
        found = [(row["invoices_id"], row["position"], row["id"]) for row in whole(table)]
        of_lists = [asked for asked in api.asked if asked.path.endswith("/lines")]
    assert sorted(found) == [
        ("in_0", 0, "il_in_0_0"),
        *(("in_1", n, f"il_in_1_{n}") for n in range(5)),
    ]
    assert {asked.path for asked in of_lists} == {"/v1/invoices/in_1/lines"}
    assert [asked.params.get("starting_after") for asked in of_lists] == [None, "il_in_1_1", "il_in_1_3"]


def test_the_rest_of_a_list_is_not_asked_for_as_its_table_is(tmp_path: Path) -> None:
    """Stripe refuses parameters that it does not know."""
    stripe = Stripe(within=1)
    stripe.subscription("sub_1", day(1), 3)
    with serving(stripe.answer) as api:
        found = [(row["subscriptions_id"], row["id"]) for row in whole(table_of(tmp_path, api, "subscription_items"))]
    assert found == [("sub_1", f"si_sub_1_{n}") for n in range(3)]
    assert [asked.params for asked in api.asked] == [
        {"limit": "100", "status": "all"},
        {"subscription": "sub_1", "limit": "100"},
    ]
