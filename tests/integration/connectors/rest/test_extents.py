"""Where history begins and ends, of APIs whose first page tells neither."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from hakiri_dagster.connectors.contract import Discovery, Known
from hakiri_dagster.connectors.network import Network
from hakiri_dagster.connectors.rest.connector import REST
from hakiri_dagster.connectors.rest.ranges import as_position
from hakiri_dagster.errors import SourceError
from hakiri_dagster.planning.chunks import Extent
from tests.integration.connectors.rest.api_server import Answer, Asked, Said, said, serving
from tests.integration.connectors.rest.conftest import LABEL, no_spark

NOTHING = Extent(None, None, 0)
DATE = "Mon, 01 Jan 2024 00:00:00 GMT"
THEIR_NOW = as_position(datetime(2024, 1, 1, tzinfo=UTC))
PAGINATION = {"type": "cursor", "next": "next", "param": "t"}


def found(answer: Answer, *, type_: str = "timestamptz", pagination: Any = None, **cursor_params: Any) -> Discovery:
    with serving(answer) as api:
        table = REST.table(
            config={"base_url": api.url, "pagination": pagination or PAGINATION, "retry": {"retries": 0}},
            name="things",
            path=None,
            columns={"id": "bigint", "at": type_},
            label=LABEL,
            endpoint={"records": "data", "cursor_params": cursor_params},
            network=Network(allow_loopback=True),
        )
        return table.discover(cursor="at", known=Known(), spark=no_spark)


def page(*cursors: Any, leads_on: bool = True) -> Said:
    rows = [{"id": n, "at": at} for n, at in enumerate(cursors)]
    return said({"data": rows, "next": "more" if leads_on else None}, Date=DATE)


@pytest.mark.parametrize("first", [page(), page(None, None)], ids=["empty", "without a cursor"])
@pytest.mark.parametrize("order", ["ascending", "descending", None])
def test_a_first_page_that_tells_nothing_and_leads_on_is_no_empty_source(first: Said, order: str | None) -> None:
    told = found(lambda _: first, lower="since", order=order)
    assert told.extent is not None
    assert (told.extent.lower, told.extent.upper) == (0, THEIR_NOW)
    assert any("history is planned from 1970 on" in one for one in told.warnings) is (order == "ascending")


def test_an_empty_page_that_leads_nowhere_is_an_empty_source() -> None:
    told = found(lambda _: page(leads_on=False), lower="since", order="ascending")
    assert told.extent == NOTHING
    assert told.warnings == ()


def test_records_of_which_none_has_a_cursor_are_told() -> None:
    told = found(lambda _: page(None, leads_on=False), lower="since", order="ascending")
    assert told.extent == NOTHING
    assert "no record that the API shows has a value of the cursor `at`" in told.warnings[0]


def test_where_no_page_should_tell_an_end_records_without_a_cursor_are_asked_for() -> None:
    """They are set aside, with the window that they come with."""
    extent = found(lambda _: page(None, leads_on=False), lower="since").extent
    assert extent is not None
    assert (extent.lower, extent.upper) == (0, THEIR_NOW)


def nulls_first(asked: Asked) -> Said:
    """As PostgreSQL sorts downwards."""
    return page(None, None) if asked.params.get("sort") == "-at" else page("2023-05-01T00:00:00Z")


def test_a_page_of_the_newest_that_begins_with_nulls_hides_no_history() -> None:
    extent = found(nulls_first, lower="since", order="ascending", newest={"sort": "-at"}).extent
    assert extent is not None
    assert (extent.lower, extent.upper) == (as_position(datetime(2023, 5, 1, tzinfo=UTC)), THEIR_NOW)


@pytest.mark.parametrize(
    ("cursor_params", "told", "cure"),
    [
        ({"order": "descending"}, "the first page tells no value of the cursor", "or `cursor_params.newest`"),
        (
            {"lower": "since", "newest": {"sort": "-at"}},
            "the page with the newest record tells no value of the cursor",
            "under `cursor_params.newest`",
        ),
    ],
)
def test_no_clock_tells_the_highest_number_where_the_page_that_should_does_not(
    cursor_params: dict[str, Any], told: str, cure: str
) -> None:
    with pytest.raises(SourceError, match=told) as raised:
        found(lambda _: page(None), type_="bigint", format="number", **cursor_params)
    assert raised.value.where == LABEL
    assert cure in (raised.value.hint or "")


@pytest.mark.parametrize(
    ("order", "cursors"), [("descending", ("2024-01-01", "2024-01-02")), ("ascending", ("2024-01-02", "2024-01-01"))]
)
def test_a_first_page_in_another_order_than_was_declared_tells_no_end(order: str, cursors: tuple[str, ...]) -> None:
    with pytest.raises(SourceError, match=f"the first page: .* the order is not {order}") as raised:
        found(lambda _: page(cursors[0], *cursors), type_="date", lower="since", format="date", order=order)
    assert raised.value.where == LABEL


def test_an_empty_page_that_tells_no_total_is_the_last() -> None:
    pagination = {"type": "page", "param": "page", "total": "pages"}
    assert found(lambda _: said({"data": []}), pagination=pagination, lower="since").extent == NOTHING
