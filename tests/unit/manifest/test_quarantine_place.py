from __future__ import annotations

import pytest

from tests.integration.destinations.postgres.scenario import make_table


@pytest.mark.parametrize(
    ("pipeline", "place"),
    [
        ("shop", "hakiri.quarantine_shop_orders"),
        ("tea-shop", 'hakiri."quarantine_tea-shop_orders"'),
        ('o"hara', 'hakiri."quarantine_o""hara_orders"'),
    ],
)
def test_the_quarantine_table_is_named_as_a_query_names_it(pipeline: str, place: str) -> None:
    assert make_table("append", pipeline_id=pipeline).quarantine_place == place
