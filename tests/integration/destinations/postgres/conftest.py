from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from hakiri_dagster.manifest.load_spec import LoadMode
from tests.integration.destinations.postgres.scenario import Shop, make_table

MakeShop = Callable[..., Shop]


@pytest.fixture
def make_shop(database_url: str) -> Iterator[MakeShop]:
    shops: list[Shop] = []

    def make(mode: LoadMode = "append", *, schema: Any = None, with_file_hash: bool = False, **changes: Any) -> Shop:
        shop = Shop(database_url, make_table(mode, **changes), with_file_hash=with_file_hash)
        if schema is not None:
            shop.schema = schema
        shops.append(shop)
        return shop

    yield make
    for shop in shops:
        shop.close()
