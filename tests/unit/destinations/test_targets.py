"""A target by one name, as ledger and fence have it."""

from __future__ import annotations

import pytest

from hakiri_dagster.destinations.postgres.catalog import split_target, target_of
from tests.integration.destinations.postgres.scenario import make_table


@pytest.mark.parametrize("name", ["orders", "Or ders", "orders.v2", 'or"ders', '."', "x" * 63])
def test_the_parts_of_a_target_are_told_apart_whatever_their_names_hold(name: str) -> None:
    for parts in (("raw", name), (name, "orders"), (name, name)):
        table = make_table("append", target_schema=parts[0], target_name=parts[1])
        assert split_target(target_of(table)) == parts
